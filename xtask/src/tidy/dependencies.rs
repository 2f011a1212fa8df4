//! The allowed dependencies between our crates, compared with cargo's data.
//!
//! The host and the plugins both depend on the boundary and never on each other. This table defines
//! that, and what each crate of the host may use. A new edge is a design change, which shows here
//! as a new line.

use super::TidyFinding;
use crate::workspace::{DependencyKind, PackageDependency, WorkspacePackage};

/// The members that a member may use.
struct AllowedDependencies {
    package: &'static str,
    uses: &'static [&'static str],
    /// Further members that only its tests and build programs may use.
    tests_use: &'static [&'static str],
}

const fn allow(
    package: &'static str,
    uses: &'static [&'static str],
    tests_use: &'static [&'static str],
) -> AllowedDependencies {
    AllowedDependencies { package, uses, tests_use }
}

const TESTKIT: &[&str] = &["jaato-plugin-testkit"];

/// For its checks of a host.
const ENGINE: &[&str] = &["jaato-plugin-engine"];

/// The members that tests of plugins and of the binary may use.
const FAKES: &[&str] = &["jaato-plugin-testkit", "jaato-vendors"];

#[rustfmt::skip]
const TABLE: &[AllowedDependencies] = &[
    // The boundary, from the bottom up.
    allow("jaato-types", &[], &[]),
    allow("jaato-objects", &["jaato-types"], &[]),
    allow("jaato-plugin-api", &[], &["jaato-types"]),
    allow("jaato-plugin-engine", &["jaato-types", "jaato-plugin-api"], &[]),
    allow("jaato-plugin-macros", &[], &[]),
    allow("jaato-plugin-sdk", &["jaato-types", "jaato-plugin-api", "jaato-plugin-macros"], &[]),
    allow("jaato-plugin-sdk-provider", &["jaato-plugin-sdk"], &[]),
    allow("jaato-plugin-sdk-gc", &["jaato-plugin-sdk"], &[]),
    allow("jaato-plugin-sdk-environment", &["jaato-types", "jaato-plugin-sdk"], &[]),
    allow("jaato-plugin-testkit", &[
        "jaato-types", "jaato-objects", "jaato-plugin-api", "jaato-plugin-engine", "jaato-plugin-sdk",
        "jaato-plugin-sdk-environment",
    ], &[]),
    allow("jaato-vendors", &["jaato-types", "jaato-plugin-testkit"], &[]),
    // The host. First the crates that do not load libraries:
    allow("jaato-places", &[], &[]),
    allow("jaato-policy", &["jaato-types"], &[]),
    allow("jaato-config", &["jaato-types", "jaato-places", "jaato-policy"], &[]),
    allow("jaato-approval", &["jaato-types", "jaato-config", "jaato-places", "jaato-policy"], &[]),
    allow("jaato-http", &["jaato-types"], &[]),
    allow("jaato-google-auth", &["jaato-types", "jaato-http"], &[]),
    allow("jaato-assets", &["jaato-types", "jaato-http", "jaato-places"], &[]),
    allow("jaato-log", &["jaato-places"], &[]),
    allow("jaato-model-facts", &["jaato-types"], &[]),
    allow("jaato-process", &[], &[]),
    allow("jaato-registry", &["jaato-types"], &[]),
    allow("jaato-session", &[
        "jaato-types", "jaato-approval", "jaato-config", "jaato-objects", "jaato-policy",
    ], &[]),
    allow("jaato-store", &["jaato-types", "jaato-places"], &[]),
    allow("jaato-sessions", &["jaato-types", "jaato-places"], &[]),
    allow("jaato-template", &[], &[]),
    // The crates that open plugins:
    allow("jaato-loader", &[
        "jaato-types", "jaato-places", "jaato-plugin-api", "jaato-plugin-engine",
    ], TESTKIT),
    allow("jaato-worker", &["jaato-types", "jaato-loader", "jaato-plugin-testkit"], ENGINE),
    allow("jaato-install", &["jaato-types", "jaato-loader", "jaato-places", "jaato-registry"], &[]),
    allow("jaato-terminals", &[
        "jaato-types", "jaato-config", "jaato-loader", "jaato-log", "jaato-places", "jaato-session",
    ], &[]),
    allow("jaato-catalog", &[
        "jaato-types", "jaato-config", "jaato-loader", "jaato-log", "jaato-places", "jaato-process",
        "jaato-registry", "jaato-worker",
    ], &[]),
    allow("jaato-instances", &[
        "jaato-types", "jaato-catalog", "jaato-config", "jaato-loader", "jaato-log", "jaato-places",
        "jaato-process", "jaato-registry", "jaato-session", "jaato-worker",
    ], &[]),
    allow("jaato-environments", &[
        "jaato-types", "jaato-config", "jaato-instances", "jaato-loader", "jaato-places", "jaato-process",
        "jaato-registry", "jaato-session", "jaato-terminals",
    ], ENGINE),
    allow("jaato-services", &[
        "jaato-types", "jaato-assets", "jaato-catalog", "jaato-config", "jaato-environments",
        "jaato-google-auth", "jaato-http", "jaato-instances", "jaato-loader", "jaato-objects", "jaato-places", "jaato-process",
        "jaato-registry", "jaato-session",
    ], ENGINE),
    // The crates that connect them, and the commands.
    allow("jaato-runtime", &[
        "jaato-types", "jaato-approval", "jaato-assets", "jaato-catalog", "jaato-config", "jaato-environments",
        "jaato-http", "jaato-instances", "jaato-loader", "jaato-log", "jaato-model-facts", "jaato-objects", "jaato-places",
        "jaato-policy", "jaato-process", "jaato-registry", "jaato-services", "jaato-session",
        "jaato-sessions", "jaato-store", "jaato-terminals",
        "jaato-worker",
    ], &[]),
    allow("jaato-library", &[
        "jaato-plugin-sdk", "jaato-process", "jaato-runtime", "jaato-worker",
    ], &["jaato-plugin-sdk-environment", "jaato-plugin-testkit"]),
    allow("jaato", &[
        "jaato-install", "jaato-process", "jaato-runtime", "jaato-template", "jaato-worker",
    ], &["jaato-types", "jaato-plugin-testkit", "jaato-sessions", "jaato-vendors"]),
    allow("xtask", &["jaato-template"], &[]),
    allow("xtask-measure", &["jaato-types", "jaato-sessions", "xtask"], &[]),
];

