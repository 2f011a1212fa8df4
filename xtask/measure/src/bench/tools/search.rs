//! Searches of 100,000 files, against `rg` with the same result.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::super::ROUNDS;
use super::super::installed::Installed;
use super::super::table::{Figure, Target};
use super::keep;
use crate::batch::Batch;
use xtask::child;

/// A call may take this many times what `rg` does.
const RG_TIMES_MAX: f64 = 2.0;

const FILES: usize = 100_000;
const FILES_PER_FOLDER: usize = 50;
/// One file of so many has the word that is looked for.
const MATCH_EVERY: usize = 250;
/// One file of so many is a source.
const SOURCE_EVERY: usize = 10;

/// Measures searches; nothing where there is no `rg`, which is said.
pub fn search(installed: &Installed) -> Result<Vec<Figure>> {
    let Some(rg) = on_path("rg") else {
        eprintln!("no `rg` to compare searches with: install `ripgrep`");
        return Ok(Vec::new());
    };
    let tree = installed.file("tree");
    make_tree(&tree).with_context(|| format!("making `{}`", tree.display()))?;
    let measured = measure(installed, &rg, &tree);
    fs::remove_dir_all(&tree).with_context(|| format!("removing `{}`", tree.display()))?;
    measured
}

fn measure(installed: &Installed, rg: &Path, tree: &Path) -> Result<Vec<Figure>> {
    let mut session = installed.start(&[], &[])?;
    let grep = json!({ "pattern": r"moon\w+", "path": "tree", "max_results": 10_000 });
    let matches = ["--line-number", "--column", "--context=2", r"moon\w+", "."];
    let glob = json!({ "pattern": "**/*.rs", "root": "tree", "max_results": 10_000 });
    let files = ["--files", "--glob=*.rs", "--sortr=modified"];
    let (mut ours, mut theirs) = ([f64::INFINITY; 2], [f64::INFINITY; 2]);
    for _ in 0..ROUNDS {
        let found = FILES / MATCH_EVERY;
        keep(&mut ours[0], || called(&mut session, "grep_content", &grep, "total_matches", found))?;
        keep(&mut theirs[0], || ran(rg, &matches, tree, "let moon", found))?;
        let found = FILES / SOURCE_EVERY;
        keep(&mut ours[1], || called(&mut session, "glob_files", &glob, "total", found))?;
        keep(&mut theirs[1], || ran(rg, &files, tree, ".rs", found))?;
    }
    session.end()?;
    let names = ["`grep_content` in 100,000 files", "`glob_files` in 100,000 files, newest first"];
    let mut figures = Vec::new();
    for (at, name) in names.into_iter().enumerate() {
        let plain = format!("tools: {name}, by `rg`");
        figures.push(Figure::new(&plain, theirs[at], "ms", Target::None));
        let times = format!("tools: {name}, to `rg`");
        let target = Target::AtMost(RG_TIMES_MAX);
        figures.push(Figure::new(&times, ours[at] / theirs[at], "times", target));
    }
    Ok(figures)
}

/// Calls a tool; it must find so much.
fn called(
    session: &mut Batch,
    tool: &str,
    arguments: &Value,
    key: &str,
    found: usize,
) -> Result<()> {
    let told = session.call(tool, arguments)?;
    // A result that is cut begins with what was asked for, and still is not what is measured.
    if told[key] != found {
        bail!("`{tool}` found {}, not {found}", told[key]);
    }
    Ok(())
}

/// Runs `rg` in the tree; it must print so many lines with a word.
fn ran(rg: &Path, words: &[&str], tree: &Path, word: &str, found: usize) -> Result<()> {
    let mut command = Command::new(rg);
    command.args(["--no-config", "--color=never"]).args(words).current_dir(tree);
    let printed = child::output(command.stdin(Stdio::null()))?;
    let lines = printed.lines().filter(|line| line.contains(word)).count();
    if lines != found {
        bail!("`rg` found {lines}, not {found}");
    }
    Ok(())
}

/// Files of some lines each, as sources have them.
fn make_tree(tree: &Path) -> std::io::Result<()> {
    for at in 0..FILES {
        let number = at / FILES_PER_FOLDER;
        let folder = tree.join(format!("a{}", number / 50)).join(format!("b{}", number % 50));
        if at % FILES_PER_FOLDER == 0 {
            fs::create_dir_all(&folder)?;
        }
        let ending = if at % SOURCE_EVERY == 0 { "rs" } else { "txt" };
        let mut text = format!("fn number_{at}() {{\n    let sum = {at} + 1;\n}}\n").repeat(10);
        if at % MATCH_EVERY == 0 {
            text.push_str(&format!("let moon{at} = 1;\n"));
        }
        fs::write(folder.join(format!("file_{at}.{ending}")), text)?;
    }
    Ok(())
}

fn on_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}
