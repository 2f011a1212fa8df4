//! What each example plugin owes to the house: that a stranger can copy its folder and has all
//! there is.

use std::collections::BTreeSet;

use super::{Finding, TextFile};

/// Their folder.
const EXAMPLES: &str = "docs/examples/";

/// What each of them has.
const FILES: &[&str] =
    &["Cargo.lock", "Cargo.toml", "README.md", "src/lib.rs", "tests/conformance.rs"];

/// What its manifest says, as a plugin's elsewhere does.
const LINES: &[(&str, &str)] = &[
    ("[workspace]", "make it a workspace of its own"),
    ("license = \"Apache-2.0 OR MIT\"", "all that is here has one licence"),
    ("publish = false", "an example is for reading"),
];

/// Finds examples that lack a part, are badly named, stand on what strangers have not, or are not
/// told of.
pub fn check(files: &[TextFile]) -> Vec<Finding> {
    let inside = files.iter().filter_map(|file| file.path.strip_prefix(EXAMPLES));
    let names: BTreeSet<&str> =
        inside.filter_map(|path| path.split_once('/')).map(|(name, _)| name).collect();
    let mut findings = Vec::new();
    for name in names {
        let folder = format!("{EXAMPLES}{name}");
        if !["tool-", "gc-", "provider-", "environment-"].iter().any(|kind| name.starts_with(kind))
        {
            let what = "its name does not begin with a kind of plugin";
            findings.push(Finding::error(
                &folder,
                0,
                what,
                "name it `tool-…`, `gc-…`, `provider-…` or `environment-…`",
            ));
        }
        for part in FILES {
            let path = format!("{folder}/{part}");
            if !files.iter().any(|file| file.path == path) {
                findings.push(Finding::error(path, 0, "it is missing", "each example has one"));
            }
        }
        findings.extend(manifest(&format!("{folder}/Cargo.toml"), files));
        findings.extend(lock(&format!("{folder}/Cargo.lock"), files));
        let guide = files.iter().find(|file| file.path == "docs/plugin-authors.md");
        if guide.is_some_and(|guide| !guide.text.contains(&format!("examples/{name}"))) {
            let remedy = "say in `docs/plugin-authors.md` what it shows";
            findings.push(Finding::error(
                &folder,
                0,
                "the authors' guide does not name it",
                remedy,
            ));
        }
    }
    findings
}

fn manifest(path: &str, files: &[TextFile]) -> Vec<Finding> {
    let Some(manifest) = files.iter().find(|file| file.path == path) else { return Vec::new() };
    let mut findings = Vec::new();
    for (line, remedy) in LINES {
        if !manifest.text.lines().any(|found| found == *line) {
            findings.push(Finding::error(path, 0, format!("`{line}` is missing"), *remedy));
        }
    }
    for (at, line) in manifest.text.lines().enumerate() {
        let outside = line.contains("path = \"") && !line.contains("path = \"../../../plugin-api/");
        if outside || line.contains(".workspace = true") {
            let remedy = "a stranger has the crates of `plugin-api`, and no workspace around them";
            findings.push(Finding::error(
                path,
                at + 1,
                "it stands on what only the house has",
                remedy,
            ));
        }
    }
    findings
}

/// What a lock file pins beyond ours was never fetched, and not tested with the sdk.
fn lock(path: &str, files: &[TextFile]) -> Option<Finding> {
    let find = |path: &str| files.iter().find(|file| file.path == path);
    let (theirs, ours) = (find(path)?, find("Cargo.lock")?);
    let strange = pinned(&theirs.text).difference(&pinned(&ours.text)).next().cloned()?;
    let what = format!("it pins {strange}, and `Cargo.lock` of the house does not");
    let remedy = "copy that one over it, then `cargo update --workspace --offline` there";
    Some(Finding::error(path, 0, what, remedy))
}

/// Names and versions of what comes from a registry.
fn pinned(lock: &str) -> BTreeSet<String> {
    let packages = lock.split("[[package]]").filter(|package| package.contains("\nsource = "));
    let pinned = packages.map(|package| {
        let value = |key: &str| package.lines().find_map(|line| line.strip_prefix(key));
        let [name, version] = ["name = ", "version = "].map(|key| value(key).unwrap_or_default());
        format!("{} {}", name.trim_matches('"'), version.trim_matches('"'))
    });
    pinned.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tests::{file, lines};

    const MANIFEST: &str = "[package]\nlicense = \"Apache-2.0 OR MIT\"\npublish = false\n[dependencies]\n\
        jaato-plugin-sdk = { path = \"../../../plugin-api/sdk\" }\n[workspace]\n";

    const SERDE: &str =
        "[[package]]\nname = \"serde\"\nversion = \"1.0.0\"\nsource = \"registry\"\n\n";

    /// An example with all its parts, one of them as given.
    fn found(name: &str, part: &str, text: Option<&str>) -> Vec<String> {
        let mut files = vec![
            file("docs/plugin-authors.md", "[a](examples/tool-a) examples/moon"),
            file("Cargo.lock", &format!("{SERDE}{}", SERDE.replace("1.0.0", "2.0.0"))),
        ];
        for known in FILES {
            let text = match (part == *known, *known) {
                (true, _) => text,
                (false, "Cargo.toml") => Some(MANIFEST),
                (false, _) => Some(""),
            };
            files.extend(text.map(|text| file(&format!("docs/examples/{name}/{known}"), text)));
        }
        lines(&check(&files))
    }

    #[test]
    fn an_example_has_all_that_a_stranger_needs() {
        assert_eq!(found("tool-a", "", None), Vec::<String>::new());
        for part in FILES {
            let missing = found("tool-a", part, None);
            assert_eq!(missing.len(), 1, "{missing:?}");
            assert!(missing[0].starts_with(&format!("docs/examples/tool-a/{part}: it is missing")));
        }
    }

    #[test]
    fn an_example_pins_what_the_house_pins() {
        let own = "[[package]]\nname = \"tool-a\"\nversion = \"9.0.0\"\n";
        assert_eq!(
            found("tool-a", "Cargo.lock", Some(&format!("{SERDE}{own}"))),
            Vec::<String>::new()
        );
        let strange = found("tool-a", "Cargo.lock", Some(&SERDE.replace("1.0.0", "1.0.1")));
        assert_eq!(strange.len(), 1, "{strange:?}");
        assert!(strange[0].contains("it pins serde 1.0.1, and"), "{strange:?}");
    }

    #[test]
    fn an_example_is_named_by_its_kind_and_told_of() {
        assert_eq!(found("moon", "", None).len(), 1);
        let untold = found("gc-b", "", None);
        assert_eq!(untold.len(), 1, "{untold:?}");
        assert!(untold[0].contains("the authors' guide does not name it"));
    }

    #[test]
    fn an_example_stands_on_nothing_that_only_the_house_has() {
        for line in ["a = { path = \"../tool-b\" }", "serde.workspace = true"] {
            let manifest = format!("{MANIFEST}{line}\n");
            let found = found("tool-a", "Cargo.toml", Some(&manifest));
            assert_eq!(found.len(), 1, "{found:?}");
            assert!(found[0].starts_with("docs/examples/tool-a/Cargo.toml:7: "), "{found:?}");
        }
        let member = MANIFEST.replace("[workspace]\n", "");
        assert!(
            found("tool-a", "Cargo.toml", Some(&member))[0].contains("`[workspace]` is missing")
        );
    }
}
