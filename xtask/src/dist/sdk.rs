//! The sdk in the archive: the sources of the crates in `plugin-api`, as a separate workspace.
//!
//! The relative paths are the same as in the checkout, so that manifests, examples and the guide
//! can be used unchanged. Only the workspace's manifest is generated from ours, and the lock file
//! is ours without unneeded entries.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::release::LICENSES;
use crate::child;
use crate::gather::place_file;
use crate::workspace::CargoWorkspace;

mod manifest;

/// The folder of the crates, in the checkout and in the sdk.
const CRATES: &str = "plugin-api";

/// Folders and files that only our own tests need.
const LEFT_OUT: &[&str] = &["benches", "fixtures", "public-api.txt", "target", "tests", "vendors"];

/// Documents for authors.
const GUIDE: &[&str] = &["docs/abi.md", "docs/plugin-authors.md", "docs/security.md"];

/// The guide's pages, one for each service or topic.
const PAGES: &str = "docs/authors";

/// Complete example plugins, with the same paths to the crates.
const EXAMPLES: &str = "docs/examples";

/// The beginnings of the names of examples that are programs.
const EMBEDDERS: &[&str] = &["cli-vs-mcp", "embed-", "modlog"];

const README: &str = include_str!("sdk/README.md");

/// Writes the sdk into a folder.
pub fn lay_out_sdk(workspace: &CargoWorkspace, folder: &Path) -> Result<()> {
    let root = &workspace.root;
    let members = sdk_members(workspace)?;
    for part in [CRATES, EXAMPLES, PAGES] {
        for file in sdk_files(root, part)? {
            copy_file(root, &file, folder)?;
        }
    }
    for file in GUIDE.iter().chain(&LICENSES) {
        copy_file(root, Path::new(file), folder)?;
    }
    let mut manifests = String::new();
    for member in &members {
        manifests.push_str(&read_text(&folder.join(member).join("Cargo.toml"))?);
    }
    let ours = read_text(&root.join("Cargo.toml"))?;
    let made = manifest::generate_manifest(&ours, &members, &manifests)
        .context("making the sdk's manifest")?;
    write_text(&folder.join("Cargo.toml"), &made)?;
    write_text(&folder.join("README.md"), README)?;
    write_lock_file(root, folder, folder)?;
    let examples = folder.join(EXAMPLES);
    let manifest = examples.join("Cargo.toml");
    if !manifest.is_file() {
        return Ok(());
    }
    write_text(&manifest, &remove_fixtures(&read_text(&manifest)?))?;
    write_lock_file(root, folder, &examples)
}

/// Removes the fixtures of our own tests from the examples' workspace.
fn remove_fixtures(manifest: &str) -> String {
    let lines = manifest.lines().filter(|line| !line.contains("/fixtures/"));
    lines.map(|line| format!("{line}\n")).collect()
}

/// Returns the members of the checkout's workspace that belong to the sdk.
fn sdk_members(workspace: &CargoWorkspace) -> Result<Vec<&str>> {
    let below = format!("{CRATES}/");
    let is_ours = |folder: &&str| {
        (*folder == CRATES || folder.starts_with(&below)) && is_sdk_file(Path::new(folder))
    };
    let folders = workspace.packages.iter().map(|package| package.folder.as_str());
    let mut members: Vec<&str> = folders.filter(is_ours).collect();
    members.sort_unstable();
    if members.is_empty() {
        bail!("`{CRATES}` holds no crate: there would be nothing to build plugins against");
    }
    Ok(members)
}

/// Gives a workspace of the sdk our lock file without unneeded entries, and checks with cargo that
/// nothing is missing.
fn write_lock_file(root: &Path, sdk: &Path, folder: &Path) -> Result<()> {
    let ours = root.join("Cargo.lock");
    if !ours.is_file() {
        bail!("`{}` is missing; it pins the tested versions", ours.display());
    }
    place_file(&ours, &folder.join("Cargo.lock"))?;
    let mut prune = child::cargo_command(folder);
    prune.args(["update", "--workspace", "--offline", "--quiet"]);
    child::run_command(&mut prune)?;
    let mut check = child::cargo_command(folder);
    // Dependencies of other systems may never have been downloaded here.
    check.args(["metadata", "--locked", "--offline", "--filter-platform"]);
    check.arg(super::own_target_triple(root)?).args(["--format-version", "1"]);
    let metadata = child::command_stdout(&mut check)?;
    let metadata: serde_json::Value =
        serde_json::from_str(&metadata).context("reading cargo's metadata")?;
    check_crates_are_inside(sdk, &metadata)
}