/// The row of all plugins. A new plugin needs no line here.
const PLUGIN: AllowedDependencies = allow(
    "a plugin",
    &[
        "front-matter",
        "html-nesting",
        "jaato-plugin-sdk",
        "jaato-plugin-sdk-environment",
        "jaato-plugin-sdk-gc",
        "jaato-plugin-sdk-provider",
    ],
    FAKES,
);

/// External crates that only a few members may use.
const FENCED: &[(&str, &[&str])] = &[
    ("abi_stable", &["jaato-plugin-api", "jaato-loader"]),
    ("async-ffi", &["jaato-plugin-api", "jaato-loader"]),
    ("libloading", &["jaato-loader"]),
];

/// Compares the members' direct dependencies with the table.
pub fn check_dependencies(packages: &[WorkspacePackage]) -> Vec<TidyFinding> {
    packages.iter().flat_map(|package| check_package(package, packages)).collect()
}

/// Finds rows of the table that allow dependencies that no `Cargo.toml` declares.
pub fn find_unused_rows(packages: &[WorkspacePackage]) -> Vec<TidyFinding> {
    let find = |row: &'static AllowedDependencies| {
        packages.iter().find(|package| package.name == row.package)
    };
    let mut findings = Vec::new();
    for (row, package) in TABLE.iter().filter_map(|row| Some((row, find(row)?))) {
        let is_used = |name: &str, kind: fn(DependencyKind) -> bool| {
            package.dependencies.iter().any(|d| d.name == name && kind(d.kind))
        };
        let code = row.uses.iter().filter(|n| !is_used(n, |kind| kind == DependencyKind::Normal));
        let tests = row.tests_use.iter().filter(|name| !is_used(name, |_| true));
        for name in code.chain(tests) {
            let what = format!("`{}` may use `{name}` and does not", row.package);
            let remedy = "take it out of the table in `xtask/src/tidy/dependencies.rs`";
            findings.push(TidyFinding::error_finding(
                format!("{}/Cargo.toml", package.folder),
                0,
                what,
                remedy,
            ));
        }
    }
    findings
}

fn check_package(package: &WorkspacePackage, packages: &[WorkspacePackage]) -> Vec<TidyFinding> {
    let path = format!("{}/Cargo.toml", package.folder);
    let Some(row) = find_row(package) else {
        let what = format!("`{}` is not in the dependency table", package.name);
        let remedy = "say in `xtask/src/tidy/dependencies.rs` what it may use";
        return vec![TidyFinding::error_finding(path, 0, what, remedy)];
    };
    let mut findings = Vec::new();
    for dependency in &package.dependencies {
        let is_ours = packages.iter().any(|other| other.name == dependency.name);
        // Tests may use their own package with another feature. Cargo allows that only for tests.
        let is_itself = dependency.name == package.name;
        if is_ours && !is_itself && !is_allowed(row, dependency) {
            let what = format!("`{}` may not use `{}`", package.name, dependency.name);
            let remedy = "go through what it may use (`xtask/src/tidy/dependencies.rs`)";
            findings.push(TidyFinding::error_finding(&path, 0, what, remedy));
        }
        let fence = FENCED.iter().find(|(name, _)| *name == dependency.name);
        if let Some((name, _)) = fence.filter(|(_, who)| !who.contains(&package.name.as_str())) {
            let what = format!("`{}` may not name `{name}`", package.name);
            let remedy = "the boundary hides that crate; use what it gives instead";
            findings.push(TidyFinding::error_finding(&path, 0, what, remedy));
        }
    }
    findings
}

