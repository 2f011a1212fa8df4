//! Builds packages with cargo, and finds the built files in its messages.
//!
//! File names and folders depend on the system, the profile and the target. Only cargo's own
//! messages are always right.

use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
use std::io::{BufRead, BufReader, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::child;
use crate::workspace::{CargoWorkspace, WorkspacePackage};

/// The targets to build.
#[derive(Debug, Clone, Copy)]
pub enum BuildSelection<'a> {
    /// The named packages.
    Packages(&'a [&'a str]),
    /// All targets of all members, including tests: everything that `cargo test --workspace` runs.
    EverythingForTests,
}

/// The workspace of the fixtures and the example plugins, below the root.
const EXAMPLES: &str = "docs/examples";

/// A file or a set of files that cargo has built, or found to be up to date.
#[derive(Debug, Clone, PartialEq, Eq)]
struct CargoArtifact {
    manifest: PathBuf,
    target: String,
    kinds: Vec<String>,
    files: Vec<PathBuf>,
    executable: Option<PathBuf>,
    is_test: bool,
    fresh: bool,
}

/// A program that contains tests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestProgram {
    /// The package and the target, such as `jaato it`.
    pub name: String,
    /// The file.
    pub path: PathBuf,
    /// The package's folder, in which cargo runs tests.
    pub folder: PathBuf,
}

/// The files of a build.
#[derive(Debug)]
pub struct BuildArtifacts {
    artifacts: Vec<CargoArtifact>,
    /// The number of warnings from the compiler and Clippy, including those that cargo replays.
    pub warnings: usize,
}

/// Builds, with cargo's own progress on the terminal if `watch` allows it.
pub fn build_artifacts(
    workspace: &CargoWorkspace,
    profile: &str,
    selection: BuildSelection<'_>,
    watch: &mut dyn BuildObserver,
) -> Result<BuildArtifacts> {
    let mut command = child::cargo_command(&workspace.root);
    let format = match std::io::stderr().is_terminal() {
        true => "--message-format=json-diagnostic-rendered-ansi",
        false => "--message-format=json",
    };
    command.args(["build", "--profile", profile, format]);
    if watch.is_quiet() {
        command.arg("--quiet");
    }
    match selection {
        BuildSelection::Packages(names) => {
            for name in names {
                command.args(["-p", name]);
            }
        }
        BuildSelection::EverythingForTests => {
            command.args(["--workspace", "--all-targets"]);
            enable_lints(&mut command)?;
        }
    }
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("starting {}", child::command_text(&command)))?;
    let (mut artifacts, mut warnings) = (Vec::new(), 0);
    let lines = child.stdout.take().context("cargo has no standard output")?;
    for line in BufReader::new(lines).lines() {
        match parse_message(&line.context("reading cargo's messages")?)? {
            Some(CargoMessage::Artifact(artifact)) => {
                if !artifact.fresh {
                    watch.on_crate_compiled();
                }
                artifacts.push(artifact);
            }
            Some(CargoMessage::Diagnostic { text, is_warning }) => {
                warnings += usize::from(is_warning);
                eprint!("{text}");
            }
            None => {}
        }
    }
    let status = child.wait().context("waiting for cargo")?;
    watch.on_build_ended();
    child::check_status(&command, status)?;
    Ok(BuildArtifacts { artifacts, warnings })
}

/// Makes cargo compile the workspace's crates with Clippy's compiler, which checks them and
/// generates code in one pass. Separate runs of `cargo clippy` and `cargo build` would each read
/// all crates and dependencies.
///
/// # Errors
/// The toolchain has no Clippy.
pub fn enable_lints(command: &mut Command) -> Result<()> {
    let sysroot = child::command_stdout(Command::new("rustc").args(["--print", "sysroot"]))?;
    let driver = Path::new(sysroot.trim_end()).join("bin/clippy-driver");
    if !driver.is_file() {
        bail!("`{}` is missing; `rustup component add clippy` installs it", driver.display());
    }
    command.env("RUSTC_WORKSPACE_WRAPPER", driver);
    Ok(())
}

/// Builds the fixtures and the example plugins together. Does nothing in a checkout without them.
pub fn build_fixtures(workspace: &CargoWorkspace) -> Result<()> {
    let folder = workspace.root.join(EXAMPLES);
    if !folder.is_dir() {
        return Ok(());
    }
    let mut command = child::cargo_command(&folder);
    command.args(["build", "--locked", "--target-dir"]).arg(workspace.target.join("fixtures"));
    child::run_command(&mut command)
}

