//! Tests that shipped tools declare what their arguments touch, and that the rules use it.

use std::fs;

use jaato_runtime::types::touches::{KEYWORD, undeclared_strings};
use serde_json::{Value, json};

use crate::support::{House, fixtures, library_name};

const FILE: &str = "home/.config/jaato/permissions.toml";

/// Returns an installation with the file tools.
fn house_with_file_tools() -> Option<House> {
    let house = House::new()?;
    let plugins = fixtures::test_house()?.join("plugins");
    for plugin in ["environment_local", "tool_file_edit", "tool_filesystem_query"] {
        house.ship(&plugins.join(library_name(plugin)));
    }
    Some(house)
}

/// Returns an installation with the file tools and an MCP server.
fn house_with_server() -> Option<House> {
    let house = house_with_file_tools()?;
    house.ship(&fixtures::test_house()?.join("plugins").join(library_name("tool_mcp")));
    let program = fixtures::built_program("mcp_server");
    let servers = json!({ "moon": { "command": program, "args": ["legacy"], "alwaysLoad": true } });
    house.write("home/.mcp.json", &json!({ "mcpServers": servers }).to_string());
    Some(house)
}

fn write_rules(house: &House, rules: &[&str]) {
    let rules = rules.iter().map(|rule| format!("[[rules]]\n{}\n", rule.replace("; ", "\n")));
    house.write(FILE, &format!("version = 1\n{}", rules.collect::<String>()));
}

/// Runs calls, one per answer, and returns each decision: `allowed` or `denied`, and the rule.
fn call_decisions(house: &House, options: &[&str], calls: &[(&str, Value)]) -> Vec<String> {
    let answer = |(name, arguments): &(&str, Value)| json!({ "steps": [{ "call": { "name": name, "arguments": arguments } }] });
    let mut answers: Vec<Value> = calls.iter().map(answer).collect();
    answers.push(json!({ "steps": [{ "text": "done" }] }));
    house.set_script(&json!({ "answers": answers }));
    let words: Vec<&str> = ["run", "--output", "json"].iter().chain(options).copied().collect();
    let output = house.command(&[words.as_slice(), &["go"]].concat()).run();
    let lines = output.json_lines();
    let decisions = lines.iter().filter(|line| line["event"] == "permission_decided");
    let decisions: Vec<String> = decisions
        .map(|line| {
            let word = if line["allowed"] == true { "allowed" } else { "denied" };
            format!("{word} {}", line["rule"].as_str().unwrap())
        })
        .collect();
    assert_eq!(decisions.len(), calls.len(), "{output}");
    decisions
}

/// Explains a call as JSON.
fn explain_call(house: &House, tool: &str, arguments: &Value) -> Value {
    let arguments = arguments.to_string();
    house.run(&["permission", "explain", "--output", "json", tool, &arguments]).code(0).json()
}

fn edit_call(operations: Value) -> (&'static str, Value) {
    ("multiFileEdit", json!({ "operations": operations }))
}

/// Returns the tool arguments without a declaration.
fn undeclared_arguments(tools: &[Value]) -> Vec<String> {
    let own = tools.iter().filter(|tool| tool["foreign"] != true);
    let places = own.flat_map(|tool| {
        let places = undeclared_strings(&tool["parameters"]).into_iter();
        places.map(move |place| format!("{}: {place}", tool["name"].as_str().unwrap()))
    });
    places.collect()
}

#[test]
fn each_string_argument_of_each_shipped_tool_is_declared() {
    let Some(house) = House::new() else { return };
    let Some(built) = fixtures::test_house() else { return };
    for entry in fs::read_dir(built.join("plugins")).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            house.ship(&path);
        }
    }
    let list = house.run(&["tool", "list", "--json"]).code(0).json();
    let tools = list.as_array().unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    for expected in ["multiFileEdit", "grep_content", "cli_based_tool", "shell_input", "list_tools"]
    {
        assert!(names.contains(&expected), "{names:?}");
    }
    assert_eq!(undeclared_arguments(tools), Vec::<String>::new());
}

#[test]
fn a_tool_with_an_argument_that_is_not_declared_is_found() {
    let tool = |property: Value| {
        vec![json!({
            "name": "made_up",
            "parameters": {
                "type": "object",
                "additionalProperties": false,
                "properties": { "a": property },
            },
        })]
    };
    assert_eq!(undeclared_arguments(&tool(json!({ "type": "string" }))), ["made_up: a"]);
    let empty = json!({ "type": "string", KEYWORD: { "text": "" } });
    assert_eq!(undeclared_arguments(&tool(empty)), ["made_up: a"]);
    let list = json!({ "type": "array", "items": { "type": "string" } });
    assert_eq!(undeclared_arguments(&tool(list)), ["made_up: a[]"]);
    let declared = json!({ "type": "string", KEYWORD: "read" });
    assert_eq!(undeclared_arguments(&tool(declared)), Vec::<String>::new());
}

