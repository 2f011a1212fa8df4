//! Other compilers that plugin authors may use, from Debian's packages, which are unpacked but not
//! installed.
//!
//! The tests build a plugin with each of them and open it with our own host. Only CI machines
//! download them. Elsewhere the tests use the compilers that rustup has.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::child;

/// The oldest supported release, and one that is newer than our own compiler.
const RELEASES: [&str; 2] = ["1.85", "1.96"];

/// The compiler, and the standard library for linking plugins.
const PACKAGES: [&str; 2] = ["rustc-web", "libstd-rust-web-dev"];

/// Options that make a missing network fail soon.
const PATIENCE: [&str; 3] =
    ["-oAcquire::http::Timeout=20", "-oAcquire::https::Timeout=20", "-oAcquire::Retries=1"];

/// Prefixes of further packages: the compiler's own code, which the last of the packages names, and
/// its dependencies.
const NAMED: [&str; 2] = ["libstd-rust-web-1.", "libllvm"];

/// Unpacks the compilers below the target folder, unless they are there. Returns a line for each
/// that is unavailable.
pub fn unpack_compilers(target: &Path) -> Vec<String> {
    let folder = |release: &str| target.join(format!("compilers/debian-{release}"));
    let missing: Vec<_> = RELEASES
        .iter()
        .filter(|release| !folder(release).join("usr/bin/rustc").is_file())
        .collect();
    if missing.is_empty() {
        return Vec::new();
    }
    // The package lists may be outdated or missing, and then their packages cannot be downloaded.
    let updated = child::run_command(Command::new("apt-get").args(PATIENCE).args(["update", "-q"]));
    let unpacked =
        missing.into_iter().map(|release| (release, fetch_compiler(&folder(release), release)));
    let failed = unpacked.filter_map(|(release, unpacked)| Some((release, unpacked.err()?)));
    let update = updated.err().map_or(String::new(), |error| format!(" ({error:#})"));
    let line = |(release, error)| {
        format!("the compiler {release} for plugins, from Debian's packages: {error:#}{update}")
    };
    failed.map(line).collect()
}

/// Works in a temporary folder and renames it at the end, so that an existing folder is complete.
fn fetch_compiler(folder: &Path, release: &str) -> Result<()> {
    let versions = child::command_stdout(Command::new("apt-cache").args(["madison", PACKAGES[0]]))?;
    let version = offered_version(&versions, release)?;
    // Append the suffix, because `with_extension` would replace the minor version.
    let mut beside = folder.as_os_str().to_owned();
    beside.push(".unfinished");
    let beside = PathBuf::from(beside);
    if beside.exists() {
        fs::remove_dir_all(&beside).with_context(|| format!("removing `{}`", beside.display()))?;
    }
    let downloads = beside.join("downloads");
    fs::create_dir_all(&downloads).with_context(|| format!("making `{}`", downloads.display()))?;
    download_compiler(&downloads, version)?;
    for package in list_files(&downloads)? {
        child::run_command(Command::new("dpkg").arg("-x").arg(package).arg(&beside))?;
    }
    fs::remove_dir_all(&downloads)
        .with_context(|| format!("removing `{}`", downloads.display()))?;
    if !beside.join("usr/bin/rustc").is_file() {
        bail!("`{}` contains no `rustc`", PACKAGES[0]);
    }
    fs::rename(&beside, folder).with_context(|| format!("making `{}`", folder.display()))
}

/// Returns the version of a release from the table of `apt-cache madison`.
fn offered_version<'a>(table: &'a str, release: &str) -> Result<&'a str> {
    let versions = table.lines().filter_map(|line| line.split('|').nth(1)).map(str::trim);
    let versions: Vec<&str> = versions.collect();
    let begins = format!("{release}.");
    versions.iter().find(|version| version.starts_with(&begins)).copied().with_context(|| {
        match versions.as_slice() {
            [] => format!("package `{}` is not available", PACKAGES[0]),
            versions => format!("`{}` is available only as {}", PACKAGES[0], versions.join(", ")),
        }
    })
}

fn download_compiler(folder: &Path, version: &str) -> Result<()> {
    let mut packages: Vec<String> =
        PACKAGES.iter().map(|name| format!("{name}={version}")).collect();
    for beginning in NAMED {
        let before = packages.last().context("there is a first package")?;
        let facts = child::command_stdout(Command::new("apt-cache").arg("show").arg(before))?;
        let name = package_with_prefix(&facts, beginning);
        let name = name
            .with_context(|| format!("`{before}` does not depend on a package `{beginning}…`"))?;
        packages.push(if beginning == NAMED[0] {
            format!("{name}={version}")
        } else {
            name.to_owned()
        });
    }
    let mut apt = Command::new("apt-get");
    child::run_command(
        apt.current_dir(folder).args(PATIENCE).args(["download", "-q"]).args(packages),
    )
}

/// Returns the package in a `Depends:` line that starts with this prefix.
fn package_with_prefix<'a>(facts: &'a str, beginning: &str) -> Option<&'a str> {
    let depends = facts.lines().find_map(|line| line.strip_prefix("Depends: "))?;
    let names = depends.split(',').filter_map(|one| one.split_whitespace().next());
    names.into_iter().find(|name| name.starts_with(beginning))
}

fn list_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let reading = || format!("reading `{}`", folder.display());
    let entries = fs::read_dir(folder).with_context(reading)?;
    entries.map(|entry| Ok(entry.with_context(reading)?.path())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compiler_release_is_found_or_the_available_ones_are_listed() {
        let table = " rustc-web | 1.85.0+dfsg3-1~deb12u3 | http://deb.example bookworm/main amd64 Packages\n \
            rustc-web | 1.96.1+dfsg1-1 | http://deb.example sid/main amd64 Packages\n";
        assert_eq!(offered_version(table, "1.85").unwrap(), "1.85.0+dfsg3-1~deb12u3");
        assert_eq!(offered_version(table, "1.96").unwrap(), "1.96.1+dfsg1-1");
        let error = offered_version(table, "1.8").unwrap_err().to_string();
        let all = "1.85.0+dfsg3-1~deb12u3, 1.96.1+dfsg1-1";
        assert_eq!(error, format!("`rustc-web` is available only as {all}"));
        assert_eq!(
            offered_version("", "1.85").unwrap_err().to_string(),
            "package `rustc-web` is not available"
        );
    }

    #[test]
    fn packages_are_found_by_the_beginning_of_their_names() {
        let facts =
            "Package: a\nDepends: libc6 (>= 2.34), libllvm19, libstdc++6 (>= 11)\nSize: 1\n";
        assert_eq!(package_with_prefix(facts, "libllvm"), Some("libllvm19"));
        assert_eq!(package_with_prefix(facts, "libstd-rust-web-1."), None);
        assert_eq!(package_with_prefix("Package: a\n", "libllvm"), None);
    }
}
