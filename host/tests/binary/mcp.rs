//! Tests MCP servers that a user has set up: their tools in a conversation, what they may request,
//! and what happens if they misbehave.

use std::fs;

use serde_json::{Value, json};

use crate::questions::wait_for_file;
use crate::support::answers::text_answer;
use crate::support::{House, fixtures, library_name, set_mode};

/// Returns an installation with the plugin and these servers, each with its arguments.
fn house_with_servers(servers: &[(&str, &[&str])]) -> Option<House> {
    let house = House::new()?;
    house.ship(&fixtures::test_house()?.join("plugins").join(library_name("tool_mcp")));
    let entries = servers.iter().map(|(name, args)| ((*name).to_owned(), server_entry(args)));
    write_servers(&house, "home/.mcp.json", entries.collect());
    Some(house)
}

fn server_entry(args: &[&str]) -> Value {
    json!({ "command": fixtures::built_program("mcp_server"), "args": args })
}

fn write_servers(house: &House, place: &str, servers: serde_json::Map<String, Value>) {
    house.write(place, &json!({ "mcpServers": servers }).to_string());
}

fn run_mcp(house: &House, words: &[&str]) -> String {
    let words: Vec<&str> = ["command", "mcp"].iter().chain(words).copied().collect();
    let answer = house.run(&words).code(0).stdout;
    let answer: Value = serde_json::from_str(&answer).unwrap();
    answer["result"].as_str().unwrap().to_owned()
}

fn call_tool(house: &House, tool: &str, arguments: Value) -> Value {
    let output = house.run(&["call", tool, &arguments.to_string()]).code(0);
    serde_json::from_str(&output.stdout).unwrap()
}

fn call_answer(name: &str, arguments: Value) -> Value {
    json!({ "steps": [{ "call": { "name": name, "arguments": arguments } }] })
}

fn expect_result(result: &str, mut answer: Value) -> Value {
    answer["expect"] = json!({ "tool_result": result });
    answer
}

#[test]
fn servers_of_both_protocol_eras_and_with_failing_probes_offer_their_tools() {
    let servers: [(&str, &[&str]); 5] = [
        ("legacy", &["legacy"]),
        ("modern", &["modern"]),
        ("exits", &["exits"]),
        ("noisy", &["noisy"]),
        ("odd", &["odd"]),
    ];
    let Some(house) = house_with_servers(&servers) else { return };
    for (name, _) in servers {
        run_mcp(&house, &["connect", name]);
        let answer = call_tool(&house, &format!("mcp__{name}__echo"), json!({ "text": name }));
        let result = json!({ "tool": "echo", "isError": false, "content": [name] });
        assert_eq!(answer, json!({ "result": result }));
    }
    let status = run_mcp(&house, &["status"]);
    assert!(status.contains("MCP: 5 of 5 servers connected"), "{status}");
    assert!(status.contains("modern: connected, 12 tools, protocol 2026-07-28"), "{status}");
    house.assert_no_processes();
}

#[test]
fn model_finds_and_calls_tools_of_an_mcp_server() {
    let Some(house) = house_with_servers(&[("moon", &["legacy"])]) else { return };
    let answers = json!([
        call_answer("list_tools", json!({ "category": "MCP: moon" })),
        expect_result(
            "mcp__moon__add",
            call_answer("get_tool_schemas", json!({ "names": ["mcp__moon__add"] }))
        ),
        expect_result("mcp__moon__add", call_answer("mcp__moon__add", json!({ "a": 40, "b": 2 }))),
        expect_result("42", call_answer("mcp__moon__fail", json!({}))),
        expect_result("there is no moon tonight", text_answer("done")),
    ]);
    house.set_script(&json!({ "answers": answers }));
    let output = house.run(&["run", "--yes", "add them"]).code(0);
    assert_eq!(output.stdout, "done\n");
    house.assert_no_processes();
}

#[test]
fn mcp_tool_call_without_permission_is_denied_even_if_declared_read_only() {
    let Some(house) = house_with_servers(&[("moon", &["legacy"])]) else { return };
    house.set_script(&json!({ "answers": [
            call_answer("mcp__moon__echo", json!({ "text": "x" })),
            text_answer("no"),
        ] }));
    // The server claims that it is read-only, which is not trusted.
    house.run(&["run", "echo it"]).code(6);
    house.assert_no_processes();
}