#[test]
fn argument_declarations_are_shown_to_users_but_not_to_models() {
    let Some(house) = house_with_file_tools() else { return };
    let schemas = json!({ "names": ["multiFileEdit", "grep_content"] });
    house.set_script(&json!({ "answers": [
        { "steps": [{ "call": { "name": "get_tool_schemas", "arguments": schemas } }] },
        { "steps": [{ "text": "done" }] },
    ] }));
    let output = house.run(&["run", "--output", "json", "go"]).code(0);
    assert!(
        output.stdout.contains("multiFileEdit") && !output.stdout.contains(KEYWORD),
        "{output}"
    );
    let prompt = house.run(&["run", "--show-prompt", "go"]).stdout;
    assert!(!prompt.contains(KEYWORD), "{prompt}");
    let shown = house.run(&["tool", "show", "multiFileEdit"]).code(0).stdout;
    for line in ["operations[].from: written", "operations[].content: text (text of the file)"] {
        assert!(shown.contains(line), "{shown}");
    }
    assert!(!shown.contains(KEYWORD), "{shown}");
}

#[test]
fn deny_rule_applies_to_every_path_of_an_operation() {
    let Some(house) = house_with_file_tools() else { return };
    write_rules(&house, &["decision = \"deny\"; path = \"secret\""]);
    house.write("workspace/secret/key", "TOP");
    house.write("workspace/a", "a");
    let calls = [
        edit_call(json!([{ "action": "rename", "from": "secret/key", "to": "k" }])),
        edit_call(json!([{ "action": "rename", "from": "a", "to": "secret/a" }])),
        edit_call(
            json!([{ "action": "rename", "source_path": "secret/key", "destination_path": "k" }]),
        ),
        edit_call(json!([
            { "action": "create", "path": "b", "content": "b" },
            { "action": "rename", "from": "./x/../secret/key", "to": "k" },
        ])),
        ("moveFile", json!({ "source_path": "secret/key", "destination_path": "k" })),
        ("findAndReplace", json!({ "pattern": "T", "replacement": "S", "paths": "secret/*" })),
        ("grep_content", json!({ "pattern": "T", "path": "secret" })),
        ("glob_files", json!({ "pattern": "secret/**" })),
        ("glob_files", json!({ "pattern": "*", "root": "secret" })),
    ];
    let decisions = call_decisions(&house, &["--yes"], &calls);
    assert!(decisions.iter().all(|it| it == "denied file.deny"), "{decisions:?}");
    assert!(!house.workspace().join("k").exists());
    assert_eq!(fs::read_to_string(house.workspace().join("secret/key")).unwrap(), "TOP");
}

#[test]
fn accept_edits_mode_checks_both_ends_of_a_rename() {
    let Some(house) = house_with_file_tools() else { return };
    house.write("workspace/.git/config", "[core]\n");
    house.write("workspace/a", "a");
    let calls = [
        edit_call(json!([
            { "action": "create", "path": "c", "content": "[core]\n\tfsmonitor = touch ran\n" },
            { "action": "rename", "from": ".git/config", "to": "old" },
            { "action": "rename", "from": "c", "to": ".git/config" },
        ])),
        edit_call(json!([{ "action": "rename", "from": "a", "to": ".git/hooks/pre-commit" }])),
        edit_call(json!([{ "action": "rename", "from": "a", "to": ".mcp.json" }])),
        edit_call(json!([{ "action": "rename", "from": "a", "to": "../out" }])),
        edit_call(
            json!([{ "action": "rename", "source_path": "a", "destination_path": ".envrc" }]),
        ),
        edit_call(json!([{ "action": "rename", "from": "a", "to": "b" }])),
    ];
    let decisions = call_decisions(&house, &["--mode", "accept-edits"], &calls);
    let (inside, guarded) = decisions.split_last().unwrap();
    assert!(guarded.iter().all(|it| it.starts_with("denied")), "{decisions:?}");
    assert_eq!(inside, "allowed mode.accept_edits");
    assert_eq!(fs::read_to_string(house.workspace().join(".git/config")).unwrap(), "[core]\n");
}

