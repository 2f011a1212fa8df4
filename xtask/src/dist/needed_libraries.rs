//! Checks the dynamic libraries that programs need. Only libraries of every system are allowed.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};

/// A version of the GNU C library.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct GlibcVersion {
    pub major: u32,
    pub minor: u32,
}

/// Fails if a program would not start on a machine with only the basic system. Returns the oldest
/// glibc with which all of them start, if they need one.
pub fn check_needed_libraries(programs: &[PathBuf]) -> Result<Option<GlibcVersion>> {
    if !cfg!(target_os = "linux") {
        eprintln!(
            "skipped the check of the libraries that the programs need: it runs only on Linux"
        );
        return Ok(None);
    }
    let mut needed = None;
    for program in programs {
        let mut readelf = Command::new("readelf");
        readelf.args(["--wide", "--dynamic", "--version-info"]).arg(program);
        let said = crate::child::command_stdout(readelf.env("LC_ALL", "C"))
            .context("cannot run `readelf`, which is part of binutils")?;
        if let Some(library) = find_uncommon_library(&said) {
            bail!(
                "`{}` needs `{library}`, which some Linux systems lack; link it statically",
                program.display()
            );
        }
        needed = needed.max(newest_glibc(&said));
    }
    if let Some(GlibcVersion { major, minor }) = needed {
        eprintln!("needs a Linux with glibc {major}.{minor} or newer");
    }
    Ok(needed)
}

/// The parts of the C library and the unwinding library, which every Linux with glibc has.
const EVERYWHERE: &[&str] = &[
    "libc.so.6",
    "libdl.so.2",
    "libgcc_s.so.1",
    "libm.so.6",
    "libpthread.so.0",
    "librt.so.1",
    "libutil.so.1",
];

/// Returns the first library that some Linux systems lack.
fn find_uncommon_library(said: &str) -> Option<&str> {
    let needed = said.lines().filter(|line| line.contains("(NEEDED)"));
    let names = needed.filter_map(|line| line.split_once('[')?.1.split_once(']'));
    names
        .map(|(name, _)| name)
        .find(|name| !EVERYWHERE.contains(name) && !name.starts_with("ld-linux"))
}

/// Returns the newest required version of glibc.
fn newest_glibc(said: &str) -> Option<GlibcVersion> {
    let versions = said.split("Name: GLIBC_").skip(1).filter_map(|rest| {
        let version = rest.split_whitespace().next()?;
        let mut numbers = version.split('.').map(str::parse);
        Some(GlibcVersion { major: numbers.next()?.ok()?, minor: numbers.next()?.ok()? })
    });
    versions.max()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "
 0x0000000000000001 (NEEDED)             Shared library: [libgcc_s.so.1]
 0x0000000000000001 (NEEDED)             Shared library: [libc.so.6]
 0x0000000000000001 (NEEDED)             Shared library: [ld-linux-x86-64.so.2]
  0x0020:   Name: GLIBC_2.9  Flags: none  Version: 10
  0x0030:   Name: GLIBC_2.34  Flags: none  Version: 6
  0x0040:   Name: GLIBC_2.4.1  Flags: none  Version: 5
  0x0050:   Name: GCC_3.0  Flags: none  Version: 4
";

    #[test]
    fn system_libraries_are_accepted_and_the_newest_glibc_version_counts() {
        assert_eq!(find_uncommon_library(SAID), None);
        assert_eq!(newest_glibc(SAID), Some(GlibcVersion { major: 2, minor: 34 }));
        assert_eq!(newest_glibc("nothing"), None);
    }

    #[test]
    fn non_system_library_is_reported() {
        let said = format!("{SAID} 0x1 (NEEDED)   Shared library: [libssl.so.3]\n");
        assert_eq!(find_uncommon_library(&said), Some("libssl.so.3"));
    }
}
