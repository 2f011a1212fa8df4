//! What the folder of each shipped plugin holds besides its code: a README and its conformance
//! suite.

use super::{Finding, TextFile};
use crate::workspace::Package;

/// How a test names the suite of a plugin's kinds: its macro, or its checks one by one.
const SUITE: [&str; 2] =
    ["jaato_plugin_testkit::conformance!(", "jaato_plugin_testkit::conformance::"];

/// Finds plugins without a README, and those that no conformance suite runs over.
pub fn check(packages: &[Package], files: &[TextFile]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for plugin in packages.iter().filter(|package| package.is_plugin()) {
        let folder = &plugin.folder;
        if !files.iter().any(|file| file.path == format!("{folder}/README.md")) {
            let what = "it has no README.md";
            let remedy = "say what the plugin does, how it is set up, and when not to use it";
            findings.push(Finding::error(folder, 0, what, remedy));
        }
        let tests = format!("{folder}/tests/");
        let runs = |file: &TextFile| SUITE.iter().any(|name| file.text.contains(name));
        if !files.iter().any(|file| file.path.starts_with(&tests) && runs(file)) {
            let what = "no test runs the conformance suite of its kinds";
            let remedy = "add `jaato_plugin_testkit::conformance!(crate_name: kind);` to its tests";
            findings.push(Finding::error(folder, 0, what, remedy));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tests::{file, lines};
    use crate::workspace::Target;

    #[track_caller]
    fn check_files(files: &[(&str, &str)], expected: &[&str]) {
        let package = Package {
            name: "tool-a".into(),
            folder: "plugins/tool-a".into(),
            targets: vec![Target {
                kinds: vec!["cdylib".into()],
                source: "plugins/tool-a/src/lib.rs".into(),
            }],
            ..Package::default()
        };
        let files: Vec<TextFile> = files.iter().map(|(path, text)| file(path, text)).collect();
        assert_eq!(lines(&check(&[package], &files)), expected);
    }

    #[test]
    fn a_plugin_has_a_readme_and_a_suite() {
        let suite =
            ("plugins/tool-a/tests/all.rs", "jaato_plugin_testkit::conformance!(tool_a: tool);");
        let readme = ("plugins/tool-a/README.md", "# tool-a");
        check_files(&[suite, readme], &[]);
        check_files(
            &[suite],
            &["plugins/tool-a: it has no README.md, \
             say what the plugin does, how it is set up, and when not to use it"],
        );
        check_files(
            &[readme, ("plugins/tool-b/tests/all.rs", suite.1)],
            &["plugins/tool-a: no test runs the conformance suite of its kinds, \
             add `jaato_plugin_testkit::conformance!(crate_name: kind);` to its tests"],
        );
    }
}
