//! Tests compatibility: plugins for other boundaries, from other compilers and of unknown kinds.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod boundaries;
mod compilers;
mod older_plugin;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use self::boundaries::built_boundaries;
use crate::support::*;
use jaato_loader::{FileProblem, LoadProblem, PluginLibrary, describe_plugin};
use jaato_types::{Delta, ErrorKind, Frame, PluginKind};
use serde_json::json;

#[track_caller]
fn assert_refused(boundary: &str, what: &str, plugin: &str, host: &str) {
    let path = built_boundaries().plugin(boundary);
    let Err(error) = PluginLibrary::open(&path) else { panic!("`{}` was opened", path.display()) };
    let text = error.to_string();
    assert!(!text.contains('\n') && text.len() < 900, "{text}");
    assert!(text.starts_with(&format!("cannot load plugin `{}`: ", path.display())), "{text}");
    let LoadProblem::Layout { mismatch, .. } = &error.problem else { panic!("{text}") };
    let expected = [what, plugin, host];
    assert_eq!([&mismatch.what, &mismatch.plugin, &mismatch.host], expected, "{text}");
    let hint = error.problem.hint().unwrap();
    assert_eq!(hint, "rebuild the plugin with jaato-plugin-sdk 1.0.0, or update jaato");
}

#[tokio::test]
async fn newer_plugin_runs_on_an_older_host_without_the_newer_methods() {
    let fixture = LoaderFixture::new();
    let opened = PluginLibrary::open(&built_boundaries().plugin("newer"))
        .unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(opened.manifest().api, "1.1.0");
    assert_eq!(opened.manifest().kinds, [PluginKind::Tool, PluginKind::Unknown]);
    let instance = fixture.create_instance(&opened, None).await;
    let mut call = begin_call(&instance, "count_bytes_echo", json!({ "text": "moon" }));
    let emission = with_timeout(call.next_emission()).await.unwrap();
    assert_eq!(Frame::read::<Delta>(&emission).unwrap(), Delta::Unknown);
    let answer = with_timeout(call.answer()).await.map(|frame| parse_json_frame(&frame));
    let expected = json!({ "bytes": 4, "doubled": 0, "moon": "unknown_operation" });
    assert_eq!(answer, Ok(expected));
}

#[test]
fn older_plugin_runs_on_a_newer_host_with_default_methods() {
    for plugin in ["echo", "older"] {
        let told = run_on_newer_host(&fixture_path(plugin));
        assert_eq!(told, ["moon None", "age 7", r#"{"bytes":4}"#], "{plugin}");
    }
}

#[test]
fn newer_plugin_on_a_newer_host_uses_the_whole_interface() {
    let expected = r#"{"bytes":4,"doubled":42,"moon":"unknown_operation"}"#;
    assert_eq!(
        run_on_newer_host(&built_boundaries().plugin("newer")),
        ["moon Some(5)", "age 9", expected]
    );
}

fn run_on_newer_host(plugin: &Path) -> Vec<String> {
    let output = Command::new(built_boundaries().newer_host()).arg(plugin).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn a_method_that_was_retyped_is_refused() {
    assert_refused("retyped", "`ContextAbi::id`", "fn(RRef<'a>) -> i64", "fn(RRef<'a>) -> u64");
}

#[test]
fn a_method_that_was_renamed_is_refused() {
    assert_refused("renamed", "`ContextAbi::id`", "number", "id");
}

#[test]
fn a_method_that_was_removed_in_the_middle_is_refused() {
    assert_refused("without-one", "`ContextAbi::id`", "no such method", "fn(RRef<'a>) -> u64");
}

#[test]
fn a_last_method_that_was_removed_is_refused() {
    assert_refused(
        "without-the-last",
        "`ContextAbi::close`",
        "no such method",
        "fn(RRef<'a>, u64)",
    );
}

#[test]
fn a_boundary_that_grew_without_a_version_is_refused() {
    assert_refused("grown", "`ContextAbi::doubled`", "fn(RRef<'a>, u64) -> u64", "no such method");
}

#[test]
fn other_major_version_is_refused_even_if_the_manifest_lies() {
    let Err(error) = PluginLibrary::open(&built_boundaries().plugin("another-major")) else {
        panic!("it was opened");
    };
    assert_eq!(error.problem, LoadProblem::Api { has: "2.0.0".to_owned() });
    assert!(error.to_string().contains("2.0.0"), "{error}");
}

/// Writes a copy of the echo fixture whose manifest offers another kind, with a name as long as
/// `tool`.
fn plugin_of_kind(kind: &str) -> (tempfile::TempDir, PathBuf) {
    let (from, to) = (r#""kinds":["tool"]"#, format!(r#""kinds":["{kind}"]"#));
    assert_eq!(from.len(), to.len());
    let mut bytes = fs::read(fixture_path("echo")).unwrap();
    let places = bytes.windows(from.len()).enumerate();
    let places: Vec<usize> =
        places.filter(|(_, text)| *text == from.as_bytes()).map(|(at, _)| at).collect();
    assert!(!places.is_empty());
    for at in places {
        bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kind.so");
    fs::write(&path, bytes).unwrap();
    (folder, path)
}

#[test]
fn plugin_with_only_unknown_kinds_is_refused_before_loading() {
    let (_folder, path) = plugin_of_kind("oven");
    let Err(error) = PluginLibrary::open(&path) else { panic!("it was opened") };
    assert_eq!(error.problem, LoadProblem::File(FileProblem::UnknownKind));
    assert!(error.to_string().ends_with("this host supports none of its kinds"));
}

/// Builds a plugin, opens it, calls it, and lets it refuse a call.
async fn check_compiler(compiler: Result<compilers::Compiler, String>) {
    let compiler = match compiler {
        Ok(compiler) => compiler,
        Err(reason) => return jaato_plugin_testkit::skip(&reason),
    };
    let fixture = LoaderFixture::new();
    let path = compiler.build("echo");
    let version = compiler.version();
    let opened = PluginLibrary::open(&path).unwrap_or_else(|error| panic!("{version}: {error}"));
    assert_eq!(
        describe_plugin(&opened).unwrap(),
        describe_plugin(&open_fixture("echo")).unwrap(),
        "{version}"
    );
    let instance = fixture.create_instance(&opened, None).await;
    let answer = run_call(&instance, "count_bytes_echo", json!({ "text": "moon" })).await;
    assert_eq!(answer, Ok(json!({ "bytes": 4 })), "{version}");
    let error = run_call(&instance, "moon", json!({})).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::UnknownTool, "{version}");
}

#[tokio::test]
async fn plugin_built_by_the_oldest_supported_compiler_runs() {
    check_compiler(compilers::find_release(compilers::OLDEST)).await;
}

#[tokio::test]
async fn plugin_built_by_a_compiler_newer_than_the_host_compiler_runs() {
    check_compiler(compilers::find_release(compilers::AFTER_THE_HOUSES)).await;
}

#[tokio::test]
async fn plugin_built_by_the_newest_available_compiler_runs() {
    check_compiler(compilers::newest()).await;
}
