//! A new plugin of each kind builds and passes its tests outside the workspace, without a network.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::{Path, PathBuf};
use std::process::Command;

use jaato_template::{Sdk, TemplateError, TemplateKind, write_crate};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn cargo(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO"));
    command.current_dir(folder).env_remove("CARGO_TARGET_DIR");
    command
}

#[track_caller]
fn said(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}{errors}");
    text
}

/// One crate a kind, all in one target folder that is kept from run to run.
#[test]
fn a_new_plugin_of_each_kind_builds_and_passes_its_tests_outside_the_workspace() {
    let outside = tempfile::tempdir().unwrap();
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("new-plugin-test");
    let sdk = Sdk::Sources(root().join("plugin-api"));
    for (kind, name) in [
        (TemplateKind::Tool, "tool-moon-phase"),
        (TemplateKind::Gc, "gc-oldest"),
        (TemplateKind::Provider, "provider-parrot"),
    ] {
        let folder = outside.path().join(name);
        write_crate(&folder, name, kind, &sdk).unwrap();
        let mut tests = cargo(&folder);
        tests.args(["test", "--offline", "--quiet", "--target-dir"]).arg(&target);
        tests.env("RUSTFLAGS", "-D warnings").env("CARGO_PROFILE_DEV_DEBUG", "0");
        // Taken, not passed on: whoever counts tests must not count these.
        let said_by_tests = said(&mut tests);
        let passed = said_by_tests.lines().filter(|line| line.starts_with("test result: ok."));
        let counts: Vec<&str> = passed.filter_map(|line| line.split(' ').nth(3)).collect();
        assert_eq!(counts[0], "1", "{said_by_tests}");
        let conformance: usize = counts[1].parse().unwrap();
        assert!(conformance >= 10, "{said_by_tests}");
        said(cargo(&folder).args(["fmt", "--check"]));
        for file in ["README.md", ".github/workflows/ci.yml", "tests/conformance.rs"] {
            let text = std::fs::read_to_string(folder.join(file)).unwrap();
            assert!(text.contains(&name.replace('-', "_")), "{file}: {text}");
            assert!(!text.contains("template"), "{file}: {text}");
        }
    }
}

#[test]
fn nothing_that_is_there_is_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let sdk = Sdk::Version("1.0".to_owned());
    let error = write_crate(folder.path(), "a", TemplateKind::Tool, &sdk).unwrap_err();
    assert!(matches!(error, TemplateError::Exists(_)), "{error}");
    assert!(std::fs::read_dir(folder.path()).unwrap().next().is_none());
}

#[test]
fn the_sources_beside_an_executable_win_over_those_of_a_checkout() {
    let house = tempfile::tempdir().unwrap();
    let house = house.path().canonicalize().unwrap();
    let write = |path: &str| {
        let path = house.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "").unwrap();
    };
    write("target/dist/bin/jaato");
    let jaato = house.join("target/dist/bin/jaato");
    assert_eq!(Sdk::beside(&jaato), None);
    for part in ["sdk", "testkit"] {
        write(&format!("plugin-api/{part}/Cargo.toml"));
    }
    assert_eq!(Sdk::beside(&jaato), Some(Sdk::Sources(house.join("plugin-api"))));
    let shared = "target/dist/share/jaato/sdk";
    write(&format!("{shared}/sdk/Cargo.toml"));
    assert_eq!(Sdk::beside(&jaato), Some(Sdk::Sources(house.join("plugin-api"))), "not whole");
    write(&format!("{shared}/testkit/Cargo.toml"));
    assert_eq!(Sdk::beside(&jaato), Some(Sdk::Sources(house.join(shared))));
}
