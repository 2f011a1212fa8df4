//! Tests that a new plugin of each kind builds and passes its tests outside the workspace, without
//! a network.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use jaato_template::{SdkSources, TemplateError, TemplateKind, next_steps, write_crate};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn cargo(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO"));
    command.current_dir(folder).env_remove("CARGO_TARGET_DIR").env_remove("RUSTFLAGS");
    command.env_remove("RUSTC_BOOTSTRAP");
    command
}

#[track_caller]
fn said(command: &mut Command) -> (String, String) {
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{text}{errors}");
    (text, errors)
}

/// Returns a folder whose name breaks careless shell lines and manifests. The same in each run, so
/// that nothing is built again.
fn odd_folder() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("it's a \"folder\" & more");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    // Keeps rustfmt from searching for the checkout's configuration.
    fs::write(folder.join("rustfmt.toml"), "").unwrap();
    folder
}

/// One crate per kind, built in the folder of the fixtures, because they use the same crates.
#[test]
fn a_new_plugin_of_each_kind_builds_and_passes_its_tests_outside_the_workspace() {
    let outside = odd_folder();
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("fixtures");
    let sdk = SdkSources::in_folder(&root()).unwrap();
    for (kind, name) in [
        (TemplateKind::Tool, "tool-moon-phase"),
        (TemplateKind::Gc, "gc-2nd"),
        (TemplateKind::Provider, "x-2"),
        (TemplateKind::Environment, "environment-attic"),
    ] {
        let folder = outside.join(name);
        write_crate(&folder, name, kind, &sdk).unwrap();
        let mut tests = cargo(&folder);
        tests.args(["test", "--offline", "--quiet", "--target-dir"]).arg(&target);
        tests.env("CARGO_PROFILE_DEV_DEBUG", "0");
        // Captured and not passed on, because programs that count tests must not count these.
        let (said_by_tests, warnings) = said(&mut tests);
        assert!(!warnings.contains("warning"), "{warnings}");
        let passed = said_by_tests.lines().filter(|line| line.starts_with("test result: ok."));
        let counts: Vec<&str> = passed.filter_map(|line| line.split(' ').nth(3)).collect();
        assert_eq!(counts[0], "1", "{said_by_tests}");
        let conformance: usize = counts[1].parse().unwrap();
        assert!(conformance >= 10, "{said_by_tests}");
        said(cargo(&folder).args(["fmt", "--check"]));
        for file in ["README.md", ".github/workflows/ci.yml", "tests/conformance.rs"] {
            let text = fs::read_to_string(folder.join(file)).unwrap();
            assert!(text.contains(&name.replace('-', "_")), "{file}: {text}");
            assert!(!text.contains("template"), "{file}: {text}");
        }
    }
}

#[test]
fn sdk_works_from_any_folder_and_the_printed_steps_lead_to_the_crate() {
    let outside = tempfile::tempdir().unwrap();
    let outside = outside.path().join("it's \"here\" $HOME");
    for part in ["sdk", "testkit"] {
        let folder = outside.join("sdk/plugin-api").join(part);
        fs::create_dir_all(folder.join("src")).unwrap();
        let package = format!("[package]\nname = \"jaato-plugin-{part}\"\nedition = \"2024\"\n");
        fs::write(folder.join("Cargo.toml"), package).unwrap();
        fs::write(folder.join("src/lib.rs"), "").unwrap();
    }
    let sdk = SdkSources::in_folder(&outside.join("sdk")).unwrap();
    let folder = outside.join("-x 'y'");
    write_crate(&folder, "moon", TemplateKind::Tool, &sdk).unwrap();
    said(cargo(&folder).args(["metadata", "--offline", "--format-version", "1"]));

    for given in [folder.as_path(), Path::new("-x 'y'")] {
        let steps = next_steps(given, "moon", "/it's/jaato");
        let (first, rest) = steps.trim_start().split_once('\n').unwrap();
        let script = format!("{first} && pwd");
        let (place, _) = said(Command::new("sh").args(["-c", &script]).current_dir(&outside));
        assert_eq!(Path::new(place.trim_end()), folder.canonicalize().unwrap());
        // If cargo builds in another folder, the steps refer to it.
        let target = std::env::var("CARGO_TARGET_DIR").unwrap_or_else(|_| "target".to_owned());
        let install = r"'/it'\''s/jaato' plugin install";
        assert!(rest.ends_with(&format!("{install} {target}/release/libmoon.so")), "{rest}");
    }
}

#[test]
fn nothing_that_is_there_is_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let sdk = SdkSources::in_folder(&root()).unwrap();
    let error = write_crate(folder.path(), "a", TemplateKind::Tool, &sdk).unwrap_err();
    assert!(matches!(error, TemplateError::Exists(_)), "{error}");
    assert!(fs::read_dir(folder.path()).unwrap().next().is_none());
}
