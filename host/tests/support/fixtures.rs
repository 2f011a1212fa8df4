//! The parts of installations: the test installation, and the fixtures, built once per test
//! program.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::SystemTime;

use super::skip;

/// Returns the test installation: the one that `cargo xtask test` names, otherwise the one that it
/// left behind, if that is not older than the binary. Returns `None` without one, and the test is
/// skipped.
pub fn test_house() -> Option<PathBuf> {
    static HOUSE: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let house = HOUSE.get_or_init(|| match std::env::var_os("JAATO_TEST_HOUSE") {
        Some(house) => Ok(house.into()),
        None => remaining_house(),
    });
    house.as_ref().map_err(|reason| skip(reason)).ok().cloned()
}

fn remaining_house() -> Result<PathBuf, String> {
    let binary = Path::new(env!("CARGO_BIN_EXE_jaato"));
    let house = target_folder().join("house");
    let age = |path: &Path| path.metadata().and_then(|metadata| metadata.modified());
    let built = age(binary).unwrap_or(SystemTime::UNIX_EPOCH);
    let remedy = "`cargo xtask test` builds it";
    let placed_binary = house.join("bin/jaato");
    match age(&placed_binary) {
        Ok(placed) if placed >= built => Ok(house),
        // An unchanged binary is not copied again.
        Ok(_) if std::fs::read(&placed_binary).ok() == std::fs::read(binary).ok() => Ok(house),
        Ok(_) => Err(format!("the test house is older than the binary; {remedy}")),
        Err(_) => Err(format!("the test house is missing; {remedy}")),
    }
}

/// Returns a fixture of the testkit by its short name. The first call of a test program builds them
/// all.
pub fn fixture(name: &str) -> PathBuf {
    built_library(&format!("fixture_{name}"))
}

/// Returns a library of the workspace with the fixtures and the examples.
pub fn built_library(library: &str) -> PathBuf {
    fixture_folder().join(library_name(library))
}

/// Returns a program of that workspace.
pub fn built_program(name: &str) -> PathBuf {
    fixture_folder().join(name)
}

fn fixture_folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(build_fixtures)
}

fn build_fixtures() -> PathBuf {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/examples/Cargo.toml");
    let target = target_folder().join("fixtures");
    // `cargo xtask test` has built them.
    if std::env::var_os("JAATO_TEST_HOUSE").is_some() {
        return target.join("debug");
    }
    let status = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--locked", "--offline", "--manifest-path"])
        .arg(workspace)
        .arg("--target-dir")
        .arg(&target)
        .status();
    assert!(status.unwrap().success(), "the fixtures do not build");
    target.join("debug")
}

/// Returns an example program that embeds jaato. The first call of a test program builds them all.
/// Returns `None` if their crates are missing, and the test is skipped.
pub fn embedder_program(name: &str) -> Option<PathBuf> {
    static BUILT: OnceLock<bool> = OnceLock::new();
    let target = target_folder().join("embedders");
    let cargo = |words: &[&str]| {
        let mut cargo = Command::new(env!("CARGO"));
        let manifest = "../docs/examples/embed-chat/Cargo.toml";
        cargo.args(words).args(["--locked", "--offline", "--quiet", "--manifest-path"]);
        cargo.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join(manifest));
        cargo.env("CARGO_TARGET_DIR", &target).env_remove("RUSTFLAGS");
        cargo.env_remove("RUSTC_BOOTSTRAP");
        cargo
    };
    let is_built = *BUILT.get_or_init(|| {
        if !cargo(&["metadata", "--format-version=1"]).output().unwrap().status.success() {
            return false;
        }
        // All targets, with the same features as in `host/library/tests/examples.rs`, so that
        // nothing is built twice.
        let built = cargo(&["build", "--workspace", "--all-targets"]).output().unwrap();
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        true
    });
    if !is_built {
        skip("`cargo fetch` in `docs/examples/embed-chat` was not run");
    }
    is_built.then(|| target.join("debug").join(name))
}

/// Returns a library's file name on this system.
pub fn library_name(library: &str) -> String {
    format!("{}{library}{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX)
}

/// Returns cargo's target folder.
pub fn target_folder() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().to_owned()
}
