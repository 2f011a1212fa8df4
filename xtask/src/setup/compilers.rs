//! The oldest compiler that plugin authors may use: from Debian's packages, unpacked, never installed.
//!
//! The tests build a plugin with it and open that with the house's own host. Only machines of the continuous
//! integration fetch it; elsewhere the tests take another compiler that rustup has.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::child;

/// The compiler, and what plugins are linked with.
const PACKAGES: [&str; 2] = ["rustc-web", "libstd-rust-web-dev"];

/// A machine without a network is told so soon.
const PATIENCE: [&str; 3] =
    ["-oAcquire::http::Timeout=20", "-oAcquire::https::Timeout=20", "-oAcquire::Retries=1"];

/// Each is named by the one before it, beginning with the last of those: the compiler's own code, and
/// what it stands on. How they begin.
const NAMED: [&str; 2] = ["libstd-rust-web-1.", "libllvm"];

/// Unpacks it below the target folder, unless it is there. Gives a line if that cannot be done.
pub fn unpack(target: &Path) -> Option<String> {
    let folder = target.join("compilers/debian");
    if folder.join("usr/bin/rustc").is_file() {
        return None;
    }
    let unpacked = fetch_into(&folder);
    let what = "the oldest compiler for plugins, from Debian's packages";
    unpacked.err().map(|error| format!("{what}: {error:#}"))
}

/// Works beside the folder and renames at the end: a folder that is there is whole.
fn fetch_into(folder: &Path) -> Result<()> {
    let beside = folder.with_extension("unfinished");
    if beside.exists() {
        fs::remove_dir_all(&beside).with_context(|| format!("removing `{}`", beside.display()))?;
    }
    let downloads = beside.join("downloads");
    fs::create_dir_all(&downloads).with_context(|| format!("making `{}`", downloads.display()))?;
    if download(&downloads).is_err() {
        child::run(Command::new("apt-get").args(PATIENCE).args(["update", "-q"]))?;
        download(&downloads)?;
    }
    for package in files_in(&downloads)? {
        child::run(Command::new("dpkg").arg("-x").arg(package).arg(&beside))?;
    }
    fs::remove_dir_all(&downloads)
        .with_context(|| format!("removing `{}`", downloads.display()))?;
    if !beside.join("usr/bin/rustc").is_file() {
        bail!("`{}` holds no `rustc`", PACKAGES[0]);
    }
    fs::rename(&beside, folder).with_context(|| format!("making `{}`", folder.display()))
}

fn download(folder: &Path) -> Result<()> {
    let mut packages: Vec<String> = PACKAGES.iter().map(|&name| name.to_owned()).collect();
    for beginning in NAMED {
        let before = packages.last().context("there is a first package")?;
        let facts = child::output(Command::new("apt-cache").arg("show").arg(before))?;
        let name = named(&facts, beginning);
        let name = name.with_context(|| format!("`{before}` names no `{beginning}…`"))?;
        packages.push(name.to_owned());
    }
    let mut apt = Command::new("apt-get");
    child::run(apt.current_dir(folder).args(PATIENCE).args(["download", "-q"]).args(packages))
}

/// The package of a `Depends:` line that begins so.
fn named<'a>(facts: &'a str, beginning: &str) -> Option<&'a str> {
    let depends = facts.lines().find_map(|line| line.strip_prefix("Depends: "))?;
    let names = depends.split(',').filter_map(|one| one.split_whitespace().next());
    names.into_iter().find(|name| name.starts_with(beginning))
}

fn files_in(folder: &Path) -> Result<Vec<PathBuf>> {
    let reading = || format!("reading `{}`", folder.display());
    let entries = fs::read_dir(folder).with_context(reading)?;
    entries.map(|entry| Ok(entry.with_context(reading)?.path())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_found_by_the_beginning_of_their_names() {
        let facts =
            "Package: a\nDepends: libc6 (>= 2.34), libllvm19, libstdc++6 (>= 11)\nSize: 1\n";
        assert_eq!(named(facts, "libllvm"), Some("libllvm19"));
        assert_eq!(named(facts, "libstd-rust-web-1."), None);
        assert_eq!(named("Package: a\n", "libllvm"), None);
    }
}
