//! Macros report errors at the location of the mistake, and say what would be correct.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::Path;
use std::process::Command;

use expect_test::{Expect, expect};
use jaato_plugin_sdk::serde_json::{Value, from_str};

/// Builds the fixture and returns the errors in one of its files: the line, the underlined code,
/// and the message.
fn compile_errors(file: &str, cargo_arguments: &[&str]) -> String {
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
        messages.filter_map(|message| parse_error(&message["message"], file)).collect();
    assert!(!errors.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    errors.sort();
    errors.into_iter().map(|(line, text)| format!("{line}: {text}\n")).collect()
}

fn parse_error(message: &Value, file: &str) -> Option<(u64, String)> {
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
fn check_errors(file: &str, expected: Expect) {
    expected.assert_eq(&compile_errors(file, &["--features", "macros"]));
}

#[test]
fn invalid_export_plugin_arguments_do_not_compile() {
    check_errors(
        "plugins.rs",
        expect![[r#"
            5: `tool`: unknown key `tool`, expected one of: state: TYPE, tools (or tools: dynamic), provider: TYPE, gc: TYPE, environment: TYPE, hook: TYPE, scope: host, isolation: worker, variables: ["NAME", "NAME=VALUE", …]
            7: `gc`: duplicate key `gc`
            9: `export_plugin! { tools, scope: host }`: missing `state: TYPE`: the state that the whole plugin shares, or `()` for none
            13: `session`: `scope` accepts only `host`, found `session`
            15: `vault`: `isolation` accepts only `worker`, found `vault`
            17: `"MY HOME"`: expected `NAME` or `NAME=VALUE`
            19: `(`: expected `:`
        "#]],
    );
}

#[test]
fn invalid_tool_struct_does_not_compile() {
    check_errors(
        "structs.rs",
        expect![[r#"
            6: `Undescribed`: missing doc comment: it describes the tool to the model
            11: `text: String`: missing doc comment: it describes the argument to the model
            16: `harmless`: unknown key `harmless`, expected one of: read_only, destructive, idempotent, open_world, parallel_safe, core, auto_approval, auto_background, previews, name = "…", category = "…", schema = …, traits(…), example(…), available_if(…), run_if(…)
        "#]],
    );
}

#[test]
fn invalid_tool_function_does_not_compile() {
    check_errors(
        "functions.rs",
        expect![[r#"
            6: `undescribed`: missing doc comment: it describes the tool to the model
            12: `text: String`: missing doc comment: it describes the argument to the model
            17: `harmless`: unknown key `harmless`, expected one of: read_only, destructive, idempotent, open_world, parallel_safe, core, auto_approval, auto_background, previews, name = "…", category = "…", schema = …, traits(…), example(…), available_if(…), run_if(…)
            24: `alone`: the first argument of an async tool must be `cx: &Cx` or `cx: &Cx<STATE>`
            32: `String`: the first argument of an async tool must be `cx: &Cx` or `cx: &Cx<STATE>`
            40: `()`: the first argument of an async tool must be `cx: &Cx` or `cx: &Cx<STATE>`
            46: `Cx`: the first arguments of a plain `fn` must be `state: &STATE, host: &Reporter`; for `cx: &Cx`, write `async fn`
            52: `lonely`: the first arguments of a plain `fn` must be `state: &STATE, host: &Reporter`; for `cx: &Cx`, write `async fn`
            61: `&self`: a tool must be a free function without `self`
            68: `<T>`: a tool cannot be generic, because its schema describes one type
            82: `(one, two)`: an argument must be a plain name, because the model reads it
            92: `&str`: a tool must own its arguments: use `String` instead of `&str`, and no `impl`
            102: `#[cfg(unix)]`: an argument accepts only a doc comment, `#[serde(…)]` and `#[schemars(…)]`
            109: `asked`: `asked` needs a method: write this tool as a struct with `impl Tool`
            116: `mute`: a tool must return a result: add `-> Result<Output>`
            120: `extern "C"`: a tool must be a plain `fn` or `async fn`
            126: `unsafe`: a tool must be a plain `fn` or `async fn`
            133: `where`: a tool cannot be generic, because its schema describes one type
            139: `/// Is not a function.`: `#[tool_fn]` works only on functions; use `#[derive(ToolInput)]` on a struct
        "#]],
    );
}

#[test]
fn plugin_with_panic_abort_does_not_compile() {
    let abort = ["--features", "plugin", "--", "-C", "panic=abort"];
    expect![[r#"
        13: `jaato_plugin_sdk::export_plugin! { state: () }`: a jaato plugin must unwind: remove `panic = "abort"` from its profile, or a panic would end the host
    "#]].assert_eq(&compile_errors("lib.rs", &abort));
}
