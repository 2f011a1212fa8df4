//! Generates the manifest of the sdk's workspace from ours, with only the keys that its members
//! inherit.
//!
//! Parses by line, because our manifest has one key per line. Cargo checks the result.

use anyhow::{Result, bail};

/// A table of a manifest: its header without brackets, and its lines.
type ManifestTable<'a> = (&'a str, Vec<&'a str>);

/// Generates the manifest from ours, the members' folders, and the text of all their manifests.
pub fn generate_manifest(ours: &str, members: &[&str], manifests: &str) -> Result<String> {
    let mut text = String::from("[workspace]\nresolver = \"3\"\nmembers = [\n");
    for member in members {
        text.push_str(&format!("    \"{member}\",\n"));
    }
    text.push_str("]\n");
    for (head, lines) in split_tables(ours) {
        let kept: Vec<&str> = match head {
            "workspace.package" | "workspace.dependencies" => {
                let keys = table_keys(&lines)?;
                keys.filter(|(key, _)| is_inherited_key(key, manifests))
                    .map(|(_, line)| line)
                    .collect()
            }
            _ if head.starts_with("workspace.lints.") => lines,
            _ => continue,
        };
        if !kept.is_empty() {
            text.push_str(&format!("\n[{head}]\n{}\n", kept.join("\n")));
        }
    }
    Ok(text)
}

fn split_tables(manifest: &str) -> Vec<ManifestTable<'_>> {
    let mut tables: Vec<ManifestTable<'_>> = Vec::new();
    for line in manifest.lines() {
        let line = line.trim_end();
        let head = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        if let Some(head) = head {
            tables.push((head, Vec::new()));
        } else if let Some((_, lines)) = tables.last_mut()
            && !line.is_empty()
            && !line.starts_with('#')
        {
            lines.push(line);
        }
    }
    tables
}

/// Returns the keys with their lines. Fails for a value that continues in the next line.
fn table_keys<'a>(lines: &[&'a str]) -> Result<impl Iterator<Item = (&'a str, &'a str)>> {
    let mut keys = Vec::new();
    for line in lines {
        let (open, closed) = (line.matches(['[', '{']).count(), line.matches([']', '}']).count());
        match line.split_once(" = ") {
            Some((key, _)) if open == closed => keys.push((key, *line)),
            _ => bail!("`{line}` is not a key with a value on one line"),
        }
    }
    Ok(keys.into_iter())
}

fn is_inherited_key(key: &str, manifests: &str) -> bool {
    let (plain, table) =
        (format!("{key}.workspace = true"), format!("{key} = {{ workspace = true"));
    manifests.lines().any(|line| line == plain || line.starts_with(&table))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: &str = "\
[workspace]
members = [
    \"host\",
]

[workspace.package]
version = \"0.1.0\"
license = \"MIT\"

[workspace.dependencies]
# Ours.
jaato-host = { path = \"host\" }
jaato-types = { path = \"plugin-api/types\" }
nix = \"0.31\"
serde = { version = \"1\", features = [\"derive\"] }
serde_json = \"1\"

[workspace.lints.rust]
missing_docs = \"warn\"

[profile.dev]
debug = 1
";

    #[test]
    fn generated_manifest_has_only_inherited_keys() {
        let manifests = "license.workspace = true\njaato-types.workspace = true\n\
            serde.workspace = true\nnix = { workspace = true, features = [\"fs\"] }\n";
        let made = generate_manifest(OURS, &["plugin-api", "plugin-api/types"], manifests).unwrap();
        assert_eq!(
            made,
            "\
[workspace]
resolver = \"3\"
members = [
    \"plugin-api\",
    \"plugin-api/types\",
]

[workspace.package]
license = \"MIT\"

[workspace.dependencies]
jaato-types = { path = \"plugin-api/types\" }
nix = \"0.31\"
serde = { version = \"1\", features = [\"derive\"] }

[workspace.lints.rust]
missing_docs = \"warn\"
"
        );
    }

    #[test]
    fn multi_line_manifest_value_is_refused() {
        let ours = "[workspace.dependencies]\nnix = { version = \"1\", features = [\n  \"fs\"] }\n";
        let error = generate_manifest(ours, &[], "").unwrap_err().to_string();
        assert!(error.contains("on one line"), "{error}");
    }
}
