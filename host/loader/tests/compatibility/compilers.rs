//! Finds another compiler than the house's, and builds a plugin with it.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::library_name;

/// By rustup's names: the lowest that authors may use, a higher one, the highest to be had.
const TOOLCHAINS: &[&str] = &["1.85.0", "1.85", "1.96.0", "1.96", "nightly"];

/// A compiler.
pub struct Compiler {
    rustc: PathBuf,
    /// Its own libraries, where it is unpacked and not installed.
    libraries: Option<PathBuf>,
}

/// Gives the first that is there: what `cargo xtask setup` unpacked, or one of rustup's.
pub fn another() -> Option<Compiler> {
    let unpacked = target().join("compilers/debian/usr");
    let rustc = unpacked.join("bin/rustc");
    if rustc.is_file() {
        let libraries = format!("lib/{}-linux-gnu", std::env::consts::ARCH);
        return Some(Compiler { rustc, libraries: Some(unpacked.join(libraries)) });
    }
    TOOLCHAINS.iter().find_map(|name| {
        let mut rustup = Command::new("rustup");
        rustup.args(["which", "--toolchain", name, "rustc"]).env("RUSTUP_AUTO_INSTALL", "0");
        let output = rustup.output().ok().filter(|output| output.status.success())?;
        let rustc = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim());
        Some(Compiler { rustc, libraries: None })
    })
}

impl Compiler {
    /// What it says of itself: `rustc 1.85.0 (4d91de4e4 2025-02-17)`.
    pub fn version(&self) -> String {
        let mut rustc = Command::new(&self.rustc);
        self.give_libraries(&mut rustc);
        let output = rustc.arg("--version").output().unwrap();
        assert!(output.status.success(), "`{}` does not start", self.rustc.display());
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// Builds a fixture, in a target folder that only this compiler uses.
    pub fn build(&self, fixture: &str) -> PathBuf {
        let number = self.version().split(' ').nth(1).unwrap().to_owned();
        let folder = target().join(format!("fixtures-by-{number}"));
        let fixtures =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plugin-api/testkit/fixtures");
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--quiet", "--locked", "--offline", "--manifest-path"]);
        cargo.arg(fixtures.join("Cargo.toml")).arg("--target-dir").arg(&folder);
        cargo.args(["--package", &format!("fixture-{fixture}")]).env("RUSTC", &self.rustc);
        self.give_libraries(&mut cargo);
        assert!(cargo.status().unwrap().success(), "{number} does not build `{fixture}`");
        folder.join("debug").join(library_name(&format!("fixture_{fixture}")))
    }

    fn give_libraries(&self, command: &mut Command) {
        if let Some(libraries) = &self.libraries {
            command.env("LD_LIBRARY_PATH", libraries);
        }
    }
}

fn target() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap()
}