#[test]
fn path_allow_rule_must_cover_every_path_of_the_call() {
    let Some(house) = house_with_file_tools() else { return };
    write_rules(&house, &["decision = \"allow\"; tool = \"*\"; path = \"src\""]);
    house.write("workspace/src/a", "a");
    let calls = [
        edit_call(json!([{ "action": "rename", "from": "src/a", "to": "Makefile" }])),
        edit_call(json!([{ "action": "rename", "from": "Makefile", "to": "src/b" }])),
        ("findAndReplace", json!({ "pattern": "a", "replacement": "b", "paths": "**/*" })),
        ("findAndReplace", json!({ "pattern": "a", "replacement": "b", "paths": "src/../*" })),
        ("findAndReplace", json!({ "pattern": "a", "replacement": "b", "paths": "src/*/../../x" })),
        ("findAndReplace", json!({ "pattern": "a", "replacement": "b", "paths": "{src,x}/*" })),
        ("findAndReplace", json!({ "pattern": "a", "replacement": "c", "paths": "src/**/*" })),
        edit_call(json!([{ "action": "rename", "from": "src/a", "to": "src/b" }])),
    ];
    let decisions = call_decisions(&house, &[], &calls);
    let (denied, allowed) = decisions.split_at(6);
    assert!(denied.iter().all(|it| it.starts_with("denied")), "{decisions:?}");
    assert!(allowed.iter().all(|it| it == "allowed file.allow"), "{decisions:?}");
    assert!(!house.workspace().join("Makefile").exists());
}

#[test]
fn an_explanation_shows_every_path_of_a_call() {
    let Some(house) = house_with_file_tools() else { return };
    let (tool, arguments) = edit_call(json!([
        { "action": "rename", "from": "a", "to": "sub/b" },
        { "action": "create", "path": "c", "content": "~/.ssh" },
    ]));
    let touches = explain_call(&house, tool, &arguments)["touches"].clone();
    let written = |name: &str| json!({ "kind": "write", "name": house.workspace().join(name).display().to_string() });
    let touches = touches.as_array().unwrap();
    for name in ["a", "sub/b", "c"] {
        assert!(touches.contains(&written(name)), "{touches:?}");
    }
    assert!(!touches.iter().any(|it| it["name"].as_str().unwrap().contains(".ssh")), "{touches:?}");
}

#[test]
fn path_host_and_command_rules_never_allow_mcp_tools() {
    let Some(house) = house_with_server() else { return };
    let workspace = house.workspace().display().to_string();
    write_rules(
        &house,
        &[
            "decision = \"allow\"; command = \"echo\"",
            "decision = \"allow\"; command = \"echo\"; options = \"any\"",
            &format!("decision = \"allow\"; path = \"{workspace}\""),
            &format!("decision = \"allow\"; tool = \"mcp__moon__echo\"; path = \"{workspace}\""),
            "decision = \"allow\"; host = \"moon.example\"",
            "decision = \"allow\"; plugin = \"tool-mcp\"",
            "decision = \"allow\"; plugin = \"tool-mcp\"; tool = \"mcp__*\"",
            "decision = \"allow\"; tool = \"mcp__moon__*\"",
            "decision = \"allow\"; tool = \"*\"",
            "decision = \"allow\"; read_only = true",
        ],
    );
    let call = |text: &str| ("mcp__moon__echo", json!({ "text": text }));
    let calls = [call("echo x"), call(&workspace), call("https://moon.example/x"), call("hello")];
    let decisions = call_decisions(&house, &[], &calls);
    assert!(decisions.iter().all(|it| it.starts_with("denied")), "{decisions:?}");
    write_rules(&house, &["decision = \"allow\"; tool = \"mcp__moon__echo\""]);
    let decisions = call_decisions(&house, &[], &calls);
    assert!(decisions.iter().all(|it| it == "allowed file.allow"), "{decisions:?}");
}

#[test]
fn path_host_and_command_rules_deny_any_matching_mcp_argument() {
    let Some(house) = house_with_server() else { return };
    write_rules(
        &house,
        &[
            "decision = \"deny\"; path = \"secret\"",
            "decision = \"deny\"; host = \"evil.example\"",
            "decision = \"deny\"; command = \"rm\"",
        ],
    );
    let call = |text: &str| ("mcp__moon__echo", json!({ "text": text }));
    let calls = [
        call("secret/key"),
        call("./secret"),
        call("src/../secret/key"),
        call("cat secret/key"),
        call("https://evil.example/x"),
        call("evil.example"),
        call("evil.example:443/x"),
        call("http:/evil.example"),
        call("x@evil.example"),
        call("rm -rf x"),
        call("hello"),
    ];
    let decisions = call_decisions(&house, &["--yes"], &calls);
    let (harmless, kept) = decisions.split_last().unwrap();
    assert!(kept.iter().all(|it| it.starts_with("denied")), "{decisions:?}");
    assert_eq!(harmless, "allowed option.yes");
}
