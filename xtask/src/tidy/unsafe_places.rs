//! Checks that `unsafe` is used only in expected places. (Clippy checks for `SAFETY:` comments.)

use std::collections::BTreeMap;

use super::TidyFinding;
use super::rust_source::RustSource;
use crate::workspace::WorkspacePackage;

/// Places whose purpose is unchecked memory: the loader, the boundary, the macro that exports a
/// plugin, and fixtures that misbehave on purpose.
const FREE: &[&str] =
    &["host/loader/", "plugin-api/src/", "plugin-api/sdk/src/export.rs", "plugin-api/testkit/"];

/// The single module of any other crate that may call the system directly.
const PLATFORM: &str = "platform.rs";

/// Finds `unsafe` in wrong places, and crates with more than one allowed place.
pub fn check_unsafe_places(
    sources: &[RustSource],
    packages: &[WorkspacePackage],
) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    let mut platforms: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for source in sources.iter().filter(|source| !is_exempt_path(&source.path)) {
        let lines = source.lines_with(&["unsafe"]);
        if source.path.rsplit('/').next() == Some(PLATFORM) {
            if !lines.is_empty() {
                platforms
                    .entry(package_folder(&source.path, packages))
                    .or_default()
                    .push(&source.path);
            }
            continue;
        }
        for (line, _) in lines {
            let what = "`unsafe` is not for this place";
            let remedy = "use a crate that hides it, or move it to the crate's `platform.rs`";
            findings.push(TidyFinding::error_finding(&source.path, line, what, remedy));
        }
    }
    for paths in platforms.values().filter(|paths| paths.len() > 1) {
        for path in &paths[1..] {
            let what = format!("a second module with `unsafe`, after `{}`", paths[0]);
            findings.push(TidyFinding::error_finding(
                *path,
                0,
                what,
                "a crate has one: put them together",
            ));
        }
    }
    findings
}

fn is_exempt_path(path: &str) -> bool {
    FREE.iter().any(|place| path.starts_with(place))
}

/// Returns the innermost package that contains a file.
fn package_folder<'a>(path: &str, packages: &'a [WorkspacePackage]) -> &'a str {
    let holds = |package: &&WorkspacePackage| {
        path.strip_prefix(&package.folder).is_some_and(|rest| rest.starts_with('/'))
    };
    let longest = packages.iter().filter(holds).max_by_key(|package| package.folder.len());
    longest.map_or("", |package| &package.folder)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tests::{format_findings, rust_source};

    const CODE: &str = "fn a() {\n    unsafe { b() }\n}\n";

    fn workspace_package(folder: &str) -> WorkspacePackage {
        WorkspacePackage {
            name: folder.replace('/', "-"),
            folder: folder.into(),
            ..WorkspacePackage::default()
        }
    }

    fn finding_lines(paths: &[&str]) -> Vec<String> {
        let sources: Vec<RustSource> = paths.iter().map(|path| rust_source(path, CODE)).collect();
        format_findings(&check_unsafe_places(
            &sources,
            &[
                workspace_package("host"),
                workspace_package("host/process"),
                workspace_package("host/http"),
            ],
        ))
    }

    #[test]
    fn unsafe_code_in_the_session_is_refused() {
        assert_eq!(
            finding_lines(&["host/session/src/turn.rs"]),
            ["host/session/src/turn.rs:2: `unsafe` is not for this place, \
              use a crate that hides it, or move it to the crate's `platform.rs`"]
        );
    }

    #[test]
    fn loader_boundary_and_platform_modules_may_use_unsafe() {
        let paths = [
            "host/loader/src/open.rs",
            "plugin-api/src/abi.rs",
            "plugin-api/testkit/fixtures/segv/src/lib.rs",
            "host/process/src/platform.rs",
            "host/http/src/platform.rs",
            "host/src/platform.rs",
        ];
        assert_eq!(finding_lines(&paths), Vec::<String>::new());
    }

    #[test]
    fn a_crate_has_one_platform_module() {
        let found =
            finding_lines(&["host/process/src/a/platform.rs", "host/process/src/platform.rs"]);
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("host/process/src/platform.rs: a second module"), "{found:?}");
    }
}
