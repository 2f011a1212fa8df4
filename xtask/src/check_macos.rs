//! `check-macos`: checks the code for macOS on another system.
//!
//! Checks the standard library for the target too, so it needs no files of that system. Skips
//! crates that compile C, because they need its headers. Runs nothing.

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::{Result, bail};

use crate::workspace::CargoWorkspace;
use crate::{child, nightly};

const TARGET: &str = "aarch64-apple-darwin";

/// The packages without C code. All others depend on `ring`: http, assets, runtime and the binary.
const PACKAGES: &[&str] = &[
    "jaato-config",
    "jaato-loader",
    "jaato-plugin-testkit",
    "jaato-policy",
    "jaato-process",
    "jaato-registry",
    "jaato-session",
    "jaato-store",
    "jaato-template",
    "jaato-worker",
];

/// Checks the packages.
pub fn run_check_macos(words: Vec<OsString>) -> Result<ExitCode> {
    if let Some(argument) = lexopt::Parser::from_args(words).next()? {
        return Err(argument.unexpected().into());
    }
    let workspace = CargoWorkspace::load()?;
    if !nightly::has_std_sources() {
        bail!(
            "no nightly toolchain has the sources of the standard library; \
             `rustup toolchain install nightly --component rust-src`"
        );
    }
    let words = ["check", "--locked", "-Zbuild-std=std,panic_abort", "--target", TARGET];
    let mut cargo = nightly::nightly_cargo(&words);
    cargo.current_dir(&workspace.root).env("CARGO_TARGET_DIR", workspace.target.join("macos"));
    cargo.args(PACKAGES.iter().flat_map(|package| ["--package", package]));
    child::run_command(&mut cargo)?;
    eprintln!("{} packages check for {TARGET}; left out is what compiles C", PACKAGES.len());
    Ok(ExitCode::SUCCESS)
}