#[test]
fn permanent_answer_for_an_mcp_tool_ends_when_its_entry_or_description_changes() {
    let Some(house) = house_with_servers(&[("moon", &["swaps"])]) else { return };
    // Runs one call and answers its prompt permanently. Returns the prompt's warning.
    let asked = || {
        house.set_script(&json!({ "answers": [
            call_answer("list_tools", json!({})),
            call_answer("mcp__moon__echo", json!({ "text": "x" })),
            text_answer("done"),
        ] }));
        let mut running = house.command(&["run", "--output", "json", "--answers", "go"]).start();
        let mut warning = None;
        loop {
            let event: Value = serde_json::from_str(&running.next_line()).unwrap();
            match event["event"].as_str().unwrap() {
                "permission_asked" => {
                    warning = Some(event["warning"].as_str().unwrap_or_default().to_owned());
                    let answer = json!({ "call_id": event["call_id"], "decision": "allow_always", "pattern": 1 });
                    running.write(format!("{}\n", json!({ "answer": answer })).as_bytes());
                }
                "turn_finished" => break,
                _ => {}
            }
        }
        running.finish().code(0);
        warning
    };
    assert_eq!(asked().as_deref(), Some(""));
    assert_eq!(asked(), None);
    house.write("workspace/swapped", "");
    run_mcp(&house, &["reload"]);
    let again = "its description changed since you allowed this tool; check the call again";
    assert_eq!(asked().as_deref(), Some(again));
    assert_eq!(asked(), None);
    write_servers(
        &house,
        "home/.mcp.json",
        [("moon".to_owned(), server_entry(&["swaps", "--more"]))].into_iter().collect(),
    );
    let again = "the server's entry changed since you allowed this tool; check the call again";
    assert_eq!(asked().as_deref(), Some(again));
    assert_eq!(asked(), None);
}

#[test]
fn failing_mcp_servers_do_not_affect_other_servers() {
    let servers: [(&str, &[&str]); 3] =
        [("hangs", &["hangs"]), ("moon", &["legacy"]), ("changing", &["changing"])];
    let Some(house) = house_with_servers(&servers) else { return };
    let mut all =
        json!({ "gone": { "command": house.path().join("missing") }, "broken": { "command": 1 } });
    for (name, args) in servers {
        all[name] = server_entry(args);
    }
    write_servers(&house, "home/.mcp.json", all.as_object().unwrap().clone());
    let status = run_mcp(&house, &["status"]);
    assert!(status.contains("gone: disconnected, 0 tools: cannot start"), "{status}");
    assert!(status.contains("server `broken` is ignored: `command` is not a string"), "{status}");
    let output = house.run(&["call", "mcp__moon__die", "{}"]).code(1);
    assert!(
        output.stderr.contains("MCP server `moon`: the server closed the connection"),
        "{}",
        output.stderr
    );
    assert_eq!(
        call_tool(&house, "mcp__changing__echo", json!({ "text": "x" }))["result"]["content"][0],
        "x"
    );
    house.assert_no_processes();
}

#[test]
fn workspace_mcp_servers_need_trust_and_a_broken_file_affects_only_itself() {
    let Some(house) = house_with_servers(&[]) else { return };
    let servers = json!({ "near": server_entry(&["legacy"]) });
    write_servers(&house, "workspace/.mcp.json", servers.as_object().unwrap().clone());
    assert!(run_mcp(&house, &["list"]).starts_with("No MCP servers are configured."));
    house.run(&["trust"]).code(0);
    assert!(run_mcp(&house, &["list"]).contains("near: "));
    call_tool(&house, "mcp__near__echo", json!({ "text": "x" }));
    house.write("home/.mcp.json", "{ not json");
    let list = run_mcp(&house, &["list"]);
    assert!(list.contains("near: ") && list.contains("home/.mcp.json`: Expected colon"), "{list}");
    house.assert_no_processes();
}

#[test]
fn mcp_entry_variables_are_expanded_and_host_secrets_are_not_passed_on() {
    let Some(house) = house_with_servers(&[]) else { return };
    let mut entry = server_entry(&["${MODE:-legacy}", "${EXTRA}"]);
    entry["env"] = json!({ "GIVEN": "${EXTRA}-${TOKEN_OF_MOON}" });
    write_servers(&house, "home/.mcp.json", [("moon".to_owned(), entry)].into_iter().collect());
    let read = |name: &str| {
        let arguments = json!({ "name": name }).to_string();
        let command = house.command(&["call", "mcp__moon__environment", &arguments]);
        let command = command.variable("EXTRA", "far").variable("TOKEN_OF_MOON", "secret");
        let answer: Value = serde_json::from_str(&command.run().code(0).stdout).unwrap();
        answer["result"]["content"][0].as_str().unwrap().to_owned()
    };
    assert_eq!(read("GIVEN"), "far-secret");
    assert_eq!(read("TOKEN_OF_MOON"), "unset");
    house.assert_no_processes();
}

#[test]
fn mcp_add_and_remove_keep_unknown_keys_of_the_file() {
    let Some(house) = house_with_servers(&[]) else { return };
    let file = house.write("workspace/.mcp.json", "{\"other\": 1, \"mcpServers\": {}}");
    house.run(&["trust"]).code(0);
    let server = fixtures::built_program("mcp_server").display().to_string();
    let added = run_mcp(&house, &["add", "moon", &server, "legacy"]);
    assert!(
        added.starts_with(&format!(
            "Added MCP server 'moon' with command: {server} legacy\nUse 'mcp connect moon'"
        )),
        "{added}"
    );
    assert!(!added.contains("not trusted"), "{added}");
    let written: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(written["other"], 1);
    assert_eq!(written["mcpServers"]["moon"]["args"], json!(["legacy"]));
    // The trust was renewed, so the file takes effect in the next process.
    assert!(run_mcp(&house, &["list"]).contains("moon: "));
    let refused = house.run(&["command", "mcp", "add", "moon", "x"]).code(1);
    assert!(refused.stderr.contains("Server 'moon' already exists."), "{}", refused.stderr);
    assert_eq!(
        run_mcp(&house, &["remove", "moon"]),
        "Removed MCP server 'moon' from configuration."
    );
    assert!(run_mcp(&house, &["LIST"]).starts_with("No MCP servers are configured."));
    house.assert_no_processes();
}