/// Observes a running build.
pub trait BuildObserver {
    /// Returns true if cargo must not show its own progress.
    fn is_quiet(&self) -> bool;
    /// Called after a crate was compiled.
    fn on_crate_compiled(&mut self) {}
    /// Called after the last crate.
    fn on_build_ended(&mut self) {}
}

/// Leaves the progress to cargo.
pub struct PassthroughBuildObserver;

impl BuildObserver for PassthroughBuildObserver {
    fn is_quiet(&self) -> bool {
        false
    }
}

impl BuildArtifacts {
    /// Returns the binary with this name.
    pub fn find_binary(&self, name: &str) -> Result<&Path> {
        self.artifacts
            .iter()
            .filter(|artifact| !artifact.is_test && artifact.kinds.iter().any(|k| k == "bin"))
            .find(|artifact| artifact.target == name)
            .and_then(|artifact| artifact.executable.as_deref())
            .with_context(|| format!("cargo has built no binary `{name}`"))
    }

    /// Returns the dynamic libraries of the workspace's plugins, one each, sorted by package name.
    pub fn plugin_libraries(&self, workspace: &CargoWorkspace) -> Result<Vec<PathBuf>> {
        workspace
            .plugin_packages()
            .iter()
            .map(|package| {
                let manifest = workspace.root.join(&package.folder).join("Cargo.toml");
                self.find_library(&manifest)
                    .with_context(|| format!("cargo has built no library of `{}`", package.name))
            })
            .collect()
    }

    /// Returns the dynamic library of one of the workspace's plugins.
    pub fn plugin_library(&self, workspace: &CargoWorkspace, name: &str) -> Result<PathBuf> {
        let package = workspace.plugin_packages().into_iter().find(|package| package.name == name);
        let package = package.with_context(|| format!("unknown plugin `{name}`"))?;
        let manifest = workspace.root.join(&package.folder).join("Cargo.toml");
        self.find_library(&manifest).with_context(|| {
            format!(
                "cargo built no dynamic library for `{name}`: check `crate-type` in its Cargo.toml"
            )
        })
    }

    /// Returns the test programs of the workspace's packages.
    pub fn test_programs(&self, workspace: &CargoWorkspace) -> Vec<TestProgram> {
        let tests = self.artifacts.iter().filter(|artifact| artifact.is_test);
        tests
            .filter_map(|artifact| {
                let folder = artifact.manifest.parent()?;
                let is_this =
                    |package: &&WorkspacePackage| workspace.root.join(&package.folder) == folder;
                let package = workspace.packages.iter().find(is_this)?;
                Some(TestProgram {
                    name: format!("{} {}", package.name, artifact.target),
                    path: artifact.executable.clone()?,
                    folder: folder.to_owned(),
                })
            })
            .collect()
    }

    fn find_library(&self, manifest: &Path) -> Option<PathBuf> {
        self.artifacts
            .iter()
            .filter(|artifact| !artifact.is_test && artifact.manifest == manifest)
            .filter(|artifact| artifact.kinds.iter().any(|kind| kind == "cdylib"))
            .flat_map(|artifact| &artifact.files)
            .find(|file| is_dynamic_library(file))
            .cloned()
    }
}

/// Returns true for a library, but not for the import libraries, debug symbols and rlibs next to
/// it.
pub fn is_dynamic_library(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with(DLL_PREFIX) && name.ends_with(DLL_SUFFIX)
}

/// A message from cargo.
#[derive(Debug)]
enum CargoMessage {
    Artifact(CargoArtifact),
    /// A compiler message about the sources.
    Diagnostic {
        text: String,
        is_warning: bool,
    },
}

/// Parses one line of cargo's messages. Build programs write other lines.
fn parse_message(line: &str) -> Result<Option<CargoMessage>> {
    if !line.starts_with('{') {
        return Ok(None);
    }
    let message: Value = serde_json::from_str(line).context("reading cargo's messages")?;
    match message["reason"].as_str() {
        Some("compiler-artifact") => Ok(Some(CargoMessage::Artifact(parse_artifact(&message)?))),
        Some("compiler-message") => {
            let diagnostic = &message["message"];
            Ok(Some(CargoMessage::Diagnostic {
                text: diagnostic["rendered"].as_str().unwrap_or_default().to_owned(),
                is_warning: diagnostic["level"] == "warning",
            }))
        }
        _ => Ok(None),
    }
}

