//! What each member's `Cargo.toml` owes to the house.

use super::{Finding, TextFile};
use crate::workspace::Package;

/// The licence of all that is here.
const LICENSE: &str = "Apache-2.0 OR MIT";

/// Its texts.
const LICENSE_FILES: &[&str] = &["LICENSE-APACHE", "LICENSE-MIT"];

/// Finds members with another licence, without the shared lints or with many test binaries, and
/// missing licence texts.
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
        if let Some(manifest) = manifest.filter(|_| integration_tests(package) > 1) {
            findings.extend(check_tests(package, manifest));
        }
    }
    findings
}

fn integration_tests(package: &Package) -> usize {
    package.targets.iter().filter(|target| target.kinds.iter().any(|kind| kind == "test")).count()
}

/// Finds test binaries besides the crate's one that give no reason: each is linked with all that
/// the crate stands on.
fn check_tests(package: &Package, manifest: &TextFile) -> Vec<Finding> {
    let lines: Vec<&str> = manifest.text.lines().map(str::trim).collect();
    // A comment right above gives the reason.
    let is_explained = |at: usize| at > 0 && lines[at - 1].starts_with('#');
    let position = |text: &str| lines.iter().position(|line| *line == text);
    if position("autotests = true").is_some_and(is_explained) {
        return Vec::new();
    }
    let remedy = "make it a module of `tests/main.rs`, or say above it why it stands apart";
    if position("autotests = false").is_none() {
        let count = integration_tests(package);
        let what = format!("`{}` has {count} integration test binaries", package.name);
        return vec![Finding::error(&manifest.path, 0, what, remedy)];
    }
    let is_other = |at: &usize| lines[*at] == "[[test]]" && !is_explained(*at);
    let others = (0..lines.len()).filter(is_other).skip(1);
    let finding = |at: usize| {
        let what = format!("`{}` has one more integration test binary", package.name);
        Finding::error(&manifest.path, at + 1, what, remedy)
    };
    others.map(finding).collect()
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
    use crate::workspace::Target;

    const GOOD: &str = "[package]\nname = \"a\"\n\n[lints]\nworkspace = true\n";

    fn package(license: Option<&str>) -> Package {
        Package {
            name: "jaato-a".into(),
            folder: "host/a".into(),
            license: license.map(str::to_owned),
            ..Package::default()
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
    fn a_test_binary_without_a_reason_is_found() {
        let found = |count: usize, keys: &str| {
            let manifest = file("host/a/Cargo.toml", &format!("[package]\n{keys}\n{GOOD}"));
            let texts = LICENSE_FILES.iter().map(|name| file(name, "text"));
            let files: Vec<TextFile> = texts.chain([manifest]).collect();
            let test = Target { kinds: vec!["test".into()], source: String::new() };
            let package = Package { targets: vec![test; count], ..package(Some(LICENSE)) };
            lines(&check(&[package], &files))
        };
        let [it, other] = ["[[test]]\nname = \"it\"\n", "[[test]]\nname = \"fuzz\"\n"];
        let listed = format!("autotests = false\n{it}");
        let good = [
            (1, String::new()),
            (1, listed.clone()),
            (2, format!("{listed}# Counts the panics of its process.\n{other}")),
            (9, "# Each of them is a plugin.\nautotests = true\n".to_owned()),
        ];
        for (count, keys) in good {
            assert_eq!(found(count, &keys), Vec::<String>::new(), "{keys}");
        }
        let remedy = "make it a module of `tests/main.rs`, or say above it why it stands apart";
        for keys in ["", "autotests = true\n"] {
            let line = "host/a/Cargo.toml: `jaato-a` has 2 integration test binaries";
            assert_eq!(found(2, keys), [format!("{line}, {remedy}")]);
        }
        let line = "host/a/Cargo.toml:5: `jaato-a` has one more integration test binary";
        assert_eq!(found(2, &format!("{listed}{other}")), [format!("{line}, {remedy}")]);
    }

    #[test]
    fn a_missing_licence_text_is_found() {
        assert_eq!(check(&[], &[file("LICENSE-MIT", "text")]).len(), 1);
    }
}
