//! What each example plugin owes to the house: that a stranger can copy its folder and has all
//! there is. The examples are one workspace; one in C has no manifest, and is left out of that.

use std::collections::BTreeSet;

use super::{Finding, TextFile};

/// Their folder.
const EXAMPLES: &str = "docs/examples/";

/// Their workspace.
const WORKSPACE: &str = "docs/examples/Cargo.toml";

/// What pins the crates of others for all of them.
const LOCK: &str = "docs/examples/Cargo.lock";

/// What each of them has.
const FILES: &[&str] = &["Cargo.toml", "README.md", "src/lib.rs", "tests/conformance.rs"];

/// What its manifest says, as a plugin's elsewhere does.
const LINES: &[(&str, &str)] = &[
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
    for name in &names {
        findings.extend(named(name, files));
        findings.extend(parts(name, files));
        findings.extend(manifest(&format!("{EXAMPLES}{name}/Cargo.toml"), files));
    }
    if !names.is_empty() {
        for path in [WORKSPACE, LOCK] {
            if !files.iter().any(|file| file.path == path) {
                let remedy = "the examples are built and tested as one workspace";
                findings.push(Finding::error(path, 0, "it is missing", remedy));
            }
        }
    }
    findings.extend(lock(LOCK, files));
    findings
}

/// An example is named by its kind, and the guide tells of it.
fn named(name: &str, files: &[TextFile]) -> Vec<Finding> {
    let (folder, mut findings) = (format!("{EXAMPLES}{name}"), Vec::new());
    let kinds = ["tool-", "gc-", "provider-", "environment-", "hook-"];
    if !kinds.iter().any(|kind| name.starts_with(kind)) {
        let what = "its name does not begin with a kind of plugin";
        let remedy = "name it `tool-…`, `gc-…`, `provider-…`, `environment-…` or `hook-…`";
        findings.push(Finding::error(&folder, 0, what, remedy));
    }
    let guide = files.iter().find(|file| file.path == "docs/plugin-authors.md");
    if guide.is_some_and(|guide| !guide.text.contains(&format!("examples/{name}"))) {
        let remedy = "say in `docs/plugin-authors.md` what it shows";
        findings.push(Finding::error(&folder, 0, "the authors' guide does not name it", remedy));
    }
    findings
}

/// An example has all that one of its language needs.
fn parts(name: &str, files: &[TextFile]) -> Vec<Finding> {
    let is_there = |part: &str| {
        let path = format!("{EXAMPLES}{name}/{part}");
        files.iter().any(|file| file.path == path)
    };
    let source = format!("{}.c", name.replace('-', "_"));
    let is_c = !is_there("Cargo.toml") && is_there(&source);
    let wanted: &[&str] = if is_c { &["README.md"] } else { FILES };
    let missing = wanted.iter().filter(|part| !is_there(part)).map(|part| {
        let path = format!("{EXAMPLES}{name}/{part}");
        Finding::error(path, 0, "it is missing", "each example has one")
    });
    let mut findings: Vec<Finding> = missing.collect();
    let workspace = files.iter().find(|file| file.path == WORKSPACE).filter(|_| is_c);
    let is_excluded = |file: &&TextFile| {
        let mut lines = file.text.lines().filter(|line| line.starts_with("exclude = ["));
        lines.any(|line| line.contains(&format!("\"{name}\"")))
    };
    if workspace.is_some_and(|file| !is_excluded(&file)) {
        let what = format!("it takes `{name}` for a crate, which is in C");
        let remedy = format!("write `exclude = [\"{name}\"]` there");
        findings.push(Finding::error(WORKSPACE, 0, what, remedy));
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
        if outside || line.contains("workspace = true") {
            let remedy = "a stranger has the crates of `plugin-api`, and no workspace around them";
            let what = "it stands on what only the house has";
            findings.push(Finding::error(path, at + 1, what, remedy));
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
        jaato-plugin-sdk = { path = \"../../../plugin-api/sdk\" }\n";

    const SERDE: &str =
        "[[package]]\nname = \"serde\"\nversion = \"1.0.0\"\nsource = \"registry\"\n\n";

    /// What is there besides the example.
    fn around(workspace: &str, lock: &str) -> Vec<TextFile> {
        vec![
            file("docs/plugin-authors.md", "[a](examples/tool-a) examples/moon"),
            file("Cargo.lock", &format!("{SERDE}{}", SERDE.replace("1.0.0", "2.0.0"))),
            file(WORKSPACE, workspace),
            file(LOCK, lock),
        ]
    }

    /// An example with all its parts, one of them as given.
    fn found(name: &str, part: &str, text: Option<&str>) -> Vec<String> {
        let mut files = around("", SERDE);
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
    fn an_example_in_c_has_its_source_and_is_no_member() {
        let with = |workspace: &str, parts: &[&str]| {
            let mut files = around(workspace, "");
            let part = |part: &&str| file(&format!("docs/examples/tool-a/{part}"), "");
            files.extend(parts.iter().map(part));
            lines(&check(&files))
        };
        let excludes = "[workspace]\nexclude = [\"tool-a\"]\n";
        let both = ["README.md", "tool_a.c"];
        assert_eq!(with(excludes, &both), Vec::<String>::new());
        assert!(with(excludes, &both[1..])[0].contains("tool-a/README.md: it is missing"));
        assert!(with("[workspace]\n", &both)[0].contains("write `exclude = [\"tool-a\"]` there"));
    }

    #[test]
    fn the_examples_are_one_workspace_that_pins_what_the_house_pins() {
        let with_lock = |lock: &str| {
            let mut files = around("", lock);
            files.extend(FILES.iter().map(|part| {
                let text = if *part == "Cargo.toml" { MANIFEST } else { "" };
                file(&format!("docs/examples/tool-a/{part}"), text)
            }));
            files
        };
        let own = "[[package]]\nname = \"tool-a\"\nversion = \"9.0.0\"\n";
        assert_eq!(check(&with_lock(&format!("{SERDE}{own}"))), []);
        let strange = lines(&check(&with_lock(&SERDE.replace("1.0.0", "1.0.1"))));
        assert_eq!(strange.len(), 1, "{strange:?}");
        assert!(strange[0].contains("it pins serde 1.0.1, and"), "{strange:?}");
        for part in [WORKSPACE, LOCK] {
            let mut files = with_lock(SERDE);
            files.retain(|file| file.path != part);
            let missing = lines(&check(&files));
            assert!(missing.len() == 1 && missing[0].starts_with(part), "{missing:?}");
        }
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
            assert!(found[0].starts_with("docs/examples/tool-a/Cargo.toml:6: "), "{found:?}");
        }
    }
}
