//! Tests that a new plugin of each kind builds and passes its tests outside the workspace, without
//! a network.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use jaato_template::{SdkSources, TemplateError, TemplateKind, next_steps, write_crate};

fn workspace_root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn cargo_command(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO"));
    command.current_dir(folder).env_remove("CARGO_TARGET_DIR").env_remove("RUSTFLAGS");
    command.env_remove("RUSTC_BOOTSTRAP");
    command
}

#[track_caller]
fn run_and_capture(command: &mut Command) -> (String, String) {
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{text}{errors}");
    (text, errors)
}

/// Returns a folder whose name breaks careless shell lines and manifests. The same in each run, so
/// that nothing is built again.
fn folder_with_odd_name() -> PathBuf {
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
    let outside = folder_with_odd_name();
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("fixtures");
    let sdk = SdkSources::in_folder(&workspace_root()).unwrap();
    for (kind, name) in [
        (TemplateKind::Tool, "tool-moon-phase"),
        (TemplateKind::Gc, "gc-2nd"),
        (TemplateKind::Provider, "x-2"),
        (TemplateKind::Environment, "environment-attic"),
        (TemplateKind::Hook, "hook-brake"),
    ] {
        let folder = outside.join(name);
        write_crate(&folder, name, kind, &sdk).unwrap();
        let mut tests = cargo_command(&folder);
        tests.args(["test", "--offline", "--quiet", "--target-dir"]).arg(&target);
        tests.env("CARGO_PROFILE_DEV_DEBUG", "0");
        // Captured and not passed on, because programs that count tests must not count these.
        let (said_by_tests, warnings) = run_and_capture(&mut tests);
        assert!(!warnings.contains("warning"), "{warnings}");
        let passed = said_by_tests.lines().filter(|line| line.starts_with("test result: ok."));
        let counts: Vec<&str> = passed.filter_map(|line| line.split(' ').nth(3)).collect();
        assert_eq!(counts[0], "1", "{said_by_tests}");
        let conformance: usize = counts[1].parse().unwrap();
        assert!(conformance >= 10, "{said_by_tests}");
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        assert!(manifest.contains(&rust_version_line("plugin-api/sdk")), "{manifest}");
        run_and_capture(cargo_command(&folder).args(["fmt", "--check"]));
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
    run_and_capture(cargo_command(&folder).args([
        "metadata",
        "--offline",
        "--format-version",
        "1",
    ]));

    for given in [folder.as_path(), Path::new("-x 'y'")] {
        let steps = next_steps(given, "moon", TemplateKind::Tool, "/it's/jaato");
        let (first, rest) = steps.trim_start().split_once('\n').unwrap();
        let script = format!("{first} && pwd");
        let (place, _) =
            run_and_capture(Command::new("sh").args(["-c", &script]).current_dir(&outside));
        assert_eq!(Path::new(place.trim_end()), folder.canonicalize().unwrap());
        // If cargo builds in another folder, the steps refer to it.
        let target = std::env::var("CARGO_TARGET_DIR").unwrap_or_else(|_| "target".to_owned());
        let install = r"'/it'\''s/jaato' plugin install";
        assert!(rest.ends_with(&format!("{install} {target}/release/libmoon.so")), "{rest}");
    }
}

/// Returns the line of a crate's manifest with its oldest Rust.
fn rust_version_line(folder: &str) -> String {
    let manifest = fs::read_to_string(workspace_root().join(folder).join("Cargo.toml")).unwrap();
    let line = manifest.lines().find(|line| line.starts_with("rust-version = "));
    line.unwrap_or_else(|| panic!("`{folder}` has no `rust-version`")).to_owned()
}

#[test]
fn author_crates_share_one_rust_version_documented_on_one_page() {
    let line = rust_version_line("plugin-api/sdk");
    let entries =
        ["plugin-api", "docs/examples"].map(|folder| workspace_root().join(folder).read_dir());
    let crates = entries.into_iter().flat_map(Result::unwrap).map(|entry| entry.unwrap().path());
    // Programs that embed jaato need the compiler of the workspace.
    let is_for_authors = |folder: &PathBuf| {
        let manifest = fs::read_to_string(folder.join("Cargo.toml"));
        manifest.is_ok_and(|text| !text.contains("jaato-library"))
    };
    for folder in crates.filter(is_for_authors) {
        assert_eq!(rust_version_line(folder.to_str().unwrap()), line, "{}", folder.display());
    }
    let version = line.trim_start_matches("rust-version = ").trim_matches('"');
    let mut pages: Vec<_> = run_and_capture(
        Command::new("grep")
            .arg("-rlF")
            .arg(version)
            .args(["--include=*.md", "docs", "README.md", "AGENTS.md"])
            .current_dir(workspace_root()),
    )
    .0
    .lines()
    .map(str::to_owned)
    .collect();
    pages.sort();
    assert_eq!(pages, ["docs/plugin-authors.md"]);
    // Dependencies that need a newer Rust would make the number wrong.
    let number = |text: &str| -> Vec<u32> {
        text.split('.').take(2).map(|part| part.parse().unwrap()).collect()
    };
    let folder = tempfile::tempdir().unwrap();
    let outside = folder.path().join("attic");
    let sdk = SdkSources::in_folder(&workspace_root()).unwrap();
    write_crate(&outside, "environment-attic", TemplateKind::Environment, &sdk).unwrap();
    let (compiler, _) = run_and_capture(Command::new("rustc").arg("-vV"));
    let target = compiler.lines().find_map(|line| line.strip_prefix("host: ")).unwrap();
    let (metadata, _) = run_and_capture(cargo_command(&outside).args([
        "metadata",
        "--offline",
        "--format-version=1",
        "--filter-platform",
        target,
    ]));
    let metadata: serde_json::Value = serde_json::from_str(&metadata).unwrap();
    for package in metadata["packages"].as_array().unwrap() {
        let Some(needs) = package["rust_version"].as_str() else { continue };
        assert!(number(needs) <= number(version), "{} needs Rust {needs}", package["name"]);
    }
}

#[test]
fn nothing_that_is_there_is_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let sdk = SdkSources::in_folder(&workspace_root()).unwrap();
    let error = write_crate(folder.path(), "a", TemplateKind::Tool, &sdk).unwrap_err();
    assert!(matches!(error, TemplateError::Exists(_)), "{error}");
    assert!(fs::read_dir(folder.path()).unwrap().next().is_none());
}
