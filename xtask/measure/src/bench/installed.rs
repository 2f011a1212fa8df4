//! A copy of the release build with some plugins, and sessions of it.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use super::home::Home;
use crate::batch::Batch;
use xtask::artifacts::{self, CargoShows, Selection};
use xtask::build_plugins::HOST;
use xtask::gather::gather;
use xtask::workspace::Workspace;

/// A copy of the release build with a few plugins beside it, where they are trusted as it is.
pub struct Installed {
    pub home: Home,
    jaato: PathBuf,
}

impl Installed {
    /// Builds and copies; the person's configuration is `config`.
    pub fn new(
        workspace: &Workspace,
        name: &str,
        plugins: &[&str],
        fixtures: &[&str],
        config: &str,
    ) -> Result<Self> {
        let names = [&[HOST], plugins].concat();
        let selection = Selection::Packages(&names);
        let built = artifacts::build(workspace, "release", selection, &mut CargoShows)?;
        let mut libraries = Vec::new();
        for plugin in plugins {
            libraries.push(built.plugin(workspace, plugin)?);
        }
        for fixture in fixtures {
            let selection = Selection::Fixture(fixture);
            let built = artifacts::build(workspace, "release", selection, &mut CargoShows)?;
            libraries.push(built.fixture(workspace, fixture)?);
        }
        let home = Home::new(workspace, name)?;
        home.configure(config)?;
        let folder = home.beside("bin");
        fs::create_dir_all(&folder).with_context(|| format!("making `{}`", folder.display()))?;
        let jaato = folder.join(format!("{HOST}{}", std::env::consts::EXE_SUFFIX));
        fs::copy(built.binary(HOST)?, &jaato)
            .with_context(|| format!("copying to `{}`", jaato.display()))?;
        gather(&libraries, &home.beside("plugins"))?;
        Ok(Self { home, jaato })
    }

    /// Begins a command line.
    pub fn command(&self) -> Command {
        self.home.command(&self.jaato)
    }

    /// Starts a session.
    pub fn start(&self, variables: &[(&str, OsString)], words: &[&str]) -> Result<Batch> {
        let mut command = self.command();
        command.args(["call", "--batch"]).args(words);
        command.envs(variables.iter().map(|(name, value)| (name, value)));
        Batch::start(&mut command)
    }

    /// A file of the working directory.
    pub fn file(&self, name: &str) -> PathBuf {
        self.home.work().join(name)
    }
}
