//! Macros report errors at the location of the mistake, and say what would be correct.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::Path;
use std::process::Command;

use expect_test::{Expect, expect};
use jaato_plugin_sdk::serde_json::{Value, from_str};

/// Builds the fixture and returns the errors in one of its files: the line, the underlined code,
/// and the message.
fn errors(file: &str, cargo_arguments: &[&str]) -> String {
    // All fixtures are built here, because they share dependencies.
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("fixtures");
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples/Cargo.toml");
    let output = Command::new(env!("CARGO"))
        .args(["rustc", "--quiet", "--locked", "--offline", "--message-format", "json"])
        .args(["--package", "fixture-refused", "--lib", "--manifest-path"])
        .arg(workspace)
        .arg("--target-dir")
        .arg(target)
        .args(cargo_arguments)
        .env_remove("RUSTC_BOOTSTRAP")
        .output()
        .unwrap();
    assert!(!output.status.success(), "it compiles");
    let said = String::from_utf8(output.stdout).unwrap();
    let messages = said.lines().map(|line| from_str::<Value>(line).unwrap());
    let mut errors: Vec<(u64, String)> =
        messages.filter_map(|message| error(&message["message"], file)).collect();
    assert!(!errors.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    errors.sort();
    errors.into_iter().map(|(line, text)| format!("{line}: {text}\n")).collect()
}

fn error(message: &Value, file: &str) -> Option<(u64, String)> {
    let mut span = message["spans"].get(0)?;
    // Errors in generated code are reported where the author calls the macro.
    while span["expansion"].is_object() {
        span = &span["expansion"]["span"];
    }
    if message["level"] != "error" || !span["file_name"].as_str()?.ends_with(file) {
        return None;
    }
    let first_line = &span["text"][0];
    let column = |name: &str| Some(usize::try_from(first_line[name].as_u64()?).ok()? - 1);
    let (from, to) = (column("highlight_start")?, column("highlight_end")?);
    let underlined = first_line["text"].as_str()?.get(from..to)?;
    Some((
        span["line_start"].as_u64()?,
        format!("`{underlined}`: {}", message["message"].as_str()?),
    ))
}

#[track_caller]
fn check(file: &str, expected: Expect) {
    expected.assert_eq(&errors(file, &["--features", "macros"]));
}

#[test]
fn a_plugin_that_is_not_told_right_does_not_compile() {
    check(
        "plugins.rs",
        expect![[r#"
            5: `tool`: `tool` is not known here; known are: state: TYPE, tools (or tools: dynamic), provider: TYPE, gc: TYPE, environment: TYPE, hook: TYPE, scope: host, isolation: worker, variables: ["NAME", "NAME=VALUE", …]
            7: `gc`: `gc` is given twice
            9: `export_plugin! { tools, scope: host }`: `state: TYPE` is missing: the type that all of the plugin shares, `()` for none
            13: `session`: `scope` is `host` or left out, not `session`
            15: `vault`: `isolation` is `worker` or left out, not `vault`
            17: `"MY HOME"`: a variable is `NAME` or `NAME=VALUE`
            19: `(`: expected `:`
        "#]],
    );
}

#[test]
fn a_struct_that_is_no_tool_does_not_compile() {
    check(
        "structs.rs",
        expect![[r#"
            6: `Undescribed`: a tool needs a doc comment: it is the description that a model reads
            11: `text: String`: an argument needs a doc comment: a model reads it
            16: `harmless`: `harmless` is not known here; known are: read_only, destructive, idempotent, open_world, parallel_safe, core, auto_approval, auto_background, previews, name = "…", category = "…", schema = …, traits(…), example(…), available_if(…), run_if(…)
        "#]],
    );
}

#[test]
fn a_function_that_is_no_tool_does_not_compile() {
    check(
        "functions.rs",
        expect![[r#"
            6: `undescribed`: a tool needs a doc comment: it is the description that a model reads
            12: `text: String`: an argument needs a doc comment: a model reads it
            17: `harmless`: `harmless` is not known here; known are: read_only, destructive, idempotent, open_world, parallel_safe, core, auto_approval, auto_background, previews, name = "…", category = "…", schema = …, traits(…), example(…), available_if(…), run_if(…)
            24: `alone`: an async tool begins with `cx: &Cx` or `cx: &Cx<STATE>`
            32: `String`: an async tool begins with `cx: &Cx` or `cx: &Cx<STATE>`
            40: `()`: an async tool begins with `cx: &Cx` or `cx: &Cx<STATE>`
            46: `Cx`: a tool that is a plain `fn` begins with `state: &STATE, host: &Reporter`, and may block; for `cx: &Cx` write `async fn`
            52: `lonely`: a tool that is a plain `fn` begins with `state: &STATE, host: &Reporter`, and may block; for `cx: &Cx` write `async fn`
            61: `&self`: a tool is a free function, without `self`
            68: `<T>`: a tool has no generics: its schema is that of one type
            82: `(one, two)`: an argument is a name, which a model reads
            92: `&str`: a tool owns its arguments: `String` instead of `&str`, and no `impl`
            102: `#[cfg(unix)]`: an argument takes a doc comment, `#[serde(…)]` and `#[schemars(…)]`
            109: `asked`: `asked` needs a method: write this tool as a struct with `impl Tool`
            116: `mute`: a tool answers: add `-> Result<Output>`
            120: `extern "C"`: a tool is a plain `fn` or `async fn`
            126: `unsafe`: a tool is a plain `fn` or `async fn`
            133: `where`: a tool has no generics: its schema is that of one type
            139: `/// Is no function.`: `#[tool_fn]` is for functions; a struct takes `#[derive(ToolInput)]`
        "#]],
    );
}

#[test]
fn a_plugin_whose_panics_would_end_the_host_does_not_compile() {
    let abort = ["--features", "plugin", "--", "-C", "panic=abort"];
    expect![[r#"
        13: `jaato_plugin_sdk::export_plugin! { state: () }`: a jaato plugin must unwind: remove `panic = "abort"` from its profile, or a panic would end the host
    "#]].assert_eq(&errors("lib.rs", &abort));
}
