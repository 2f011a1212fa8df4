//! `run`: builds what is needed and then replaces itself with `jaato run …`.
//!
//! A plugin whose `Cargo.toml` lists options under `[package.metadata.jaato] asked-by` is built
//! only if one of them is given or if it was built before, so that the first run builds less.
//!
//! Prints nothing if everything is built. Otherwise prints one line, and a count on a terminal.

use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
use std::ffi::{OsStr, OsString};
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};

use crate::artifacts::{self, BuildObserver, BuildSelection};
use crate::build_plugins::HOST;
use crate::child;
use crate::gather::gather_plugins;
use crate::workspace::{CargoWorkspace, WorkspacePackage};

/// The duration of a release build from scratch on two cores.
const FIRST_BUILD_MINUTES: u32 = 15;

/// Allows jaato to download the weights of its own model.
const DOWNLOAD: &str = "JAATO_LOCAL_DOWNLOAD";

/// Runs the chore.
pub fn run_jaato(words: Vec<OsString>) -> Result<ExitCode> {
    let workspace = CargoWorkspace::load()?;
    let names = plugins_for_words(&workspace, &words);
    let jaato = build_and_collect(&workspace, &names)?;
    let mut command = Command::new(&jaato);
    command.arg("run").args(words);
    // A user who runs `cargo xtask run` agrees to the download of the model.
    if std::env::var_os(DOWNLOAD).is_none() {
        command.env(DOWNLOAD, "true");
    }
    child::clear_cargo_variables(&mut command);
    child::exec_command(command).with_context(|| format!("starting `{}`", jaato.display()))
}

/// Builds the binary and all plugins, collects them where `jaato` finds them, and returns the
/// binary.
pub fn build_release(workspace: &CargoWorkspace) -> Result<PathBuf> {
    let names: Vec<&str> =
        workspace.plugin_packages().iter().map(|plugin| plugin.name.as_str()).collect();
    build_and_collect(workspace, &names)
}

/// Returns the plugins for a run with these words: all except those that only other options need.
/// Plugins that `build-plugins` has collected stay, so they must be rebuilt too.
fn plugins_for_words<'a>(workspace: &'a CargoWorkspace, words: &[OsString]) -> Vec<&'a str> {
    let gathered = file_names(&workspace.target.join("plugins"));
    let is_needed = |plugin: &&&WorkspacePackage| {
        let asked = |option: &String| words.iter().any(|word| is_option(word, option));
        plugin.asked_by.is_empty()
            || plugin.asked_by.iter().any(asked)
            || gathered.contains(&library_name(&plugin.name))
    };
    let plugins = workspace.plugin_packages();
    plugins.iter().filter(is_needed).map(|plugin| plugin.name.as_str()).collect()
}

/// Returns true for `--option` and for `--option=value`.
fn is_option(word: &OsStr, option: &str) -> bool {
    let rest = word.to_str().and_then(|word| word.strip_prefix(option));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
}

/// Returns cargo's name for the dynamic library of a package.
fn library_name(package: &str) -> OsString {
    format!("{DLL_PREFIX}{}{DLL_SUFFIX}", package.replace('-', "_")).into()
}

/// Returns the names in a folder. Empty if it does not exist yet.
fn file_names(folder: &Path) -> Vec<OsString> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name()).collect()
}

/// Builds the binary and these plugins, and collects them.
fn build_and_collect(workspace: &CargoWorkspace, plugins: &[&str]) -> Result<PathBuf> {
    let names = [&[HOST], plugins].concat();
    let mut progress = BuildProgress::new(!workspace.target.join("release").is_dir());
    let selection = BuildSelection::Packages(&names);
    let built = artifacts::build_artifacts(workspace, "release", selection, &mut progress)?;
    let jaato = built.find_binary(HOST)?;
    let files = plugins.iter().map(|name| built.plugin_library(workspace, name));
    gather_plugins(&files.collect::<Result<Vec<_>>>()?, &plugins_folder(jaato, workspace))?;
    Ok(jaato.to_path_buf())
}

