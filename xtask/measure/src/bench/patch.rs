//! Many distinct plugins out of one: the fixture `echo`, with other names written over its own.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use xtask::artifacts::{self, CargoShows, Selection};
use xtask::gather::close_to_others;
use xtask::workspace::Workspace;

/// The fixture's names, as they stand in its file; the new ones have the same lengths.
const PLUGIN: &str = "fixture-echo";
const TOOL: &str = "count_bytes_echo";

/// Builds the fixture.
pub fn build(workspace: &Workspace) -> Result<PathBuf> {
    let built =
        artifacts::build(workspace, "release", Selection::Fixture("echo"), &mut CargoShows)?;
    built.fixture(workspace, "echo")
}

/// The name of a copy's plugin.
fn plugin(number: usize) -> String {
    format!("bench-p-{number:04}")
}

/// The name of a copy's tool.
pub fn tool(number: usize) -> String {
    format!("bench_tool__{number:04}")
}

/// Writes so many copies into a folder, each with names of its own.
pub fn copies(original: &Path, folder: &Path, count: usize) -> Result<()> {
    let bytes = fs::read(original).with_context(|| format!("reading `{}`", original.display()))?;
    fs::create_dir_all(folder).with_context(|| format!("making `{}`", folder.display()))?;
    close_to_others(folder)?;
    for number in 0..count {
        let mut copy = bytes.clone();
        replace(&mut copy, PLUGIN, &plugin(number))?;
        replace(&mut copy, TOOL, &tool(number))?;
        let file = format!("{}{}", plugin(number), std::env::consts::DLL_SUFFIX);
        let path = folder.join(file);
        fs::write(&path, copy).with_context(|| format!("writing `{}`", path.display()))?;
        close_to_others(&path)?;
    }
    Ok(())
}

/// Writes one name over another of the same length, wherever it stands.
fn replace(bytes: &mut [u8], from: &str, to: &str) -> Result<()> {
    if from.len() != to.len() {
        bail!("`{to}` is not as long as `{from}`");
    }
    let mut at = 0;
    let mut found = false;
    while let Some(place) = bytes.get(at..at + from.len()) {
        if place == from.as_bytes() {
            bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
            found = true;
        }
        at += 1;
    }
    if !found {
        bail!("the name `{from}` does not stand in the fixture's file");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_names_are_as_long_as_the_old_ones() {
        for number in [0, 7, 199] {
            assert_eq!(plugin(number).len(), PLUGIN.len());
            assert_eq!(tool(number).len(), TOOL.len());
        }
    }

    #[test]
    fn a_name_is_replaced_wherever_it_stands_and_must_stand_somewhere() {
        let mut bytes = b"ab-ab-b".to_vec();
        replace(&mut bytes, "ab", "xy").unwrap();
        assert_eq!(bytes, b"xy-xy-b");
        assert!(replace(&mut bytes, "ab", "xy").is_err());
        assert!(replace(&mut bytes, "xy", "x").is_err());
    }
}