/// Checks that all crates are inside the sdk, because the unpacked sdk has no checkout around it.
fn check_crates_are_inside(folder: &Path, metadata: &serde_json::Value) -> Result<()> {
    let folder =
        fs::canonicalize(folder).with_context(|| format!("looking for `{}`", folder.display()))?;
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let manifest = package["manifest_path"].as_str().unwrap_or_default();
        if package["source"].is_null() && !Path::new(manifest).starts_with(&folder) {
            bail!("the sdk would need `{manifest}`, which lies outside of it");
        }
    }
    Ok(())
}

/// Returns the files below a folder of the checkout, relative to its root: those that git tracks,
/// or all files without git.
fn sdk_files(root: &Path, folder: &str) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    if root.join(".git").exists() {
        let mut git = Command::new("git");
        git.current_dir(root).args(["ls-files", "-z", "--", folder]);
        let list = child::command_stdout(&mut git)?;
        files.extend(list.split('\0').filter(|path| !path.is_empty()).map(PathBuf::from));
        // A file may be deleted but not yet committed as deleted.
        files.retain(|file| root.join(file).is_file());
    } else if root.join(folder).is_dir() {
        collect_files(root, Path::new(folder), &mut files)?;
    }
    files.retain(|file| is_sdk_file(file));
    Ok(files)
}

fn collect_files(root: &Path, folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let describe = || format!("reading `{}`", root.join(folder).display());
    for entry in fs::read_dir(root.join(folder)).with_context(describe)? {
        let entry = entry.with_context(describe)?;
        let path = folder.join(entry.file_name());
        if entry.file_type().with_context(describe)?.is_dir() {
            collect_files(root, &path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}

/// Returns true if the sdk includes a file. It omits files for our own tests, but keeps the tests
/// of examples.
fn is_sdk_file(file: &Path) -> bool {
    let named =
        |part: std::path::Component<'_>| LEFT_OUT.iter().any(|name| part.as_os_str() == *name);
    // These embed the host, which the sdk does not include.
    let is_program = file
        .strip_prefix(EXAMPLES)
        .is_ok_and(|file| EMBEDDERS.iter().any(|start| file.to_string_lossy().starts_with(start)));
    if is_program {
        return false;
    }
    let is_example = file.starts_with(EXAMPLES);
    is_example && !file.components().any(|part| part.as_os_str() == "target")
        || !is_example && !file.components().any(named)
}

fn copy_file(root: &Path, file: &Path, folder: &Path) -> Result<()> {
    let (from, to) = (root.join(file), folder.join(file));
    if !from.is_file() {
        bail!("`{}` is missing, and the sdk must have it", from.display());
    }
    let parent = to.parent().unwrap_or(folder);
    fs::create_dir_all(parent).with_context(|| format!("making `{}`", parent.display()))?;
    place_file(&from, &to)
}

fn read_text(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("reading `{}`", path.display()))
}

fn write_text(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("writing `{}`", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn sdk_leaves_out_crate_tests_and_keeps_example_tests() {
        for wanted in [
            "plugin-api/src/abi.rs",
            "plugin-api/testkit/src/lib.rs",
            "docs/examples/tool-a/tests/conformance.rs",
        ] {
            assert!(is_sdk_file(Path::new(wanted)), "{wanted}");
        }
        for left_out in [
            "plugin-api/sdk/tests/specs.rs",
            "plugin-api/sdk/public-api.txt",
            "plugin-api/testkit/fixtures/echo/Cargo.toml",
            "plugin-api/vendors/Cargo.toml",
            "plugin-api/target/debug/a",
            "docs/examples/tool-a/target/debug/a",
            "docs/examples/embed-chat/src/main.rs",
            "docs/examples/modlog/Cargo.toml",
        ] {
            assert!(!is_sdk_file(Path::new(left_out)), "{left_out}");
        }
    }

    #[test]
    fn sdk_examples_leave_out_fixtures() {
        let ours = include_str!("../../../docs/examples/Cargo.toml");
        let theirs = remove_fixtures(ours);
        assert_eq!(theirs.lines().count() + 1, ours.lines().count());
        assert!(theirs.contains("\"tool-*\"") && !theirs.contains("fixtures"), "{theirs}");
    }

    #[test]
    fn path_dependency_outside_the_sdk_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let inside = folder.path().canonicalize().unwrap().join("plugin-api/Cargo.toml");
        let package = |manifest: &Path, source: Option<&str>| json!({ "manifest_path": manifest, "source": source });
        let check = |packages: &[serde_json::Value]| {
            check_crates_are_inside(folder.path(), &json!({ "packages": packages }))
        };
        let outside = Path::new("/elsewhere/Cargo.toml");
        check(&[package(&inside, None), package(outside, Some("registry"))]).unwrap();
        let error = check(&[package(outside, None)]).unwrap_err().to_string();
        assert!(error.contains("/elsewhere/Cargo.toml"), "{error}");
    }
}
