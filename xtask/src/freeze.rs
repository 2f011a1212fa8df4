//! `freeze`: keeps a copy of the sources that plugins are built from, with which a test builds a
//! plugin for ever.
//!
//! Until the boundary is frozen the copy is written anew with each change of it; the tag ends that.
//! Nobody compares it with the present sources: that it differs from them, and its plugin still
//! runs, is the point.

use std::ffi::OsString;
use std::fs;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};

use crate::child;
use crate::dist::sdk;
use crate::workspace::Workspace;

/// Where the copy lies. Not formatted, not tidied, no part of the workspace.
pub const FOLDER: &str = "plugin-api/testkit/fixtures/abi-1";

/// What a plugin is built from.
pub const CRATES: &[&str] =
    &["plugin-api", "plugin-api/macros", "plugin-api/sdk", "plugin-api/types"];

/// The plugin that a test builds from the copy. Written by hand, and not touched here.
pub const PLUGIN: &str = "plugin";

/// The tag that freezes the boundary.
const TAG: &str = "abi-1";

/// Runs the chore.
pub fn start(words: Vec<OsString>) -> Result<ExitCode> {
    if let Some(argument) = lexopt::Parser::from_args(words).next()? {
        return Err(argument.unexpected().into());
    }
    let workspace = Workspace::load()?;
    let mut git = Command::new("git");
    let tag = child::output(git.current_dir(&workspace.root).args(["tag", "--list", TAG]))?;
    if !tag.trim().is_empty() {
        bail!("the boundary is frozen by the tag `{TAG}`: its sources stay as they are");
    }
    let folder = workspace.root.join(FOLDER);
    let copy = folder.join("plugin-api");
    if copy.exists() {
        fs::remove_dir_all(&copy).with_context(|| format!("removing `{}`", copy.display()))?;
    }
    sdk::lay_out_crates(&workspace.root, CRATES, PLUGIN, &folder)?;
    println!("written: `{FOLDER}`");
    Ok(ExitCode::SUCCESS)
}
