//! Tests that the unpacked archive runs without a toolchain and without any variable except the
//! home.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::installed::{checkout_root, installed_archive, successful_stdout, target_triple};

/// Returns the names of the plugins in the checkout.
fn shipped_plugin_names() -> BTreeSet<String> {
    let entries =
        fs::read_dir(checkout_root().join("plugins")).unwrap().map(|entry| entry.unwrap());
    let manifest = |folder: &Path| fs::read_to_string(folder.join("Cargo.toml")).unwrap();
    let plugins = entries.filter(|entry| manifest(&entry.path()).contains("cdylib"));
    plugins.map(|entry| entry.file_name().into_string().unwrap()).collect()
}

#[test]
fn archive_runs_with_its_plugins_with_only_a_home_variable() {
    let Some(installed) = installed_archive() else { return };
    let home = installed.empty_folder("home");
    let jaato = |words: &[&str]| {
        let mut command = Command::new(installed.jaato_path());
        successful_stdout(command.args(words).env_clear().env("HOME", &home).current_dir("/"))
    };
    let listed: Value = serde_json::from_str(&jaato(&["plugin", "list", "--json"])).unwrap();
    let plugins = listed["plugins"].as_array().unwrap();
    let names = plugins.iter().map(|plugin| plugin["name"].as_str().unwrap().to_owned());
    assert_eq!(names.collect::<BTreeSet<_>>(), shipped_plugin_names());
    assert!(plugins.iter().all(|plugin| plugin["status"] == "active"), "{listed:#}");
    let os = jaato(&["call", "get_environment", r#"{"aspect": "os"}"#]);
    assert_eq!(serde_json::from_str::<Value>(&os).unwrap()["type"], json!("linux"));
    let echo = jaato(&["call", "cli_based_tool", r#"{"command": "echo found"}"#]);
    assert!(echo.contains("found"), "{echo}");
}

#[test]
fn sdk_lock_file_pins_the_tested_versions() {
    let Some(installed) = installed_archive() else { return };
    let read = |folder: &Path| fs::read_to_string(folder.join("Cargo.lock")).unwrap();
    let (ours, theirs) = (read(&checkout_root()), read(&installed.top.join("share/jaato/sdk")));
    let pinned = |lock: &str| -> BTreeSet<String> {
        let packages = lock.split("[[package]]\n").skip(1);
        // Without the dependencies, because a name with two versions includes its version there.
        let heads = packages.map(|package| package.split("dependencies = ").next().unwrap());
        heads.map(|head| head.trim_end().to_owned()).collect()
    };
    let (ours, theirs) = (pinned(&ours), pinned(&theirs));
    assert!(theirs.is_subset(&ours), "{:#?}", theirs.difference(&ours).collect::<Vec<_>>());
    assert!(theirs.len() > 20 && theirs.len() < ours.len());
    assert!(theirs.iter().any(|package| package.contains("\"jaato-plugin-testkit\"")));
}

#[test]
fn sdk_examples_depend_only_on_the_sdk() {
    let Some(installed) = installed_archive() else { return };
    let sdk = installed.top.join("share/jaato/sdk");
    let names = |folder: &Path| -> BTreeSet<String> {
        let entries = fs::read_dir(folder.join("docs/examples")).unwrap().map(Result::unwrap);
        let names = entries.map(|entry| entry.file_name().into_string().unwrap());
        // The folder of a build in the checkout, and programs that need the host.
        let needs_host = |name: &str| {
            let manifest = folder.join("docs/examples").join(name).join("Cargo.toml");
            fs::read_to_string(manifest).is_ok_and(|text| text.contains("jaato-library"))
        };
        names.filter(|name| name != "target" && !needs_host(name)).collect()
    };
    assert_eq!(names(&sdk), names(&checkout_root()));
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--locked", "--offline", "--format-version", "1"]);
    // Dependencies of other systems may never have been downloaded here.
    cargo.args(["--filter-platform", &target_triple()]);
    let metadata = successful_stdout(cargo.current_dir(sdk.join("docs/examples")));
    let metadata: Value = serde_json::from_str(&metadata).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let local = packages.iter().filter(|package| package["source"].is_null());
    let manifests: Vec<&str> = local.map(|it| it["manifest_path"].as_str().unwrap()).collect();
    assert!(manifests.iter().all(|path| Path::new(path).starts_with(&sdk)), "{manifests:?}");
    assert!(manifests.len() >= 10, "{manifests:?}");
}