#[test]
fn mcp_servers_can_be_added_and_imported_in_other_programs_syntax() {
    let Some(house) = house_with_servers(&[]) else { return };
    let server = fixtures::built_program("mcp_server").display().to_string();
    let at_shell = |words: &[&str]| house.run(&[&["mcp"], words].concat());
    let added =
        at_shell(&["add", "-s", "user", "-e", "GIVEN=far-away-1", "moon", "--", &server, "legacy"]);
    assert!(added.code(0).stdout.starts_with("Added MCP server 'moon'"));
    let read = call_tool(&house, "mcp__moon__environment", json!({ "name": "GIVEN" }));
    assert_eq!(read["result"]["content"][0], "far-away-1");
    let shown = at_shell(&["show", "moon"]).code(0).stdout;
    assert!(shown.contains("Variables: GIVEN") && !shown.contains("far-away"), "{shown}");
    for (words, why) in [
        (&["sun", "--trust", "x"][..], "invalid option '--trust'"),
        (&["--transport", "sse", "sun", "https://e.example"], "`sse` is the 2024-11-05 transport"),
        (&["sun"], "the command or the address is missing"),
    ] {
        let refused = at_shell(&[&["add"], words].concat()).code(2);
        assert!(refused.stderr.contains(why), "{refused}");
    }
    assert!(at_shell(&["add", "--help"]).code(0).stdout.contains("--env KEY=VALUE"));
    let file = json!({ "servers": { "far": { "command": [server, "legacy"], "environment": { "GIVEN": 1 } } } });
    house.write("workspace/.vscode/mcp.json", &format!("// mine\n{file}"));
    assert!(at_shell(&["import"]).code(0).stdout.starts_with("vscode (.vscode/mcp.json): far\n"));
    let imported = at_shell(&["import", "vscode"]).code(0).stdout;
    assert!(imported.starts_with("Imported 'far' from .vscode/mcp.json: "), "{imported}");
    let again = at_shell(&["import", "moonbase"]).code(1);
    assert!(again.stderr.contains("found no MCP configuration of `moonbase`"), "{again}");
    let about = house.run(&["trust"]).code(0).stdout;
    assert!(about.contains("GIVEN=1"), "{about}");
    let read = call_tool(&house, "mcp__far__environment", json!({ "name": "GIVEN" }));
    assert_eq!(read["result"]["content"][0], "1");
    house.assert_no_processes();
}

