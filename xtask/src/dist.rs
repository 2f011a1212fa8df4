//! `dist`: builds the tree that is installed on other machines.

use std::ffi::OsString;
use std::fs;
use std::process::ExitCode;

use anyhow::{Context, Result};

use crate::artifacts::{self, CargoShows, Selection};
use crate::build_plugins::{HOST, check_all};
use crate::gather::{gather, place_file};
use crate::workspace::Workspace;

/// What people get beside the programs.
const PAPERS: &[&str] = &["README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"];

/// Runs the chore.
pub fn start(words: Vec<OsString>) -> Result<ExitCode> {
    if let Some(argument) = lexopt::Parser::from_args(words).next()? {
        return Err(argument.unexpected().into());
    }
    let workspace = Workspace::load()?;
    let mut names = vec![HOST];
    names.extend(workspace.plugins().iter().map(|plugin| plugin.name.as_str()));
    let selection = Selection::Packages(&names);
    let built = artifacts::build(&workspace, "dist", selection, &mut CargoShows)?;
    let jaato = built.binary(HOST)?;

    let tree = workspace.target.join("dist").join(tree_name(&workspace)?);
    let bin = tree.join("bin");
    fs::create_dir_all(&bin).with_context(|| format!("making `{}`", bin.display()))?;
    let installed = bin.join(jaato.file_name().context("the binary has no name")?);
    place_file(jaato, &installed)?;
    let plugins =
        gather(&built.plugins(&workspace)?, &tree.join("lib").join("jaato").join("plugins"))?;
    for paper in PAPERS {
        let from = workspace.root.join(paper);
        if from.is_file() {
            place_file(&from, &tree.join(paper))?;
        }
    }
    check_all(&installed, &plugins)?;
    println!("{}", tree.display());
    Ok(ExitCode::SUCCESS)
}

fn tree_name(workspace: &Workspace) -> Result<String> {
    let host = workspace.packages.iter().find(|package| package.name == HOST);
    let version = &host.with_context(|| format!("there is no package `{HOST}`"))?.version;
    let system = std::env::consts::OS;
    Ok(format!("{HOST}-{version}-{}-{system}", std::env::consts::ARCH))
}
