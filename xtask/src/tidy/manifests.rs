//! What each member's `Cargo.toml` owes to the house.

use super::{Finding, TextFile};
use crate::workspace::Package;

/// The licence of all that is here.
const LICENSE: &str = "Apache-2.0 OR MIT";

/// Its texts.
const LICENSE_FILES: &[&str] = &["LICENSE-APACHE", "LICENSE-MIT"];

/// Finds members with another licence or without the shared lints, and missing licence texts.
pub fn check(packages: &[Package], files: &[TextFile]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for name in LICENSE_FILES {
        if !files.iter().any(|file| file.path == *name) {
            findings.push(Finding::error(*name, 0, "it is missing", "both licences need a text"));
        }
    }
    for package in packages {
        let path = format!("{}/Cargo.toml", package.folder);
        if package.license.as_deref() != Some(LICENSE) {
            let what = format!("`{}` is not under `{LICENSE}`", package.name);
            findings.push(Finding::error(&path, 0, what, "write `license.workspace = true`"));
        }
        let manifest = files.iter().find(|file| file.path == path);
        if manifest.is_some_and(|manifest| !has_shared_lints(&manifest.text)) {
            let what = format!("`{}` does without the shared lints", package.name);
            findings.push(Finding::error(&path, 0, what, "add `[lints]` with `workspace = true`"));
        }
    }
    findings
}

fn has_shared_lints(manifest: &str) -> bool {
    let mut in_lints = false;
    for line in manifest.lines().map(str::trim) {
        if line.starts_with('[') {
            in_lints = line == "[lints]";
        } else if (in_lints && line == "workspace = true") || line == "lints.workspace = true" {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tests::{file, lines};

    const GOOD: &str = "[package]\nname = \"a\"\n\n[lints]\nworkspace = true\n";

    fn package(license: Option<&str>) -> Package {
        Package {
            name: "jaato-a".into(),
            version: "1.0.0".into(),
            folder: "host/a".into(),
            license: license.map(str::to_owned),
            targets: Vec::new(),
            dependencies: Vec::new(),
        }
    }

    fn found(license: Option<&str>, manifest: &str) -> Vec<String> {
        let texts = LICENSE_FILES.iter().map(|name| file(name, "text"));
        let files: Vec<TextFile> = texts.chain([file("host/a/Cargo.toml", manifest)]).collect();
        lines(&check(&[package(license)], &files))
    }

    #[test]
    fn another_licence_or_none_is_found() {
        assert_eq!(found(Some(LICENSE), GOOD), Vec::<String>::new());
        for bad in [None, Some("MIT")] {
            let found = found(bad, GOOD);
            assert_eq!(found.len(), 1);
            assert!(found[0].starts_with("host/a/Cargo.toml: `jaato-a` is not under"));
        }
    }

    #[test]
    fn a_member_without_the_shared_lints_is_found() {
        for bad in ["[package]\n", "[dependencies.b]\nworkspace = true\n", "[lints]\n[a]\n"] {
            assert_eq!(found(Some(LICENSE), bad).len(), 1, "{bad}");
        }
    }

    #[test]
    fn a_missing_licence_text_is_found() {
        assert_eq!(check(&[], &[file("LICENSE-MIT", "text")]).len(), 1);
    }
}