fn find_row(package: &WorkspacePackage) -> Option<&'static AllowedDependencies> {
    if package.folder.starts_with("plugins/") {
        return Some(&PLUGIN);
    }
    TABLE.iter().find(|row| row.package == package.name)
}

fn is_allowed(row: &AllowedDependencies, dependency: &PackageDependency) -> bool {
    let name = dependency.name.as_str();
    row.uses.contains(&name)
        || (dependency.kind != DependencyKind::Normal && row.tests_use.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tests::format_findings;

    fn workspace_package(
        name: &str,
        folder: &str,
        uses: &[(&str, DependencyKind)],
    ) -> WorkspacePackage {
        WorkspacePackage {
            name: name.into(),
            folder: folder.into(),
            dependencies: uses
                .iter()
                .map(|(name, kind)| PackageDependency { name: (*name).into(), kind: *kind })
                .collect(),
            ..WorkspacePackage::default()
        }
    }

    /// Returns the findings for the workspace with one additional package.
    #[track_caller]
    fn findings_with_package(
        name: &str,
        folder: &str,
        uses: &[(&str, DependencyKind)],
    ) -> Vec<String> {
        let mut packages: Vec<WorkspacePackage> = TABLE
            .iter()
            .filter(|row| row.package != name)
            .map(|row| workspace_package(row.package, "host/x", &[]))
            .collect();
        packages.push(workspace_package("tool-other", "plugins/tool-other", &[]));
        packages.push(workspace_package(name, folder, uses));
        format_findings(&check_dependencies(&packages))
    }

    #[track_caller]
    fn assert_refused(name: &str, folder: &str, uses: &str) {
        let found = findings_with_package(name, folder, &[(uses, DependencyKind::Normal)]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains(&format!("`{name}` may not use `{uses}`")), "{found:?}");
    }

    #[test]
    fn host_and_plugins_never_depend_on_each_other() {
        assert_refused("tool-a", "plugins/tool-a", "jaato-session");
        assert_refused("tool-a", "plugins/tool-a", "tool-other");
        assert_refused("jaato-runtime", "host/runtime", "tool-other");
        assert_refused("jaato-types", "plugin-api/types", "jaato-config");
    }

    #[test]
    fn nothing_depends_on_the_binary() {
        for row in TABLE {
            assert!(!row.uses.contains(&"jaato") && !row.tests_use.contains(&"jaato"));
        }
        assert_refused("jaato-worker", "host/worker", "jaato");
        assert_refused("tool-a", "plugins/tool-a", "jaato");
    }

    #[test]
    fn session_does_not_use_the_loader_and_policy_does_not_use_the_session() {
        assert_refused("jaato-session", "host/session", "jaato-loader");
        assert_refused("jaato-policy", "host/policy", "jaato-session");
    }

    #[test]
    fn test_dependency_is_not_allowed_as_a_normal_one() {
        let folder = "plugins/tool-a";
        let with =
            |kind| findings_with_package("tool-a", folder, &[("jaato-plugin-testkit", kind)]);
        assert_eq!(with(DependencyKind::Dev), Vec::<String>::new());
        assert_eq!(with(DependencyKind::Normal).len(), 1);
    }

    #[test]
    fn unused_allowed_dependency_is_found() {
        let uses =
            |kind| [workspace_package("jaato-assets", "host/assets", &[("jaato-types", kind)])];
        let about = |name: &str| {
            format!(
                "host/assets/Cargo.toml: `jaato-assets` may use `{name}` and does not, \
                 take it out of the table in `xtask/src/tidy/dependencies.rs`"
            )
        };
        let others = [about("jaato-http"), about("jaato-places")];
        assert_eq!(format_findings(&find_unused_rows(&uses(DependencyKind::Normal))), others);
        let all = [&[about("jaato-types")], &others[..]].concat();
        assert_eq!(format_findings(&find_unused_rows(&uses(DependencyKind::Dev))), all);
    }

    #[test]
    fn crate_missing_from_the_dependency_table_is_found() {
        assert_eq!(
            findings_with_package("jaato-novel", "host/novel", &[]),
            ["host/novel/Cargo.toml: `jaato-novel` is not in the dependency table, \
              say in `xtask/src/tidy/dependencies.rs` what it may use"]
        );
    }

    #[test]
    fn hidden_crates_are_used_only_by_the_boundary_and_the_loader() {
        for name in ["abi_stable", "async-ffi", "libloading"] {
            let uses = [(name, DependencyKind::Dev)];
            assert_eq!(findings_with_package("tool-a", "plugins/tool-a", &uses).len(), 1, "{name}");
            assert_eq!(
                findings_with_package("jaato-loader", "host/loader", &uses),
                Vec::<String>::new()
            );
        }
    }

    #[test]
    fn dependency_table_lists_each_package_once_without_cycles() {
        for (at, row) in TABLE.iter().enumerate() {
            assert!(TABLE[..at].iter().all(|other| other.package != row.package));
            // Each row uses only rows above it.
            for used in row.uses {
                assert!(TABLE[..at].iter().any(|other| other.package == *used), "{used}");
            }
        }
    }
}