fn parse_artifact(message: &Value) -> Result<CargoArtifact> {
    let target = &message["target"];
    let (Some(manifest), Some(name)) = (message["manifest_path"].as_str(), target["name"].as_str())
    else {
        bail!("cargo's message about an artifact names no package: {message}");
    };
    Ok(CargoArtifact {
        manifest: manifest.into(),
        target: name.to_owned(),
        kinds: string_items(&target["kind"]).map(str::to_owned).collect(),
        files: string_items(&message["filenames"]).map(PathBuf::from).collect(),
        executable: message["executable"].as_str().map(PathBuf::from),
        is_test: message["profile"]["test"] == true,
        fresh: message["fresh"] == true,
    })
}

fn string_items(value: &Value) -> impl Iterator<Item = &str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn artifact_message(name: &str, kinds: &[&str], files: &[String], test: bool) -> String {
        json!({
            "reason": "compiler-artifact", "manifest_path": format!("/w/plugins/{name}/Cargo.toml"),
            "target": {"name": name.replace('-', "_"), "kind": kinds},
            "profile": {"test": test}, "filenames": files,
            "executable": test.then(|| files[0].clone()), "fresh": false,
        })
        .to_string()
    }

    fn parse_artifacts(lines: &[String]) -> BuildArtifacts {
        let artifact = |line: &String| match parse_message(line).unwrap()? {
            CargoMessage::Artifact(artifact) => Some(artifact),
            CargoMessage::Diagnostic { .. } => None,
        };
        BuildArtifacts { artifacts: lines.iter().filter_map(artifact).collect(), warnings: 0 }
    }

    fn workspace_with_plugins(plugins: &[&str]) -> CargoWorkspace {
        let package = |name: &&str| WorkspacePackage {
            name: (*name).to_owned(),
            folder: format!("plugins/{name}"),
            is_dynamic: true,
            ..WorkspacePackage::default()
        };
        CargoWorkspace {
            root: "/w".into(),
            target: "/w/target".into(),
            packages: plugins.iter().map(package).collect(),
        }
    }

    #[test]
    fn plugin_library_is_distinguished_from_rlibs_import_libs_and_tests() {
        let library = format!("/t/{DLL_PREFIX}gc_a{DLL_SUFFIX}");
        let files = ["/t/libgc_a.rlib".into(), library.clone(), format!("{library}.lib")];
        let lines = [
            artifact_message("gc-a", &["cdylib", "rlib"], &["/t/deps/gc_a-123".into()], true),
            artifact_message("gc-a", &["cdylib", "rlib"], &files, false),
            "a build program says something".into(),
            json!({"reason": "build-finished", "success": true}).to_string(),
        ];
        let found =
            parse_artifacts(&lines).plugin_libraries(&workspace_with_plugins(&["gc-a"])).unwrap();
        assert_eq!(found, [PathBuf::from(library)]);
    }

    #[test]
    fn a_plugin_without_a_library_is_an_error_that_names_it() {
        let error =
            parse_artifacts(&[]).plugin_libraries(&workspace_with_plugins(&["gc-a"])).unwrap_err();
        assert_eq!(error.to_string(), "cargo has built no library of `gc-a`");
    }

    #[test]
    fn warnings_are_distinguished_from_other_diagnostics() {
        let line = |level: &str| {
            let message = json!({"rendered": "text\n", "level": level});
            json!({"reason": "compiler-message", "message": message}).to_string()
        };
        for (level, expected) in [("warning", true), ("error", false), ("note", false)] {
            let Some(CargoMessage::Diagnostic { text, is_warning }) =
                parse_message(&line(level)).unwrap()
            else {
                unreachable!("{level} is not a diagnostic")
            };
            assert_eq!((text.as_str(), is_warning), ("text\n", expected), "{level}");
        }
    }

    #[test]
    fn the_binary_is_not_mistaken_for_its_tests() {
        let test = artifact_message("jaato", &["bin"], &["/t/deps/jaato-1".into()], true);
        assert!(parse_artifacts(std::slice::from_ref(&test)).find_binary("jaato").is_err());
        let mut real: Value =
            serde_json::from_str(&artifact_message("jaato", &["bin"], &["/t/jaato".into()], false))
                .unwrap();
        real["executable"] = json!("/t/jaato");
        let built = parse_artifacts(&[test, real.to_string()]);
        assert_eq!(built.find_binary("jaato").unwrap(), Path::new("/t/jaato"));
    }
}