#[test]
fn mcp_file_with_comments_and_foreign_keys_is_read_and_trusted() {
    let Some(house) = house_with_servers(&[]) else { return };
    let server = json!(fixtures::built_program("mcp_server"));
    let file = format!(
        "{{ // for VS Code\n \"servers\": {{\n  \"moon\": {{ \"type\": \"local\", \"command\": [{server}, \"legacy\"], \
         \"env\": {{ \"GIVEN\": \"${{env:FAR}} ${{workspaceFolder}}\" }}, \"cwd\": null, }},\n  \
         \"off\": {{ \"command\": {server}, \"enabled\": false }} }} }}"
    );
    house.write("workspace/.mcp.json", &file);
    let told = house.run(&["trust"]).code(0).stdout;
    assert!(told.contains("moon: FAR"), "{told}");
    let listed = house.run(&["mcp", "list"]).code(0).stdout;
    assert!(listed.contains("off: ") && listed.contains("[disabled]"), "{listed}");
    let read = house.command(&["call", "mcp__moon__environment", r#"{"name": "GIVEN"}"#]);
    let read = read.variable("FAR", "away").run().code(0).stdout;
    let workspace = house.workspace().canonicalize().unwrap();
    assert!(read.contains(&format!("away {}", workspace.display())), "{read}");
    house.assert_no_processes();
}

#[test]
fn mcp_connect_reload_and_logs_report_their_results() {
    let Some(house) = house_with_servers(&[("moon", &["legacy"])]) else { return };
    let connected = run_mcp(&house, &["connect", "moon"]);
    assert!(
        connected == "Connected to 'moon' successfully (12 tools available)."
            || connected == "Server 'moon' is already connected (12 tools available).",
        "{connected}"
    );
    let reloaded = run_mcp(&house, &["reload"]);
    assert!(
        reloaded.starts_with("Reloaded configuration: 1 servers connected, 12 tools available."),
        "{reloaded}"
    );
    assert_eq!(run_mcp(&house, &["disconnect", "moon"]), "Disconnected from 'moon'.");
    assert!(run_mcp(&house, &["logs", "moon"]).contains("moon: moon server is up"));
    assert!(run_mcp(&house, &["help"]).contains("mcp add NAME COMMAND"));
    let refused = house.run(&["command", "mcp", "fly"]).code(2);
    assert!(refused.stderr.contains("unknown `mcp` action `fly`"), "{}", refused.stderr);
    house.assert_no_processes();
}

#[test]
fn mcp_images_are_attached_and_resources_can_be_read() {
    let Some(house) = house_with_servers(&[("moon", &["legacy"])]) else { return };
    let image = call_tool(&house, "mcp__moon__image", json!({}));
    assert_eq!(image["result"]["content"][0]["mimeType"], "image/png");
    assert_eq!(image["attachments"].as_array().unwrap().len(), 1);
    let listed = call_tool(&house, "mcp_list_resources", json!({ "server": "moon" }));
    assert_eq!(listed["resources"][0]["uri"], "moon://far");
    let read =
        call_tool(&house, "mcp_read_resource", json!({ "server": "moon", "uri": "moon://far" }));
    assert_eq!(read["result"]["content"][0]["text"], "dark");
    house.assert_no_processes();
}

#[test]
fn servers_get_roots_and_their_forms_are_cancelled_without_a_user() {
    let Some(house) = house_with_servers(&[("old", &["legacy"]), ("new", &["modern"])]) else {
        return;
    };
    for name in ["old", "new"] {
        let ask = |tool: &str| {
            let answer = call_tool(&house, &format!("mcp__{name}__{tool}"), json!({}));
            answer["result"]["content"][0].as_str().unwrap().to_owned()
        };
        let roots = ask("roots");
        assert!(roots.contains("file://") && roots.contains("/workspace"), "{roots}");
        assert_eq!(ask("ask"), "{\"action\":\"cancel\"}");
    }
    house.assert_no_processes();
}

#[test]
fn sampling_request_of_an_mcp_server_needs_permission() {
    let Some(house) = house_with_servers(&[("moon", &["legacy"])]) else { return };
    let asks = call_answer("mcp__moon__sample", json!({}));
    let answers =
        json!([asks, text_answer("384400 km"), expect_result("384400 km", text_answer("far"))]);
    house.set_script(&json!({ "answers": answers }));
    let output = house.run(&["run", "--yes", "how far?"]).code(0);
    assert_eq!(output.stdout, "far\n");
    // A server whose tool may be called may not ask the model yet.
    let answers = json!([asks, expect_result("refused", text_answer("never mind"))]);
    house.set_script(&json!({ "answers": answers }));
    house.run(&["run", "--allow", "mcp__moon__sample", "how far?"]).code(0);
    house.assert_no_processes();
}

#[test]
fn chat_offers_the_mcp_command_and_prompts_of_servers() {
    let Some(house) = house_with_servers(&[("moon", &["legacy"])]) else { return };
    house.set_script(&json!({ "answers": [
        { "expect": { "prompt": "Look at the full moon." }, "steps": [{ "text": "seen" }] },
    ] }));
    let input = "/mcp list\n/mcp__moon__watch full\n";
    let output = house.command(&["chat"]).input(input).run().code(0);
    assert!(output.stdout.contains("Configured MCP servers:"), "{output}");
    assert!(output.stdout.contains("moon: "), "{output}");
    assert!(output.stdout.ends_with("seen\n"), "{output}");
    house.assert_no_processes();
}

#[test]
fn user_answers_a_form_of_an_mcp_server_and_sees_the_servers_name() {
    let servers: [(&str, &[&str]); 2] = [("old", &["legacy"]), ("new", &["modern"])];
    for (name, args) in servers {
        let Some(house) = house_with_servers(&[(name, args)]) else { return };
        let ask = call_answer(&format!("mcp__{name}__ask"), json!({}));
        house.set_script(
            &json!({ "answers": [ask, expect_result("accept", text_answer("full it is"))] }),
        );
        let words = ["run", "--yes", "--output", "json", "--answers", "go"];
        let mut running = house.command(&words).start();
        let asked: Value =
            serde_json::from_str(&running.wait_for("\"event\":\"form_asked\"")).unwrap();
        let title = format!("MCP server `{name}` asks: Which phase?");
        assert_eq!(asked["form"]["title"], title.as_str());
        let values = json!({ "phase": "full" });
        let answer =
            json!({ "form_id": asked["form_id"], "outcome": "answered", "values": values });
        running.write(format!("{}\n", json!({ "answer": answer })).as_bytes());
        let output = running.finish().code(0);
        assert!(output.stdout.contains("full it is"), "{output}");
        house.assert_no_processes();
    }
}

#[test]
fn url_request_of_an_mcp_server_shows_the_host_of_the_page() {
    let Some(house) = house_with_servers(&[("moon", &["legacy"])]) else { return };
    let ask = |url: &str| call_answer("mcp__moon__ask", json!({ "url": url }));
    house.set_script(&json!({ "answers": [
        ask("https://moon.example/login?x=1"),
        expect_result("accept", ask("https://jaato.example@moon.example/")),
        expect_result("decline", text_answer("done")),
    ] }));
    let words = ["run", "--yes", "--output", "json", "--answers", "go"];
    let mut running = house.command(&words).start();
    let asked: Value = serde_json::from_str(&running.wait_for("\"event\":\"form_asked\"")).unwrap();
    let text = asked["form"]["fields"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("open this page of `moon.example` in your browser"), "{text}");
    let values = json!({ "page": "done" });
    let answer = json!({ "form_id": asked["form_id"], "outcome": "answered", "values": values });
    running.write(format!("{}\n", json!({ "answer": answer })).as_bytes());
    // An address that hides its host is declined without a question.
    let output = running.finish().code(0);
    assert!(output.stdout.contains("\"text\":\"done\""), "{output}");
    house.assert_no_processes();
}

#[test]
fn a_servers_progress_is_shown_while_it_works() {
    let Some(house) = house_with_servers(&[("moon", &["legacy"])]) else { return };
    let steps = call_answer("mcp__moon__steps", json!({}));
    house.set_script(&json!({ "answers": [steps, expect_result("risen", text_answer("up"))] }));
    let output = house.run(&["run", "--yes", "--output", "json", "go"]).code(0);
    let told: Vec<_> =
        output.json_lines().into_iter().filter(|it| it["event"] == "progress").collect();
    let last = told.last().unwrap_or(&Value::Null);
    assert_eq!(
        (&last["label"], &last["done"], &last["total"]),
        (&json!("steps: rising"), &json!(3000), &json!(3000)),
        "{output}"
    );
    house.assert_no_processes();
}

#[test]
fn interrupted_mcp_call_is_cancelled_and_the_server_keeps_running() {
    let Some(house) = house_with_servers(&[("moon", &["legacy"])]) else { return };
    let echo = call_answer("mcp__moon__echo", json!({ "text": "still here" }));
    let waits = house.path().join("waits");
    let waiting = call_answer("mcp__moon__wait", json!({ "file": waits }));
    let answers = [waiting, echo, expect_result("still here", text_answer("it lives"))];
    house.set_script(&json!({ "answers": answers }));
    let mut running = house.command(&["chat", "--yes"]).start();
    running.write(b"go\n");
    wait_for_file(&waits);
    running.send_signal("INT");
    running.wait_for_error("cancelled");
    // The server's output arrives through its own pipe, a moment later.
    let mut is_told = false;
    while !is_told {
        running.write(b"/mcp logs moon\n/mcp list\n");
        let lines = std::iter::repeat_with(|| running.next_line());
        let logged: Vec<String> =
            lines.take_while(|line| !line.contains("Configured MCP servers")).collect();
        is_told = logged.iter().any(|line| line.contains("told: notifications/cancelled"));
    }
    running.write(b"continue\n");
    let output = running.finish().code(0);
    assert!(output.stdout.contains("it lives"), "{output}");
    house.assert_no_processes();
}

#[test]
fn doctor_reports_the_connection_state_of_each_mcp_server() {
    let Some(house) = house_with_servers(&[("moon", &["legacy"])]) else { return };
    let mut all =
        json!({ "gone": { "command": house.path().join("missing") }, "broken": { "command": 1 } });
    all["moon"] = server_entry(&["legacy"]);
    write_servers(&house, "home/.mcp.json", all.as_object().unwrap().clone());
    let output = house.run(&["doctor"]);
    let text = &output.stdout;
    assert!(text.contains("mcp servers  1 of 2 servers connected, 12 tools."), "{output}");
    assert!(text.contains("             gone: disconnected, 0 tools: cannot start"), "{output}");
    assert!(text.contains("             moon: connected, 12 tools, protocol"), "{output}");
    assert!(text.contains("             server `broken` is ignored"), "{output}");
    write_servers(&house, "home/.mcp.json", serde_json::Map::new());
    assert!(!house.run(&["doctor"]).stdout.contains("mcp servers"));
    house.assert_no_processes();
}

#[test]
fn tool_options_of_a_server_entry_decide_which_tools_are_requested() {
    let Some(house) = house_with_servers(&[]) else { return };
    let mut core = server_entry(&["legacy"]);
    core["alwaysLoad"] = true.into();
    core["tools"] = json!(["echo"]);
    let mut off = server_entry(&["legacy"]);
    off["disabled"] = true.into();
    let all = json!({ "core": core, "off": off });
    write_servers(&house, "home/.mcp.json", all.as_object().unwrap().clone());
    let offered = ["get_environment", "mcp__core__echo", "list_tools", "get_tool_schemas"];
    let mut answer = text_answer("seen");
    answer["expect"] = json!({ "tools": offered });
    house.set_script(&json!({ "answers": [answer] }));
    house.run(&["run", "go"]).code(0);
    assert!(
        run_mcp(&house, &["list"]).contains("off: ")
            && run_mcp(&house, &["list"]).contains("[disabled]")
    );
    let shown = run_mcp(&house, &["show", "core"]);
    assert!(shown.contains("Tools (1):\n    echo: echo of the moon"), "{shown}");
    assert!(run_mcp(&house, &["logs", "clear"]).starts_with("Cleared "));
    house.assert_no_processes();
}

/// Returns an entry whose server prints a line, waits this long and starts.
fn slow_entry(seconds: &str, args: &[&str]) -> Value {
    let program = fixtures::built_program("mcp_server");
    let line = format!("echo getting ready >&2; sleep {seconds}; exec \"$0\" \"$@\"");
    let words = ["-c".to_owned(), line, program.display().to_string()];
    let args: Vec<String> = words.into_iter().chain(args.iter().map(|&it| it.to_owned())).collect();
    json!({ "command": "sh", "args": args })
}

fn house_with_entries(entries: &[(&str, Value)]) -> Option<House> {
    let house = house_with_servers(&[])?;
    let entries = entries.iter().map(|(name, entry)| ((*name).to_owned(), entry.clone()));
    write_servers(&house, "home/.mcp.json", entries.collect());
    Some(house)
}

/// Returns entries of servers that are missing, that die, and that hang.
fn broken_entries() -> [(&'static str, Value); 3] {
    let dies = json!({ "command": "sh", "args": ["-c", "echo no such module >&2; exit 7"] });
    let mut hangs = server_entry(&["hangs"]);
    hangs["startupTimeout"] = 1000.into();
    [("dies", dies), ("gone", json!({ "command": "/no/such/program" })), ("hangs", hangs)]
}

#[test]
fn call_waits_for_its_mcp_server_and_starts_no_other() {
    let marked = json!({ "command": "sh", "args": ["-c", "touch started"] });
    let bad = json!({ "command": 1 });
    let all = [("slow", slow_entry("2", &["legacy"])), ("other", marked), ("bad", bad)];
    let Some(house) = house_with_entries(&all) else { return };
    let output = house.run(&["call", "mcp__slow__echo", "{\"text\":\"x\"}"]).code(0);
    assert!(output.stdout.contains("\"x\""), "{output}");
    let waits = "waiting for MCP server `slow` (starting: getting ready)…";
    assert!(output.stderr.contains(waits), "{output}");
    assert!(!house.workspace().join("started").exists());
    for (name, why) in [
        ("slow__fly", "there is no tool `mcp__slow__fly`"),
        ("sun__echo", "MCP server `sun` is not configured"),
        ("bad__echo", "MCP server `bad` cannot be used: server `bad` is ignored"),
    ] {
        let output = house.run(&["call", &format!("mcp__{name}"), "{}"]).code(2);
        assert!(output.stderr.contains(why), "{output}");
    }
    house.assert_no_processes();
}

#[test]
fn first_run_waits_for_mcp_servers_and_names_them_in_tool_lists() {
    let Some(house) = house_with_entries(&[("slow", slow_entry("1", &["legacy"]))]) else { return };
    let find = |told: &str| {
        let mut find = call_answer("list_tools", json!({ "query": "echo" }));
        find["expect"] = json!({ "prompt": "find", "data": told });
        find
    };
    let answers = json!([
        find("MCP servers: slow (12 tools)"),
        expect_result("mcp__slow__echo", text_answer("found"))
    ]);
    house.set_script(&json!({ "answers": answers }));
    let output = house.run(&["run", "find it"]).code(0);
    assert!(output.stderr.contains("waiting for MCP server `slow`"), "{output}");
    assert!(output.stderr.contains("MCP server `slow` is up for the first time"), "{output}");
    // Known servers are not awaited again, and nothing is reported.
    house.set_script(&json!({ "answers": answers }));
    let output = house.run(&["run", "find it"]).code(0);
    assert!(!output.stderr.contains("MCP server"), "{output}");
    house.assert_no_processes();
}

#[test]
fn run_waits_for_mcp_tools_named_by_options_and_reports_missing_ones() {
    let mut entries = broken_entries().to_vec();
    entries.push(("slow", slow_entry("1", &["legacy"])));
    let Some(house) = house_with_entries(&entries) else { return };
    let mut echo = call_answer("mcp__slow__echo", json!({ "text": "x" }));
    echo["expect"] = json!({ "tools": ["mcp__slow__echo"] });
    house.set_script(&json!({ "answers": [echo, expect_result("x", text_answer("done"))] }));
    house.run(&["run", "--tools", "mcp__slow__ec*", "--allow", "mcp__slow__*", "go"]).code(0);
    house.set_script(&json!({ "answers": [text_answer("none")] }));
    let output = house.run(&["run", "--tools", "mcp__dies__*", "go"]).code(0);
    let why =
        "no tool is named `mcp__dies__*`: MCP server `dies` is down: it ended before it answered";
    assert!(output.stderr.contains(why), "{output}");
    assert!(output.stderr.contains("no such module"), "{output}");
    house.assert_no_processes();
}

#[test]
fn mcp_servers_that_are_down_are_reported_to_user_and_model() {
    let mut entries = broken_entries().to_vec();
    entries.push(("moon", server_entry(&["legacy"])));
    let Some(house) = house_with_entries(&entries) else { return };
    let mut asks = call_answer("mcp__dies__echo", json!({}));
    asks["expect"] = json!({ "data": "moon (12 tools)" });
    house.set_script(&json!({ "answers": [
        asks,
        expect_result(
            "MCP server `dies` is down: it ended before it answered",
            text_answer("so be it"),
        ),
    ] }));
    let output = house.run(&["run", "go"]);
    for why in [
        "MCP server `dies` is down: it ended before it answered",
        "no such module",
        "MCP server `gone` is down: cannot start",
        "MCP server `hangs` is down: it did not answer within 1 s",
    ] {
        assert!(output.stderr.contains(why), "{why}: {output}");
    }
    // The errors remain available later, and showing them starts nothing.
    let logs = house.run(&["mcp", "logs", "dies"]).code(0).stdout;
    assert!(logs.contains("no such module") && logs.contains("it ended with code 7"), "{logs}");
    let lines = || house.run(&["mcp", "logs", "moon"]).code(0).stdout.lines().count();
    assert_eq!(lines(), lines());
    let list = house.run(&["mcp", "list"]).code(0).stdout;
    assert!(list.contains("[disconnected: it ended before it answered"), "{list}");
    assert!(list.contains("`jaato mcp logs dies`"), "{list}");
    house.assert_no_processes();
}

#[test]
fn server_that_dies_during_a_call_restarts_and_its_stderr_is_logged() {
    let Some(house) = house_with_entries(&[("moon", server_entry(&["legacy"]))]) else { return };
    house.set_script(&json!({ "answers": [
        call_answer("mcp__moon__die", json!({})),
        call_answer("mcp__moon__echo", json!({ "text": "again" })),
        expect_result("again", text_answer("done")),
    ] }));
    let output = house.run(&["run", "--yes", "go"]).code(0);
    assert_eq!(output.stdout, "done\n");
    assert!(house.run(&["mcp", "logs"]).stdout.contains("fatal: the moon fell down"));
    house.assert_no_processes();
}

#[test]
fn run_with_twenty_servers_and_500_tools_survives_dying_servers() {
    let methods =
        ["server/discover", "initialize", "notifications/initialized", "tools/list", "tools/call"];
    let Some(house) = house_with_entries(&[]) else { return };
    let rows: Vec<Value> = (0..500)
        .map(|at| json!({ "name": format!("read_row_{at}"), "schema": { "type": "object" } }))
        .collect();
    let file = house.write("rows.json", &json!(rows).to_string());
    let many = server_entry(&["listed", file.to_str().unwrap()]);
    let mut all = vec![("many".to_owned(), many)];
    all.extend((1..20).map(|at| (format!("moon{at}"), server_entry(&["legacy"]))));
    all.extend(
        methods.iter().enumerate().map(|(at, it)| (format!("d{at}"), server_entry(&["dies", it]))),
    );
    write_servers(&house, "home/.mcp.json", all.into_iter().collect());
    let mut find = call_answer("list_tools", json!({ "query": "read_row_499" }));
    find["expect"] = json!({ "data": "many (500 tools)" });
    let together = ["mcp__many__read_row_499", "mcp__moon19__echo", "mcp__d4__echo"]
        .map(|name| json!({ "call": { "name": name, "arguments": { "text": "far" } } }));
    house.set_script(&json!({ "answers": [
        find,
        expect_result("mcp__many__read_row_499", json!({ "steps": together })),
        call_answer("mcp__d0__echo", json!({ "text": "second start" })),
        expect_result("second start", text_answer("done")),
    ] }));
    let output = house.run(&["run", "--yes", "go"]).code(0);
    assert_eq!(output.stdout, "done\n", "{output}");
    for (at, method) in methods.iter().enumerate() {
        let is_down = output.stderr.contains(&format!("MCP server `d{at}` is down"));
        // For the server that dies during its call, the tool result reports it. It may be running
        // again before the run reports it as down.
        assert!(is_down == (1..4).contains(&at) || at == 4, "{method}: {output}");
        let logs = house.run(&["mcp", "logs", &format!("d{at}")]).code(0).stdout;
        assert!(logs.contains(&format!("fatal: fell down at {method}")), "{logs}");
    }
    house.assert_no_processes();
}

#[test]
fn new_mcp_tools_become_available_during_a_run() {
    let Some(house) = house_with_entries(&[("moon", server_entry(&["grows"]))]) else { return };
    let grown = json!({ "name": "mcp__moon__grown", "arguments": {} });
    house.set_script(&json!({ "answers": [
        call_answer("mcp__moon__grow", json!({})),
        { "steps": [{ "wait_ms": 4000 }, { "call": { "name": "list_tools", "arguments": {} } }] },
        { "steps": [{ "call": grown }] },
        expect_result("grown up", text_answer("done")),
    ] }));
    let output = house.run(&["run", "--yes", "go"]).code(0);
    assert_eq!(output.stdout, "done\n");
    house.assert_no_processes();
}

#[test]
fn a_package_runner_is_not_ended_while_it_installs() {
    let Some(house) = house_with_servers(&[]) else { return };
    let server = fixtures::built_program("mcp_server").display().to_string();
    let text =
        format!("#!/bin/sh\necho fetching >&2; sleep 3; touch \"$1\"; exec {server} legacy\n");
    let runner = house.write("bin/npx", &text);
    set_mode(&runner, 0o755);
    let all =
        [&["mcp", "logs"][..], &["mcp", "list"], &["call", "mcp__moon__echo"], &["chat", "x"]];
    for (number, words) in all.into_iter().enumerate() {
        let done = house.path().join(format!("installed-{number}"));
        house.set_script(&json!({ "answers": [text_answer("quick")] }));
        let npx = json!({ "command": runner, "args": [done] });
        write_servers(&house, "home/.mcp.json", [("moon".to_owned(), npx)].into_iter().collect());
        if words[1] == "logs" {
            house.run(words).code(0);
            assert!(!done.exists());
            continue;
        }
        let running = house.command(words).start();
        running.wait_for_error("waiting for MCP server");
        // The first Ctrl-C stops the current work, but not the installation.
        running.send_signal("INT");
        running.finish();
        assert!(done.exists(), "{words:?}");
    }
    house.assert_no_processes();
}

#[test]
fn read_only_calls_and_calls_of_a_parallel_server_run_concurrently() {
    let mut parallel = server_entry(&["meets"]);
    parallel["parallel"] = true.into();
    let Some(house) = house_with_entries(&[("moon", server_entry(&["meets"])), ("sun", parallel)])
    else {
        return;
    };
    let meet = |name: &str| json!({ "call": { "name": name, "arguments": { "count": 3 } } });
    let three = |name: &str| json!({ "steps": [meet(name), meet(name), meet(name)] });
    house.set_script(&json!({ "answers": [
        three("mcp__moon__meet"),
        expect_result("met", three("mcp__sun__gather")),
        expect_result("met", text_answer("done")),
    ] }));
    assert_eq!(house.run(&["run", "--yes", "go"]).code(0).stdout, "done\n");
    house.assert_no_processes();
}

#[test]
fn tool_commands_include_mcp_tools() {
    let Some(house) = house_with_entries(&[
        ("moon", server_entry(&["legacy"])),
        ("gone", broken_entries()[1].1.clone()),
    ]) else {
        return;
    };
    let list = house.run(&["tool", "list"]).code(0);
    assert!(list.stdout.contains("mcp__moon__echo"), "{list}");
    assert!(list.stderr.contains("MCP server `gone` is down"), "{list}");
    let shown = house.run(&["tool", "show", "mcp__moon__echo"]).code(0).stdout;
    assert!(shown.contains("echo of the moon") && shown.contains("\"text\""), "{shown}");
    let output = house.run(&["tool", "show", "mcp__gone__echo"]).code(4);
    assert!(output.stderr.contains("MCP server `gone` is down"), "{output}");
    let explain = ["permission", "explain", "mcp__moon__echo"];
    let explained = house.run(&explain).code(0).stdout;
    assert!(explained.starts_with("ask: "), "{explained}");
    let allowed = house.run(&[&explain[..], &["--allow", "mcp__moon__*"]].concat()).code(0).stdout;
    assert!(allowed.starts_with("allow: "), "{allowed}");
    house.set_script(&json!({ "answers": [] }));
    let prompt = house.run(&["run", "--show-prompt", "--tools", "mcp__moon__echo"]).code(0).stdout;
    assert!(prompt.contains("tool mcp__moon__echo"), "{prompt}");
    assert!(prompt.contains("MCP servers: moon (12 tools)"), "{prompt}");
    let said = house.run(&["command", "mcp__moon__watch", "full"]).code(0).stdout;
    assert!(said.contains("Look at the full moon."), "{said}");
    let shown = house.run(&["mcp", "show", "moon"]).code(0).stdout;
    assert!(shown.contains("mcp__moon__add {a?: number, b?: number}"), "{shown}");
    house.assert_no_processes();
}

#[test]
fn mcp_commands_report_that_an_untrusted_workspace_file_is_not_used() {
    let Some(house) = house_with_servers(&[]) else { return };
    let servers = json!({ "near": server_entry(&["legacy"]) });
    write_servers(&house, "workspace/.mcp.json", servers.as_object().unwrap().clone());
    for words in [&["list"][..], &["status"]] {
        let told = run_mcp(&house, words);
        assert!(told.contains("is not used: the workspace is not trusted"), "{told}");
    }
    let output = house.run(&["mcp", "show", "near"]).code(1);
    assert!(output.stderr.contains("the workspace is not trusted"), "{output}");
    let output = house.run(&["call", "mcp__near__echo"]).code(2);
    assert!(output.stderr.contains("the workspace is not trusted"), "{output}");
    house.assert_no_processes();
}
