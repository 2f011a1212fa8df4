//! The data of `cargo metadata` about this workspace that the chores need.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::child;

/// The workspace of this checkout.
#[derive(Debug)]
pub struct CargoWorkspace {
    /// The root folder of the checkout.
    pub root: PathBuf,
    /// The folder for cargo's output, which is not always `target`.
    pub target: PathBuf,
    /// The members, sorted by name.
    pub packages: Vec<WorkspacePackage>,
}

/// A member of the workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkspacePackage {
    /// Its name in `Cargo.toml`.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The folder below the root, with `/`: `host/loader`.
    pub folder: String,
    /// The options of `jaato run` without which `cargo xtask run` does not build this plugin.
    pub asked_by: Vec<String>,
    /// Whether cargo builds it as a dynamic library.
    pub is_dynamic: bool,
    /// Its declared dependencies, including those of tests and build programs.
    pub dependencies: Vec<PackageDependency>,
}

/// A direct dependency.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackageDependency {
    /// The package's name.
    pub name: String,
    /// The part of the package that needs it.
    pub kind: DependencyKind,
}

/// The part of a package that needs a dependency.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DependencyKind {
    /// The code itself.
    Normal,
    /// The build program.
    Build,
    /// Tests, examples and benchmarks. Also optional dependencies, which here are only for the
    /// feature `testing` of a crate.
    Dev,
}

impl CargoWorkspace {
    /// Runs `cargo metadata`. Needs no network, because it leaves out external packages.
    pub fn load() -> Result<Self> {
        let root = checkout_root();
        let mut command = child::cargo_command(&root);
        command.args(["metadata", "--no-deps", "--format-version", "1"]);
        let text = child::command_stdout(&mut command)?;
        let metadata = serde_json::from_str(&text).context("reading cargo's metadata")?;
        Self::from_metadata(&metadata).context("reading cargo's metadata")
    }

    fn from_metadata(metadata: &Value) -> Result<Self> {
        let root = PathBuf::from(text_field(metadata, "workspace_root")?);
        let target = PathBuf::from(text_field(metadata, "target_directory")?);
        let mut packages = list_field(metadata, "packages")?
            .iter()
            .map(|package| WorkspacePackage::from_metadata(package, &root))
            .collect::<Result<Vec<_>>>()?;
        packages.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(Self { root, target, packages })
    }

    /// Returns the members that are plugins: below `plugins/`, with a dynamic library.
    pub fn plugin_packages(&self) -> Vec<&WorkspacePackage> {
        self.packages.iter().filter(|package| package.is_plugin()).collect()
    }
}

impl WorkspacePackage {
    fn from_metadata(package: &Value, root: &Path) -> Result<Self> {
        let manifest = PathBuf::from(text_field(package, "manifest_path")?);
        let folder = manifest.parent().context("a manifest has no parent folder")?;
        Ok(Self {
            name: text_field(package, "name")?.to_owned(),
            version: text_field(package, "version")?.to_owned(),
            folder: relative_path(root, folder),
            asked_by: package["metadata"]["jaato"]["asked-by"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect(),
            is_dynamic: list_field(package, "targets")?
                .iter()
                .flat_map(|target| target["kind"].as_array().into_iter().flatten())
                .any(|kind| kind == "cdylib"),
            dependencies: list_field(package, "dependencies")?
                .iter()
                .map(PackageDependency::from_metadata)
                .collect::<Result<_>>()?,
        })
    }

    /// Returns true if the package is one of the shipped plugins.
    pub fn is_plugin(&self) -> bool {
        self.folder.starts_with("plugins/") && self.is_dynamic
    }
}

impl PackageDependency {
    fn from_metadata(dependency: &Value) -> Result<Self> {
        let kind = match dependency["kind"].as_str() {
            Some("dev") => DependencyKind::Dev,
            Some("build") => DependencyKind::Build,
            _ if dependency["optional"] == true => DependencyKind::Dev,
            _ => DependencyKind::Normal,
        };
        Ok(Self { name: text_field(dependency, "name")?.to_owned(), kind })
    }
}

/// Returns the root folder of this checkout: the one with `xtask`, which contains the running
/// chore's package. `cargo run` names the package's folder. The folder at compile time is only the
/// fallback, because checkouts are moved.
fn checkout_root() -> PathBuf {
    let package = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    let xtask = package.ancestors().find(|folder| folder.file_name() == Some("xtask".as_ref()));
    let xtask = xtask.unwrap_or(&package);
    xtask.parent().map_or_else(|| xtask.to_path_buf(), Path::to_path_buf)
}

fn relative_path(root: &Path, path: &Path) -> String {
    let short = path.strip_prefix(root).unwrap_or(path);
    short.to_string_lossy().replace('\\', "/")
}

fn text_field<'a>(value: &'a Value, key: &str) -> Result<&'a str> {
    value[key].as_str().with_context(|| format!("`{key}` is missing"))
}

fn list_field<'a>(value: &'a Value, key: &str) -> Result<&'a Vec<Value>> {
    value[key].as_array().with_context(|| format!("`{key}` is missing"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn package_json(name: &str, folder: &str, kinds: &[&str]) -> Value {
        json!({
            "name": name, "version": "0.1.0",
            "manifest_path": format!("/w/{folder}/Cargo.toml"),
            "targets": [{"kind": kinds, "src_path": format!("/w/{folder}/src/lib.rs")}],
            "dependencies": [
                {"name": "a", "kind": null}, {"name": "b", "kind": "dev"},
                {"name": "c", "kind": "build"},
                {"name": "d", "kind": null, "optional": true},
            ],
        })
    }

    fn workspace_from_packages(packages: &[Value]) -> Result<CargoWorkspace> {
        let metadata = json!({
            "workspace_root": "/w", "target_directory": "/elsewhere", "packages": packages,
        });
        CargoWorkspace::from_metadata(&metadata)
    }

    #[test]
    fn plugins_are_dynamic_libraries_below_the_plugins_folder() {
        let workspace = workspace_from_packages(&[
            package_json("tool-b", "plugins/tool-b", &["cdylib", "rlib"]),
            package_json("gc-a", "plugins/gc-a", &["cdylib"]),
            package_json("shared", "plugins/shared", &["lib"]),
            package_json("fixture", "plugin-api/testkit/fixture", &["cdylib"]),
        ])
        .unwrap();
        let names: Vec<&str> =
            workspace.plugin_packages().iter().map(|p| p.name.as_str()).collect();
        assert_eq!(names, ["gc-a", "tool-b"]);
    }

    #[test]
    fn package_folder_is_relative_and_dependency_kinds_are_distinguished() {
        let workspace =
            workspace_from_packages(&[package_json("gc-a", "plugins/gc-a", &["cdylib"])]).unwrap();
        let package = &workspace.packages[0];
        assert_eq!(package.folder, "plugins/gc-a");
        let kinds: Vec<DependencyKind> = package.dependencies.iter().map(|d| d.kind).collect();
        let [code, tests, builds] =
            [DependencyKind::Normal, DependencyKind::Dev, DependencyKind::Build];
        assert_eq!(kinds, [code, tests, builds, tests]);
        assert_eq!(workspace.target, Path::new("/elsewhere"));
    }

    #[test]
    fn metadata_without_a_name_is_an_error_that_says_so() {
        let error =
            workspace_from_packages(&[json!({"version": "1", "manifest_path": "/w/a/Cargo.toml"})]);
        assert_eq!(error.unwrap_err().to_string(), "`name` is missing");
    }
}
