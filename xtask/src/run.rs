//! `run`: builds what is needed and then becomes `jaato run …`.
//!
//! Quiet when all is built already; else one calm line, and a count on a terminal.

use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};

use crate::artifacts::{self, Selection, Watch};
use crate::build_plugins::HOST;
use crate::child;
use crate::gather::gather;
use crate::workspace::Workspace;

/// A release build from nothing, on two cores.
const FIRST_BUILD_MINUTES: u32 = 8;

/// Runs the chore.
pub fn start(words: Vec<OsString>) -> Result<ExitCode> {
    let workspace = Workspace::load()?;
    let jaato = build_release(&workspace)?;
    let mut command = Command::new(&jaato);
    command.arg("run").args(words);
    child::without_cargo_variables(&mut command);
    child::become_command(command).with_context(|| format!("starting `{}`", jaato.display()))
}

/// Builds the binary and all plugins and gathers them as `jaato` finds them; gives the binary.
pub fn build_release(workspace: &Workspace) -> Result<PathBuf> {
    let mut names = vec![HOST];
    names.extend(workspace.plugins().iter().map(|plugin| plugin.name.as_str()));
    let mut progress = Progress::new(!workspace.target.join("release").is_dir());
    let selection = Selection::Packages(&names);
    let built = artifacts::build(workspace, "release", selection, &mut progress)?;
    let jaato = built.binary(HOST)?;
    gather(&built.plugins(workspace)?, &plugins_beside(jaato, workspace))?;
    Ok(jaato.to_path_buf())
}

/// `../plugins` from the binary, which is where it looks. That is `plugins` of the target folder,
/// unless cargo is told to build for a named target.
fn plugins_beside(jaato: &Path, workspace: &Workspace) -> PathBuf {
    jaato.parent().and_then(Path::parent).unwrap_or(&workspace.target).join("plugins")
}

/// One line when the first crate is compiled, and a count where the line can be rewritten.
struct Progress {
    first_time: bool,
    counted: usize,
    terminal: bool,
}

impl Progress {
    fn new(first_time: bool) -> Self {
        let mut progress =
            Self { first_time, counted: 0, terminal: std::io::stderr().is_terminal() };
        if first_time {
            progress.say();
        }
        progress
    }

    fn say(&mut self) {
        eprintln!("{}", opening(self.first_time));
    }
}

fn opening(first_time: bool) -> String {
    if first_time {
        format!(
            "building jaato and its plugins (the first time about {FIRST_BUILD_MINUTES} minutes) …"
        )
    } else {
        "building jaato and its plugins …".to_owned()
    }
}

impl Watch for Progress {
    fn quiet(&self) -> bool {
        true
    }

    fn compiled(&mut self) {
        if self.counted == 0 && !self.first_time {
            self.say();
        }
        self.counted += 1;
        if self.terminal {
            eprint!("\r{} crates compiled", self.counted);
            // A count that cannot be shown is no reason to stop.
            let _ = std::io::stderr().flush();
        }
    }

    fn ended(&mut self) {
        if self.terminal && self.counted > 0 {
            eprint!("\r\x1b[K");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plugins_stand_where_the_binary_looks_for_them() {
        let workspace = Workspace { root: "/w".into(), target: "/t".into(), packages: Vec::new() };
        let place = |jaato: &str| plugins_beside(Path::new(jaato), &workspace);
        assert_eq!(place("/t/release/jaato"), Path::new("/t/plugins"));
        assert_eq!(place("/t/triple/release/jaato"), Path::new("/t/triple/plugins"));
    }

    #[test]
    fn the_first_time_says_how_long_it_takes() {
        assert!(opening(true).contains("minutes"));
        assert!(!opening(false).contains("minutes"));
    }
}
