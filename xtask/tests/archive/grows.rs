//! Tests that authors' sources survive new keys: with one more key in every type that crosses the
//! boundary, the examples and new plugins of each kind build unchanged.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::installed::{InstalledArchive, installed_archive, successful_stdout, target_folder};

const KEY: &str = "key_from_the_future";

/// Files whose types authors never create: a checked view of bytes, a table of the host, and views
/// of the text of a manifest, a variables file, the entry of a server or of a hook, and a call's
/// arguments.
const NO_DATA: [&str; 7] = [
    "command_hooks.rs",
    "dotenv.rs",
    "frame.rs",
    "grant.rs",
    "mcp_entry.rs",
    "touches.rs",
    "worker_variable.rs",
];

/// A row of the host's table of operations, which a macro creates with all keys.
const HOST_ROW: &str = "struct Operation {";

/// The minimum number of structs and variants, so that the test cannot silently check nothing.
const TYPES_MIN: usize = 120;

#[test]
fn whole_plugins_build_unchanged_with_one_more_key_in_every_type() {
    let Some(installed) = installed_archive() else { return };
    let folder = installed.empty_folder("grown");
    let sdk = folder.join("sdk");
    copy_tree(&installed.top.join("share/jaato/sdk"), &sdk);
    let mut grown = 0;
    for entry in fs::read_dir(sdk.join("plugin-api/types/src")).unwrap() {
        let path = entry.unwrap().path();
        // The folders contain no types that cross the boundary.
        if path.is_file() && NO_DATA.iter().all(|name| !path.ends_with(name)) {
            let mut source = GrownSource::default();
            source.grow_source(&fs::read_to_string(&path).unwrap());
            grown += source.grown;
            fs::write(&path, source.text).unwrap();
        }
    }
    assert!(grown >= TYPES_MIN, "only {grown} types have grown");
    check_builds(&sdk.join("docs/examples"));
    for kind in ["tool", "gc", "provider", "environment"] {
        check_builds(&create_plugin(installed, kind, &folder, &sdk));
    }
}

fn create_plugin(
    installed: &InstalledArchive,
    kind: &str,
    folder: &Path,
    sdk: &Path,
) -> std::path::PathBuf {
    let path = folder.join(format!("{kind}-grown"));
    let mut new = Command::new(installed.jaato_path());
    new.args(["plugin", "new", &format!("{kind}-grown"), "--kind", kind, "--path"]).arg(&path);
    new.arg("--sdk").arg(sdk).env("HOME", folder);
    successful_stdout(&mut new);
    path
}

/// Checks a crate or a whole workspace with its tests. A build would show nothing more.
#[track_caller]
fn check_builds(folder: &Path) {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["check", "--workspace", "--tests", "--offline", "--quiet", "--target-dir"]);
    cargo.arg(target_folder().join("grown")).current_dir(folder);
    cargo.env_remove("CARGO_TARGET_DIR").env_remove("RUSTFLAGS").env_remove("RUSTC_BOOTSTRAP");
    successful_stdout(&mut cargo);
}

fn copy_tree(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let place = to.join(path.file_name().unwrap());
        if path.is_dir() { copy_tree(&path, &place) } else { _ = fs::copy(&path, &place).unwrap() }
    }
}

/// A source file with one more key in each struct and variant that others do not construct. Works
/// line by line on the output of `rustfmt`.
#[derive(Default)]
struct GrownSource {
    text: String,
    grown: usize,
    /// The attributes above the line.
    attributes: String,
    /// Whether the surrounding enum is read or written by serde.
    enum_has_serde: Option<bool>,
    variants: Vec<String>,
}

impl GrownSource {
    fn grow_source(&mut self, source: &str) {
        // Tests construct values with all keys.
        let source = source.split("#[cfg(test)]").next().unwrap_or_default();
        let lines: Vec<&str> = source.lines().collect();
        for (at, line) in lines.iter().enumerate() {
            self.grow_line(line, &lines[at + 1..]);
        }
    }

    fn grow_line(&mut self, line: &str, rest: &[&str]) {
        let word = line.trim();
        if word.starts_with("#[") || word.starts_with("///") {
            if word.starts_with("#[") {
                self.attributes.push_str(word);
            }
            return self.push_line(line);
        }
        let attributes = std::mem::take(&mut self.attributes);
        let declared = line.strip_prefix("pub ").unwrap_or(line);
        let is_block = line.ends_with(" {") && !line.contains('<');
        let has_serde = attributes.contains("Serialize") || attributes.contains("Deserialize");
        if declared.starts_with("struct ") && is_block && declared != HOST_ROW {
            self.push_line(line);
            return self.add_key("    pub ", has_serde);
        }
        if declared.starts_with("enum ") && is_block {
            self.enum_has_serde = Some(has_serde);
        } else if line == "}" {
            self.enum_has_serde = None;
        } else if let Some(has_serde) = self.enum_has_serde
            && let Some(name) = word.strip_suffix(" {")
            && attributes.contains("non_exhaustive")
        {
            self.variants.push(name.to_owned());
            self.push_line(line);
            return self.add_key("        ", has_serde);
        }
        let made = self.add_key_to_literal(line, rest);
        self.push_line(&made);
    }

    fn add_key(&mut self, before: &str, has_serde: bool) {
        if has_serde {
            self.push_line("#[serde(default)]");
        }
        self.push_line(&format!("{before}{KEY}: Option<u8>,"));
        self.grown += 1;
    }

    fn push_line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// Adds the key to a literal of the type itself without `..`.
    fn add_key_to_literal(&self, line: &str, rest: &[&str]) -> String {
        let Some(at) = line.find("Self").filter(|_| !line.contains("fn ")) else {
            return line.to_owned();
        };
        let (before, made) = line.split_at(at);
        let Some((name, inside)) = made.split_once(" {") else { return line.to_owned() };
        let is_grown = match name.strip_prefix("Self") {
            Some("") => ["->", "let"].iter().all(|word| !before.trim_end().ends_with(word)),
            Some(variant) => self.variants.iter().any(|known| variant == format!("::{known}")),
            None => false,
        };
        let indent = " ".repeat(line.len() - line.trim_start().len());
        let close = format!("{indent}}}");
        let has_rest = match inside.is_empty() {
            true => rest
                .iter()
                .take_while(|line| !line.starts_with(&close))
                .any(|line| line.trim_start().starts_with("..")),
            false => {
                let own = inside.split('}').next().unwrap_or_default();
                own.contains("..") || inside.contains("=>")
            }
        };
        match is_grown && !has_rest {
            true => format!("{before}{name} {{ {KEY}: None, {inside}"),
            false => line.to_owned(),
        }
    }
}
