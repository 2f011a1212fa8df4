//! `build-plugins`: builds all plugins and collects them where `jaato` finds them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Result, bail};

use crate::artifacts::{self, BuildSelection, PassthroughBuildObserver};
use crate::child;
use crate::gather::gather_plugins;
use crate::workspace::CargoWorkspace;

/// The binary's package and target.
pub const HOST: &str = "jaato";

struct BuildPluginsOptions {
    profile: String,
    folder: Option<PathBuf>,
}

/// Runs the chore.
pub fn run_build_plugins(words: Vec<OsString>) -> Result<ExitCode> {
    let options = parse_options(words)?;
    let workspace = CargoWorkspace::load()?;
    let names: Vec<&str> =
        workspace.plugin_packages().iter().map(|plugin| plugin.name.as_str()).collect();
    if names.is_empty() {
        bail!("`plugins/` contains no plugin");
    }
    let selection = BuildSelection::Packages(&names);
    let built = artifacts::build_artifacts(
        &workspace,
        &options.profile,
        selection,
        &mut PassthroughBuildObserver,
    )?;
    let folder = options.folder.unwrap_or_else(|| workspace.target.join("plugins"));
    let files = gather_plugins(&built.plugin_libraries(&workspace)?, &folder)?;
    for file in &files {
        println!("{}", file.display());
    }
    let jaato = binary_path(&workspace.target, &options.profile);
    if jaato.is_file() {
        check_plugin_files(&jaato, &files)?;
    } else {
        println!("not checked by `jaato plugin check`: `{}` is not built yet", jaato.display());
    }
    Ok(ExitCode::SUCCESS)
}

fn parse_options(words: Vec<OsString>) -> Result<BuildPluginsOptions, lexopt::Error> {
    use lexopt::prelude::*;

    let mut options = BuildPluginsOptions { profile: "release".to_owned(), folder: None };
    let mut parser = lexopt::Parser::from_args(words);
    while let Some(argument) = parser.next()? {
        match argument {
            Long("profile") => options.profile = parser.value()?.string()?,
            Long("dest") => options.folder = Some(PathBuf::from(parser.value()?)),
            _ => return Err(argument.unexpected()),
        }
    }
    Ok(options)
}

/// Returns the path of a profile's binary in the target folder.
fn binary_path(target: &Path, profile: &str) -> PathBuf {
    // For the profile `dev`, cargo still uses the old folder name.
    let folder = if profile == "dev" { "debug" } else { profile };
    target.join(folder).join(format!("{HOST}{}", std::env::consts::EXE_SUFFIX))
}

/// Checks each file with `jaato plugin check`. Checks all of them, so that one run shows all
/// faults.
pub fn check_plugin_files(jaato: &Path, files: &[PathBuf]) -> Result<()> {
    let mut bad = Vec::new();
    for file in files {
        let mut command = Command::new(jaato);
        command.args(["plugin", "check"]).arg(file);
        if child::run_command(&mut command).is_err() {
            bad.push(format!("`{}`", file.display()));
        }
    }
    if !bad.is_empty() {
        bail!("`jaato plugin check` has refused {}", bad.join(", "));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split_words(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    #[test]
    fn default_options_are_release_and_the_usual_folder() {
        let options = parse_options(split_words("")).unwrap();
        assert_eq!((options.profile.as_str(), options.folder), ("release", None));
        let options = parse_options(split_words("--profile dev --dest /p")).unwrap();
        assert_eq!((options.profile.as_str(), options.folder), ("dev", Some("/p".into())));
        assert!(parse_options(split_words("--prfile dev")).is_err());
    }

    #[test]
    fn the_folder_of_the_dev_profile_is_called_debug() {
        assert!(binary_path(Path::new("/t"), "dev").starts_with("/t/debug"));
        assert!(binary_path(Path::new("/t"), "dist").starts_with("/t/dist"));
    }

    #[test]
    fn all_refused_files_are_named() {
        let files = ["/a.so".into(), "/b.so".into()];
        let error = check_plugin_files(Path::new("false"), &files).unwrap_err().to_string();
        assert_eq!(error, "`jaato plugin check` has refused `/a.so`, `/b.so`");
        check_plugin_files(Path::new("true"), &files).unwrap();
    }
}
