//! Tests the lists and details of `jaato tool` and `jaato plugin`.

use expect_test::expect;
use serde_json::json;

use crate::house;
use crate::support::fixture;

#[test]
fn tools_are_listed() {
    let house = house!(ships "echo");
    expect![[r#"
        TOOL              PLUGIN            STATUS   PROMISES   DESCRIPTION
        count_bytes_echo  fixture-echo      enabled  read-only  `count_bytes_echo` counts the bytes of a text.
        get_environment   tool-environment  enabled  read-only  Get facts about this computer, its terminal and this session.
        list_tools        jaato             enabled  read-only  Find more tools.
        get_tool_schemas  jaato             enabled  read-only  Show tools with their arguments.
        view_environment  jaato             enabled  read-only  Look at objects that tools have found in this conversation.
    "#]].assert_eq(&house.run(&["tool", "list"]).expect_silent().stdout);
    let shown = house.run(&["tool", "show", "list_tools"]).expect_silent().stdout;
    assert!(
        shown.starts_with("list_tools of jaato (enabled, while there is something to find"),
        "{shown}"
    );
}

#[test]
fn lists_say_so_if_there_are_no_plugins() {
    let Some(house) = crate::support::House::without_plugins() else { return };
    expect![[r#"
        no tools
    "#]]
    .assert_eq(&house.run(&["tool", "list"]).expect_silent().stdout);
    expect![[r#"
        no plugins
    "#]]
    .assert_eq(&house.run(&["plugin", "list"]).expect_silent().stdout);
    expect![[r#"
        no models
    "#]]
    .assert_eq(&house.run(&["model", "list"]).expect_silent().stdout);
}

#[test]
fn tools_are_listed_as_json() {
    let house = house!();
    let list = house.run(&["tool", "list", "--json"]).expect_silent().json();
    let tool = &list.as_array().unwrap()[0];
    let names: Vec<_> = list.as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
    assert_eq!(names, ["get_environment", "list_tools", "get_tool_schemas", "view_environment"]);
    assert_eq!(list[1]["plugin"], "jaato");
    assert_eq!(tool["name"], "get_environment");
    assert_eq!(tool["plugin"], "tool-environment");
    assert_eq!(tool["status"], "enabled");
    assert_eq!(tool["annotations"]["read_only"], true);
    assert_eq!(tool["parameters"]["properties"]["aspect"]["enum"][0], "os");
}

#[test]
fn tool_show_prints_description_arguments_and_examples() {
    let house = house!();
    expect![[r#"
        get_environment of tool-environment (enabled, in every request; read-only)

        Get facts about this computer, its terminal and this session. Do not guess them.

        arguments:
        {
          "type": "object",
          "properties": {
            "aspect": {
              "type": "string",
              "enum": [
                "os",
                "shell",
                "arch",
                "cwd",
                "terminal",
                "context",
                "session",
                "datetime",
                "network",
                "all"
              ],
              "description": "os: system and version; context: tokens used; datetime: date, time, zone.",
              "default": "all"
            }
          },
          "additionalProperties": false
        }

        examples:
          "Which folder are we in?"
            jaato call get_environment '{"aspect":"cwd"}'
          "What day is it today?"
            jaato call get_environment '{"aspect":"datetime"}'
          "Can my terminal show colours?"
            jaato call get_environment '{"aspect":"terminal"}'
          "How many tokens are left?"
            jaato call get_environment '{"aspect":"context"}'
    "#]].assert_eq(&house.run(&["tool", "show", "get_environment"]).expect_silent().stdout);
}

#[test]
fn the_examples_that_a_tool_shows_can_be_typed() {
    let house = house!();
    let shown = house.run(&["tool", "show", "get_environment"]).expect_silent().stdout;
    let examples: Vec<&str> =
        shown.lines().filter_map(|line| line.trim().strip_prefix("jaato call ")).collect();
    assert!(examples.len() >= 3, "{shown}");
    for example in examples {
        let (tool, arguments) = example.split_once(' ').unwrap();
        let output = house.run(&["call", tool, arguments.trim_matches('\'')]);
        // The context is known only in a session with a model.
        let expected = if arguments.contains("context") { 1 } else { 0 };
        output.code(expected);
    }
}

#[test]
fn tool_show_json_equals_its_entry_in_the_tool_list() {
    let house = house!();
    let shown = house.run(&["tool", "show", "get_environment", "--json"]).expect_silent().json();
    let list = house.run(&["tool", "list", "--json"]).expect_silent().json();
    assert_eq!(shown, list[0]);
}

#[test]
fn unknown_tool_error_suggests_the_nearest_name() {
    let house = house!();
    let output = house.run(&["tool", "show", "get_enviroment"]).code(2);
    expect![[r#"
        exit 2
        --- stderr
        error: there is no tool `get_enviroment`
        hint: did you mean `get_environment`?
    "#]]
    .assert_eq(&output.to_string());
    let output = house.run(&["tool", "show", "zzz"]).code(2);
    expect![[r#"
        exit 2
        --- stderr
        error: there is no tool `zzz`
        hint: `jaato tool list` lists them
    "#]]
    .assert_eq(&output.to_string());
}

#[test]
fn plugins_are_listed() {
    let house = house!(ships "echo");
    expect![[r#"
        PLUGIN            VERSION  FROM     STATUS  RUNS          OFFERS
        fixture-echo      0.1.0    shipped  active  inside jaato  count_bytes_echo
        tool-environment  0.1.0    shipped  active  inside jaato  get_environment
    "#]]
    .assert_eq(&house.run(&["plugin", "list"]).expect_silent().stdout);
}

#[test]
fn a_plugin_is_shown() {
    let house = house!();
    let output = house.run(&["plugin", "show", "tool-environment"]).expect_silent();
    expect![[r#"
        exit 0
        --- stdout
        tool-environment 0.1.0
          file        $HOUSE/plugins/libtool_environment.so
          from        shipped
          plugin-api  1.0.0 (this host speaks 1.0.0)
          trusted     as the executable: it is shipped next to it
          runs        inside jaato
          tool        get_environment
    "#]]
    .assert_eq(&output.to_string());
    house.ship(&fixture("probe"));
    let shown = house.run(&["plugin", "show", "fixture-probe"]).expect_silent().stdout;
    assert!(shown.contains("\n  tool        echo\n"), "{shown}");
    assert!(shown.contains("\n  provider    probe"), "{shown}");
}

#[test]
fn plugins_are_listed_as_json() {
    let house = house!();
    let list = house.run(&["plugin", "list", "--json"]).expect_silent().json();
    assert_eq!(list["problems"], json!([]));
    let plugin = &list["plugins"][0];
    let expected = json!({
        "name": "tool-environment",
        "version": env!("CARGO_PKG_VERSION"),
        "api": "1.0.0",
        "path": house.shipped_folder().join("libtool_environment.so"),
        "from": "shipped",
        "status": "active",
        "why": null,
        "hint": null,
        "sha256": null,
        "trusted": true,
    });
    for (key, value) in expected.as_object().unwrap() {
        assert_eq!(plugin[key], *value, "{key}");
    }
    assert_eq!(plugin["description"]["tools"][0]["name"], "get_environment");
    let shown = house.run(&["plugin", "show", "tool-environment", "--json"]).expect_silent().json();
    assert_eq!(shown, *plugin);
}

#[test]
fn unknown_plugin_error_suggests_the_nearest_name() {
    let house = house!();
    let output = house.run(&["plugin", "show", "tool-enviroment"]).code(2);
    expect![[r#"
        exit 2
        --- stderr
        error: there is no plugin `tool-enviroment`
        hint: did you mean `tool-environment`?
    "#]]
    .assert_eq(&output.to_string());
}

#[test]
fn a_good_plugin_passes_the_check() {
    let house = house!();
    let file = house.given_folder().join("echo.so");
    std::fs::copy(fixture("echo"), &file).unwrap();
    let output = house.run(&["plugin", "check", &file.display().to_string()]).expect_silent();
    expect![[r#"
        exit 0
        --- stdout
        manifest     ok: fixture-echo 0.1.0, plugin-api 1.0.0
        layout       ok: it fits this host
        description  ok: tools count_bytes_echo
        instance     ok: it starts in a worker
        tool count_bytes_echo  ok: 1 example ran
        conformance  ok: 21 checks hold
    "#]]
    .assert_eq(&output.to_string());
}

#[test]
fn list_exits_quietly_when_its_output_is_closed() {
    let house = house!(ships "probe");
    for words in [&["tool", "list", "--json"][..], &["plugin", "list", "--json"]] {
        let output = house.command(words).run_into_closed_output(1);
        assert_eq!(output.stderr, "", "{output}");
    }
}

#[test]
fn doctor_reports_a_missing_model() {
    let house = house!();
    let output = house.run(&["doctor"]).code(4);
    assert!(output.stdout.contains("1 of 1 available, 1 tools"), "{output}");
    assert!(output.stderr.contains("no model is available"), "{output}");
    assert!(output.stderr.contains("hint: "), "{output}");
}

#[test]
fn doctor_succeeds_when_a_model_is_available() {
    let house = house!();
    house.set_script(&json!({ "answers": [] }));
    let output = house.run(&["doctor"]).expect_silent();
    assert!(output.stdout.contains("scripted/test (default)"), "{output}");
    assert!(output.stdout.trim_end().ends_with("am I running on?\""), "{output}");
}

#[test]
fn models_are_listed_with_the_default_marked() {
    let house = house!();
    house.set_script(&json!({ "answers": [] }));
    expect![[r#"
           MODEL          WEIGHTS  ABOUT
        *  scripted/test           Answers from a file
    "#]]
    .assert_eq(&house.run(&["model", "list"]).expect_silent().stdout);
    let list = house.run(&["model", "list", "--json"]).expect_silent().json();
    let expected = json!({
        "models": [{
            "model": "scripted/test",
            "title": "Answers from a file",
            "context_limit": 32768,
            "default": true,
            "bytes_to_fetch": null,
        }],
        "problems": [],
    });
    assert_eq!(list, expected);
}

#[test]
fn model_without_declared_weights_cannot_be_pulled() {
    let house = house!();
    let output = house.run(&["model", "pull"]).code(2);
    expect![[r#"
        exit 2
        --- stderr
        error: no weights to download for `local/qwen2.5-coder-1.5b`
        hint: no plugin declares a model; `jaato plugin list` lists the plugins
    "#]]
    .assert_eq(&output.to_string());
}

#[test]
fn import_of_an_invalid_model_file_is_refused() {
    let house = house!();
    let file = house.write_given_file("moon.gguf", b"not a model").display().to_string();
    let output = house.run(&["model", "import", &file, "--name", "moon"]).code(1);
    expect![[r#"
        exit 1
        --- stderr
        error: cannot read `$HOUSE/given/moon.gguf` as a model: it does not begin with `GGUF`
        hint: only models in the GGUF format can be imported
    "#]]
    .assert_eq(&output.to_string());
    let output = house.run(&["model", "import", &file]).code(1);
    expect![[r#"
        exit 1
        --- stderr
        error: jaato does not know the model in `$HOUSE/given/moon.gguf`: no known file has 11 bytes
        hint: `--name NAME` imports it under your own name
    "#]]
    .assert_eq(&output.to_string());
    let missing = house.given_folder().join("sun.gguf").display().to_string();
    let output = house.run(&["model", "import", &missing, "--name", "moon"]).code(1);
    expect![[r#"
        exit 1
        --- stderr
        error: file `$HOUSE/given/sun.gguf` does not exist
        hint: give the path of a model file: `jaato model import FILE`
    "#]]
    .assert_eq(&output.to_string());
}
