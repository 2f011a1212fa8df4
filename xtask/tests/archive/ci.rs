//! Tests the CI file of a new plugin: runs its steps like a runner, on a machine with only an
//! archive of jaato.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use super::installed::{installed_archive, printed_text, successful_stdout, target_triple};
use super::skip::skip;

/// Returns the commands of the steps in order, without the steps' names.
fn workflow_steps(file: &str) -> Vec<String> {
    let mut steps: Vec<String> = Vec::new();
    let mut is_block = false;
    for line in file.lines() {
        let word = line.trim().trim_start_matches("- ");
        if is_block && line.starts_with("          ") {
            let step = steps.last_mut().unwrap();
            step.push_str(&line[10..]);
            step.push('\n');
            continue;
        }
        is_block = word == "run: |";
        if let Some(command) = word.strip_prefix("run: ") {
            steps.push(if is_block { String::new() } else { command.to_owned() });
        }
    }
    steps
}

struct StepRunner<'a> {
    checkout: &'a Path,
    temp: &'a Path,
}

impl StepRunner<'_> {
    /// Runs a step like GitHub runs one without a shell setting.
    fn run_step(&self, step: &str, archive: &str) -> Output {
        let mut bash = Command::new("bash");
        bash.args(["-e", "-c", step]).current_dir(self.checkout);
        bash.env("RUNNER_TEMP", self.temp).env("JAATO_ARCHIVE", archive).output().unwrap()
    }

    #[track_caller]
    fn run_passing_step(&self, step: &str, archive: &str) -> String {
        let output = self.run_step(step, archive);
        assert!(output.status.success(), "{step}: {}", printed_text(&output));
        printed_text(&output)
    }

    /// Returns the path at which cargo finds the sdk.
    fn sdk_path(&self) -> String {
        let mut cargo = Command::new(env!("CARGO"));
        // Dependencies of other systems may never have been downloaded here.
        cargo.args(["metadata", "--offline", "--format-version", "1", "--filter-platform"]);
        cargo.arg(target_triple()).current_dir(self.checkout);
        let metadata: serde_json::Value =
            serde_json::from_str(&successful_stdout(&mut cargo)).unwrap();
        let packages = metadata["packages"].as_array().unwrap();
        let sdk = packages.iter().find(|package| package["name"] == "jaato-plugin-sdk").unwrap();
        sdk["manifest_path"].as_str().unwrap().to_owned()
    }
}

#[test]
fn the_ci_file_of_a_new_plugin_gets_the_sdk_from_an_archive_or_a_copy() {
    let Some(installed) = installed_archive() else { return };
    if Command::new("curl").arg("--version").output().is_err() {
        skip("there is no `curl`, by which a runner gets the archive");
        return;
    }
    let folder = installed.empty_folder("ci");
    let (checkout, temp) = (folder.join("tool-moon"), folder.join("a runner's"));
    fs::create_dir(&temp).unwrap();
    let mut new = Command::new(installed.jaato_path());
    new.args(["plugin", "new", "tool-moon", "--path"]).arg(&checkout).env("HOME", &folder);
    successful_stdout(&mut new);
    let steps =
        workflow_steps(&fs::read_to_string(checkout.join(".github/workflows/ci.yml")).unwrap());
    let runner = StepRunner { checkout: &checkout, temp: &temp };
    let [sdk, rest @ .., check, layout] = &steps[..] else { panic!("{steps:?}") };
    // The guide's test covers the slow steps with such a crate.
    assert_eq!(
        rest,
        [
            "rustup toolchain install stable --profile minimal --component rustfmt,clippy",
            "rustup default stable",
            "cargo fmt --check",
            "cargo clippy --all-targets -- -D warnings",
            "cargo test",
            "cargo build --release",
        ]
    );

    let unset = runner.run_step(sdk, "");
    assert_eq!(unset.status.code(), Some(1), "{}", printed_text(&unset));
    assert!(printed_text(&unset).contains("::error::the variable JAATO_ARCHIVE is not set"));
    let away = runner.run_step(sdk, "file:///dev/null/sdk.tar.gz");
    assert!(!away.status.success(), "{}", printed_text(&away));
    fs::remove_dir_all(temp.join("jaato")).unwrap();
    runner.run_passing_step(sdk, &format!("file://{}", installed.archive_path().display()));
    assert_eq!(
        Path::new(&runner.sdk_path()),
        temp.join("jaato/share/jaato/sdk/plugin-api/sdk/Cargo.toml")
    );

    // An existing plugin replaces the one that the steps would have built.
    let shipped = installed.top.join("lib/jaato/plugins/libtool_environment.so");
    fs::create_dir_all(checkout.join("target/release")).unwrap();
    fs::copy(shipped, checkout.join("target/release/libtool_moon.so")).unwrap();
    let checked = runner.run_passing_step(check, "");
    assert!(checked.contains("tool get_environment"), "{checked}");
    runner.run_passing_step(layout, "");
    let laid_out = checkout.join("tool-moon");
    assert!(laid_out.join("lib").join(target_triple()).join("libtool_moon.so").is_file());
    assert!(laid_out.join("README.md").is_file());

    // As the README describes it: a copy in the repository, and no variable.
    let manifest = fs::read_to_string(checkout.join("Cargo.toml")).unwrap();
    let from = temp.join("jaato/share/jaato/sdk");
    let copied = manifest.replace(from.to_str().unwrap(), "jaato-sdk");
    fs::write(checkout.join("Cargo.toml"), copied).unwrap();
    fs::rename(from, checkout.join("jaato-sdk")).unwrap();
    fs::remove_dir_all(temp.join("jaato")).unwrap();
    runner.run_passing_step(sdk, "");
    assert_eq!(Path::new(&runner.sdk_path()), checkout.join("jaato-sdk/plugin-api/sdk/Cargo.toml"));
    let without = runner.run_passing_step(check, "");
    assert!(without.contains("the file is not checked"), "{without}");
    let readme = fs::read_to_string(checkout.join("README.md")).unwrap();
    for part in ["sdk", "testkit"] {
        let line = format!("jaato-plugin-{part} = {{ path = \"jaato-sdk/plugin-api/{part}\" }}\n");
        let manifest = fs::read_to_string(checkout.join("Cargo.toml")).unwrap();
        assert!(manifest.contains(&line) && readme.contains(&line), "{manifest}{readme}");
    }
}