/// Returns `../plugins` relative to the binary, where it looks for plugins. That is `plugins` in
/// the target folder, unless cargo builds for a named target.
fn plugins_folder(jaato: &Path, workspace: &CargoWorkspace) -> PathBuf {
    jaato.parent().and_then(Path::parent).unwrap_or(&workspace.target).join("plugins")
}

/// Prints one line when the first crate is compiled, and a count if the line can be rewritten.
struct BuildProgress {
    first_time: bool,
    counted: usize,
    terminal: bool,
}

impl BuildProgress {
    fn new(first_time: bool) -> Self {
        let mut progress =
            Self { first_time, counted: 0, terminal: std::io::stderr().is_terminal() };
        if first_time {
            progress.print_progress();
        }
        progress
    }

    fn print_progress(&mut self) {
        eprintln!("{}", opening_text(self.first_time));
    }
}

fn opening_text(first_time: bool) -> String {
    if first_time {
        format!(
            "building jaato and its plugins (the first time about {FIRST_BUILD_MINUTES} minutes) …"
        )
    } else {
        "building jaato and its plugins …".to_owned()
    }
}

impl BuildObserver for BuildProgress {
    fn is_quiet(&self) -> bool {
        true
    }

    fn on_crate_compiled(&mut self) {
        if self.counted == 0 && !self.first_time {
            self.print_progress();
        }
        self.counted += 1;
        if self.terminal {
            eprint!("\r{} crates compiled", self.counted);
            // A failure to show the count must not stop the build.
            let _ = std::io::stderr().flush();
        }
    }

    fn on_build_ended(&mut self) {
        if self.terminal && self.counted > 0 {
            eprint!("\r\x1b[K");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plugin_is_built_by_default_on_request_or_if_built_before() {
        let target = tempfile::tempdir().unwrap();
        let package = |name: &str, asked_by: &[&str]| WorkspacePackage {
            name: name.into(),
            version: "0.1.0".into(),
            folder: format!("plugins/{name}"),
            asked_by: asked_by.iter().map(|option| (*option).to_owned()).collect(),
            is_dynamic: true,
            ..WorkspacePackage::default()
        };
        let packages = vec![package("gc-a", &[]), package("tool-b", &["--box", "--in"])];
        let workspace =
            CargoWorkspace { root: "/w".into(), target: target.path().into(), packages };
        let needed = |words: &str| {
            let words: Vec<OsString> = words.split(' ').map(OsString::from).collect();
            plugins_for_words(&workspace, &words).join(" ")
        };
        for words in ["", "what is in the --box?", "--boxes 2", "box"] {
            assert_eq!(needed(words), "gc-a", "{words}");
        }
        for words in ["--box red open", "--offline --in=red"] {
            assert_eq!(needed(words), "gc-a tool-b", "{words}");
        }
        let plugins = target.path().join("plugins");
        std::fs::create_dir(&plugins).unwrap();
        assert_eq!(needed(""), "gc-a");
        std::fs::write(plugins.join(library_name("tool-b")), "").unwrap();
        assert_eq!(needed(""), "gc-a tool-b");
    }

    #[test]
    fn plugins_are_put_where_the_binary_finds_them() {
        let workspace =
            CargoWorkspace { root: "/w".into(), target: "/t".into(), packages: Vec::new() };
        let place = |jaato: &str| plugins_folder(Path::new(jaato), &workspace);
        assert_eq!(place("/t/release/jaato"), Path::new("/t/plugins"));
        assert_eq!(place("/t/triple/release/jaato"), Path::new("/t/triple/plugins"));
    }

    #[test]
    fn first_run_announces_its_duration() {
        assert!(opening_text(true).contains("minutes"));
        assert!(!opening_text(false).contains("minutes"));
    }
}
