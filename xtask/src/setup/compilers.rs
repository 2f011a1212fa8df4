//! Other compilers that plugin authors may use: from Debian's packages, unpacked, never installed.
//!
//! The tests build a plugin with each and open it with the house's own host. Only machines of the
//! continuous integration fetch them; elsewhere the tests take those that rustup has.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::child;

/// The oldest, and one after the house's own.
const RELEASES: [&str; 2] = ["1.85", "1.96"];

/// The compiler, and what plugins are linked with.
const PACKAGES: [&str; 2] = ["rustc-web", "libstd-rust-web-dev"];

/// A machine without a network is told so soon.
const PATIENCE: [&str; 3] =
    ["-oAcquire::http::Timeout=20", "-oAcquire::https::Timeout=20", "-oAcquire::Retries=1"];

/// The compiler's own code, named by the last of the packages, and what that stands on. How they
/// begin.
const NAMED: [&str; 2] = ["libstd-rust-web-1.", "libllvm"];

/// Unpacks them below the target folder, unless they are there. Gives a line for each that cannot
/// be had.
pub fn unpack(target: &Path) -> Vec<String> {
    let folder = |release: &str| target.join(format!("compilers/debian-{release}"));
    let missing: Vec<_> = RELEASES
        .iter()
        .filter(|release| !folder(release).join("usr/bin/rustc").is_file())
        .collect();
    if missing.is_empty() {
        return Vec::new();
    }
    // The lists may be old or not there at all; what they name then cannot be had.
    let updated = child::run(Command::new("apt-get").args(PATIENCE).args(["update", "-q"]));
    let unpacked =
        missing.into_iter().map(|release| (release, fetch_into(&folder(release), release)));
    let failed = unpacked.filter_map(|(release, unpacked)| Some((release, unpacked.err()?)));
    let update = updated.err().map_or(String::new(), |error| format!(" ({error:#})"));
    let line = |(release, error)| {
        format!("the compiler {release} for plugins, from Debian's packages: {error:#}{update}")
    };
    failed.map(line).collect()
}

/// Works beside the folder and renames at the end: a folder that is there is whole.
fn fetch_into(folder: &Path, release: &str) -> Result<()> {
    let versions = child::output(Command::new("apt-cache").args(["madison", PACKAGES[0]]))?;
    let version = offered(&versions, release)?;
    // Not another extension: what is behind the point of a release looks like one.
    let mut beside = folder.as_os_str().to_owned();
    beside.push(".unfinished");
    let beside = PathBuf::from(beside);
    if beside.exists() {
        fs::remove_dir_all(&beside).with_context(|| format!("removing `{}`", beside.display()))?;
    }
    let downloads = beside.join("downloads");
    fs::create_dir_all(&downloads).with_context(|| format!("making `{}`", downloads.display()))?;
    download(&downloads, version)?;
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

/// The version of a release among those that a table of `apt-cache madison` offers.
fn offered<'a>(table: &'a str, release: &str) -> Result<&'a str> {
    let versions = table.lines().filter_map(|line| line.split('|').nth(1)).map(str::trim);
    let versions: Vec<&str> = versions.collect();
    let begins = format!("{release}.");
    versions.iter().find(|version| version.starts_with(&begins)).copied().with_context(|| {
        match versions.as_slice() {
            [] => format!("there is no package `{}`", PACKAGES[0]),
            versions => format!("`{}` is offered as {} alone", PACKAGES[0], versions.join(", ")),
        }
    })
}

fn download(folder: &Path, version: &str) -> Result<()> {
    let mut packages: Vec<String> =
        PACKAGES.iter().map(|name| format!("{name}={version}")).collect();
    for beginning in NAMED {
        let before = packages.last().context("there is a first package")?;
        let facts = child::output(Command::new("apt-cache").arg("show").arg(before))?;
        let name = named(&facts, beginning);
        let name = name.with_context(|| format!("`{before}` names no `{beginning}…`"))?;
        packages.push(if beginning == NAMED[0] {
            format!("{name}={version}")
        } else {
            name.to_owned()
        });
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
    fn a_release_is_found_among_what_is_offered_or_that_is_told() {
        let table = " rustc-web | 1.85.0+dfsg3-1~deb12u3 | http://deb.example bookworm/main amd64 Packages\n \
            rustc-web | 1.96.1+dfsg1-1 | http://deb.example sid/main amd64 Packages\n";
        assert_eq!(offered(table, "1.85").unwrap(), "1.85.0+dfsg3-1~deb12u3");
        assert_eq!(offered(table, "1.96").unwrap(), "1.96.1+dfsg1-1");
        let error = offered(table, "1.8").unwrap_err().to_string();
        let all = "1.85.0+dfsg3-1~deb12u3, 1.96.1+dfsg1-1";
        assert_eq!(error, format!("`rustc-web` is offered as {all} alone"));
        assert_eq!(offered("", "1.85").unwrap_err().to_string(), "there is no package `rustc-web`");
    }

    #[test]
    fn packages_are_found_by_the_beginning_of_their_names() {
        let facts =
            "Package: a\nDepends: libc6 (>= 2.34), libllvm19, libstdc++6 (>= 11)\nSize: 1\n";
        assert_eq!(named(facts, "libllvm"), Some("libllvm19"));
        assert_eq!(named(facts, "libstd-rust-web-1."), None);
        assert_eq!(named("Package: a\n", "libllvm"), None);
    }
}
