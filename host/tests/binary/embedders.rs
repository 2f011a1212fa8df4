//! Tests the example programs that use an installed jaato: `cli-vs-mcp` and `modlog`.
//!
//! Part of the full tier. They are built in their own workspace.

use std::fs;
use std::process::Command as Program;

use serde_json::{Value, json};

use crate::support::openai::{openai_program, ship_openai};
use crate::support::server::{Answer, Server};
use crate::support::{Command, House, fixtures, library_name, skip};

/// Builds a command line of the harness.
fn harness_command(house: &House, server: &Server, words: &[&str]) -> Option<Command> {
    Some(openai_program(house, server, &fixtures::embedder_program("cli-vs-mcp")?, words))
}

/// Returns an installation with both sides. The MCP side's server has this name and mode.
fn with_both_sides(server: &str, mode: &str) -> Option<House> {
    let house = House::new()?;
    for library in ["environment_local", "tool_cli", "tool_mcp"] {
        house.ship(&fixtures::test_house()?.join("plugins").join(library_name(library)));
    }
    ship_openai(&house);
    let entry = json!({ "command": fixtures::built_program("mcp_server"), "args": [mode] });
    house.write("home/.mcp.json", &json!({ "mcpServers": { server: entry } }).to_string());
    Some(house)
}

/// Creates a repository with one commit and an untracked file.
fn create_repository(house: &House) -> Option<String> {
    let place = house.workspace().join("moon");
    house.write("workspace/moon/phase.txt", "full\n");
    let path = place.display().to_string();
    let run = |words: &[&str]| {
        let who = ["-c", "user.name=Ada", "-c", "user.email=ada@moon.example"];
        let mut git = Program::new("git");
        git.args(["-C", &path]).args(who).args(words);
        git.output().is_ok_and(|output| output.status.success())
    };
    let is_made = run(&["init", "--quiet", "--initial-branch", "main"])
        && run(&["add", "."])
        && run(&["commit", "--quiet", "--message", "The moon is full"]);
    if !is_made {
        skip("`git` is not installed");
        return None;
    }
    house.write("workspace/moon/new.txt", "x");
    Some(path)
}

fn read_report(house: &House, place: &str) -> Value {
    serde_json::from_str(&fs::read_to_string(house.workspace().join(place)).unwrap()).unwrap()
}

/// Returns the folder of the only call.
fn traces_folder(house: &House, domain: &str) -> String {
    let folder = "cli_vs_mcp/traces";
    let entries = fs::read_dir(house.workspace().join(folder)).unwrap();
    let names: Vec<_> = entries.map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(names.len(), 1, "{names:?}");
    assert_eq!(names[0].len(), "2026-01-02_03-04-05".len());
    format!("{folder}/{}/{domain}", names[0])
}

fn tool_names(asked: &Value) -> Vec<&str> {
    let tools = asked["tools"].as_array().into_iter().flatten();
    tools.map(|it| it["function"]["name"].as_str().unwrap()).collect()
}

#[test]
fn bench_runs_a_scenario_on_both_sides_and_compares_their_tokens() {
    let Some(house) = with_both_sides("git", "git") else { return };
    let Some(repository) = create_repository(&house) else { return };
    let status = format!("git -C {repository} status --short --branch");
    let server = Server::start([
        Answer::calls(&[("cli_based_tool", json!({ "command": status }))]),
        Answer::text_of_prompt("main; new.txt", 300),
        Answer::calls(&[("mcp__git__git_status", json!({ "repo_path": repository }))]),
        Answer::text_of_prompt("main; new.txt", 500),
    ]);
    let params = json!({ "REPO_PATH": repository }).to_string();
    let words = ["--model-name", "openai/test", "--scenarios", "repo_status"];
    let words = [&words[..], &["--domain-params", &params, "--trace", "--verbose"]].concat();
    let Some(command) = harness_command(&house, &server, &words) else { return };
    let output = command.run().code(0);
    let asked: Vec<Value> =
        server.requests().iter().map(|it| serde_json::from_slice(&it.body).unwrap()).collect();
    assert_eq!(asked.len(), 4, "{output}");
    assert_eq!(tool_names(&asked[0]), ["cli_based_tool"], "{}", asked[0]);
    let of_server = ["mcp__git__git_status", "mcp__git__git_log", "mcp__git__git_show"];
    assert_eq!(tool_names(&asked[2]), of_server);
    for (number, result) in [(1, "?? new.txt"), (3, "?? new.txt")] {
        let messages = asked[number]["messages"].to_string();
        assert!(messages.contains(&repository) && messages.contains(result), "{messages}");
    }
    let summary = read_report(&house, "cli_vs_mcp/harness_summary.json");
    let folder = traces_folder(&house, "git");
    assert_eq!(summary, read_report(&house, &format!("{folder}/harness_summary.json")));
    let averages = |prompt: f64| {
        json!({
            "runs": 1, "avg_prompt_tokens": prompt, "avg_output_tokens": 10.0,
            "avg_total_tokens": prompt + 10.0, "avg_turns": 2.0, "errors": 0,
        })
    };
    let status = &summary["scenarios"]["repo_status"];
    assert_eq!((&status["cli"], &status["mcp"]), (&averages(320.0), &averages(520.0)));
    assert_eq!(summary["meta"]["domain"], "git");
    assert_eq!(summary["meta"]["model"], "openai/test");
    let ledger = status["mcp_details"][0]["ledger"].as_str().unwrap();
    assert!(ledger.ends_with(&format!("{folder}/repo_status/mcp/run1.jsonl")), "{ledger}");
    assert!(fs::read_to_string(ledger).unwrap().contains("\"stage\":\"tool-call\""));
    let trace = read_report(&house, &format!("{folder}/repo_status/mcp/run1.trace.json"));
    assert_eq!(trace["text"], "main; new.txt");
    assert!(trace["prompt"].as_str().unwrap().contains(&repository));
    let calls = &trace["function_calls"];
    assert_eq!((&calls[0]["type"], &calls[0]["role"]), (&json!("function_call"), &json!("model")));
    assert_eq!(calls[1]["name"], "mcp__git__git_status");
    assert!(calls[1]["response"].to_string().contains("?? new.txt"), "{calls}");
    let table = "Prompt Tokens  320.0  520.0  +200.0  CLI\n";
    assert!(output.stdout.contains(table), "{output}");
    let verdict = "Overall: CLI wins with 200 fewer tokens (37.7% savings)\n";
    assert!(output.stdout.contains(verdict), "{output}");
    house.assert_no_processes();
}

#[test]
fn command_line_of_the_original_bench_still_works() {
    let Some(house) = with_both_sides("Atlassian", "legacy") else { return };
    house.write("workspace/.env", "MODEL_NAME=openai/test\n");
    let said = ["It is a page.", "It is one page."];
    let server = Server::start(said.map(|text| Answer::text_of_prompt(text, 100)));
    let words = "--env-file .env --scenarios get_page --page-id 12345 --trace --verbose";
    let words: Vec<&str> = words.split(' ').collect();
    let Some(command) = harness_command(&house, &server, &words) else { return };
    let output = command.run().code(0);
    assert!(output.stdout.contains("domain       confluence\n"), "{output}");
    assert!(output.stdout.contains("Overall: TIE\n"), "{output}");
    for asked in server.requests() {
        assert!(String::from_utf8_lossy(&asked.body).contains("Read the page 12345."));
    }
    house.assert_no_processes();
}

#[test]
fn invalid_bench_run_fails_before_any_model_request() {
    let Some(house) = with_both_sides("git", "git") else { return };
    let server = Server::start([]);
    let Some(program) = fixtures::embedder_program("cli-vs-mcp") else { return };
    let bench = |words: &[&str]| {
        openai_program(
            &house,
            &server,
            &program,
            &[&["--model-name", "openai/test"], words].concat(),
        )
    };
    let refused = bench(&["--scenarios", "get_moon"]).run().code(2);
    assert!(refused.stderr.contains("no domain has the scenario `get_moon`"), "{refused}");
    assert!(refused.stderr.contains("there are: get_issue, list_issues"), "{refused}");
    let refused = bench(&["--scenarios", "get_page"]).run().code(2);
    assert!(refused.stderr.contains("the template needs a value for PAGE_ID"), "{refused}");
    let refused = bench(&["--domain", "moon"]).run().code(2);
    assert!(refused.stderr.contains("moon"), "{refused}");
    let refused = bench(&["--scenarios", "get_page", "--page-id", "1"]).run();
    assert!(refused.stderr.contains("Server 'Atlassian' not found."), "{refused}");
    assert!(refused.stderr.contains("jaato mcp add Atlassian"), "{refused}");
    assert!(server.requests().is_empty());
    assert!(!house.workspace().join("cli_vs_mcp").exists());
    house.assert_no_processes();
}

#[test]
fn a_run_that_fails_is_counted_and_ends_with_1() {
    let Some(house) = with_both_sides("git", "git") else { return };
    let server =
        Server::start([Answer::error(400, "no such moon"), Answer::text_of_prompt("main", 100)]);
    let words = ["--model-name", "openai/test", "--scenarios", "last_change", "--verbose"];
    let Some(command) = harness_command(&house, &server, &words) else { return };
    let output = command.run().code(1);
    assert!(output.stdout.contains("last_change cli run 1: failed: "), "{output}");
    assert!(output.stdout.contains("Overall: nothing to compare"), "{output}");
    assert!(output.stderr.contains("runs that failed: 1"), "{output}");
    let summary = read_report(&house, "cli_vs_mcp/harness_summary.json");
    let change = &summary["scenarios"]["last_change"];
    assert_eq!((&change["cli"]["errors"], &change["mcp"]["errors"]), (&json!(1), &json!(0)));
    house.assert_no_processes();
}

/// Two entries that a model found in a log.
fn log_entries() -> Value {
    json!([
        { "date": "2020-03-17", "programmer": "M. OKAFOR", "delimiter": "MO0317",
          "description": "ENHANCEMENT: MULTI-CURRENCY ACCRUAL" },
        { "date": "2021-10-04", "programmer": "P. DESAI", "delimiter": null,
          "description": "REFACTOR: LEAP YEAR TEST" },
    ])
}

/// Returns an installation with a provider, and the command line of the generator for its sample.
fn generator_command(server: &Server, words: &[&str]) -> Option<(House, Command)> {
    let house = House::new()?;
    ship_openai(&house);
    let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/examples/modlog/sample_cobol.cbl");
    house.write("workspace/sample_cobol.cbl", &fs::read_to_string(sample).unwrap());
    let words = [&["--source", "sample_cobol.cbl"], words].concat();
    let command = openai_program(&house, server, &fixtures::embedder_program("modlog")?, &words);
    Some((house, command.variable("MODEL_NAME", "openai/test")))
}

fn read_pairs(house: &House) -> Vec<Value> {
    let text = fs::read_to_string(house.workspace().join("training_data.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn modlog_makes_a_training_set_with_a_model() {
    let found = format!("The log:\n```json\n{}\n```", log_entries());
    let server = Server::start([
        Answer::text_of_prompt(&found, 700),
        Answer::text_of_prompt("It added `2500-CONVERT-CURRENCY`.", 900),
        Answer::text_of_prompt("It moved the test.", 900),
    ]);
    let words = ["--out", "training_data.jsonl", "--mode", "full-stream"];
    let Some((house, command)) = generator_command(&server, &words) else { return };
    let output = command.run().code(0);
    let shown: Vec<&str> = output.stdout.lines().collect();
    let mode = "[mode] Applied mode \"full-stream\" -> parse_only=False explain_only=False \
                stream=True heuristic=False validate=False append=False";
    assert_eq!(shown[0], mode, "{output}");
    assert_eq!(shown[5], "[5/7] Generated 2 pairs -> training_data.jsonl", "{output}");
    let ledger = house.home().join(".local/share/jaato/ledger.jsonl");
    let sums = "[ledger] Calls=3 prompt=2500 output=15 total=2515 -> ";
    assert_eq!(shown[6], format!("{sums}{}", ledger.display()), "{output}");
    assert!(ledger.is_file());
    assert_eq!(shown[7], "[6/7] ✅ Done. Wrote 2 examples to training_data.jsonl", "{output}");
    let pairs = read_pairs(&house);
    let question = "Identify the concrete COBOL code changed by the logged modification \
                    (enhancement) from 2020-03-17 by M. OKAFOR: ENHANCEMENT: MULTI-CURRENCY \
                    ACCRUAL";
    let answer = "It added `2500-CONVERT-CURRENCY`.";
    let expected = json!({
        "messages": [
            { "role": "user", "content": question },
            { "role": "assistant", "content": answer },
        ],
        "metadata": {
            "date": "2020-03-17", "programmer": "M. OKAFOR", "change_type": "enhancement",
            "description": "ENHANCEMENT: MULTI-CURRENCY ACCRUAL", "delimiter": "MO0317",
            "changed_item_count": 0, "heuristic": false,
        },
    });
    assert_eq!((&pairs[0], pairs.len()), (&expected, 2));
    assert_eq!(pairs[1]["metadata"]["delimiter"], Value::Null);
    let asked = server.requests();
    let body = |index: usize| String::from_utf8_lossy(&asked[index].body).into_owned();
    assert!(body(0).contains("MO0317") && !body(0).contains("2500-CONVERT"), "{}", body(0));
    for index in [1, 2] {
        assert!(body(index).contains("2600-SET-DAY-BASIS.") && !body(index).contains("\"tools\""));
    }
    house.assert_no_processes();
}

#[test]
fn modlog_offers_its_tool_to_a_model_if_asked() {
    let call = json!({ "description": "WS-FX-RATE", "delimiter": "MO0317" });
    let server = Server::start([
        Answer::calls(&[("changed_lines_tool", call)]),
        Answer::text(&["It added a rate."]),
    ]);
    let Some((house, command)) =
        generator_command(&server, &["--mode", "explain-validate", "--env-file", "my.env"])
    else {
        return;
    };
    house.write("workspace/my.env", "AI_USE_CHAT_FUNCTIONS=1\n");
    let mut entry = log_entries()[0].clone();
    entry["change_type"] = json!("enhancement");
    house.write("workspace/modlog_entries.jsonl", &format!("{entry}\n"));
    let output = command.run().code(0);
    assert!(output.stdout.contains("[validation] 1 entries passed"), "{output}");
    let pairs = read_pairs(&house);
    let answer = pairs[0]["messages"][1]["content"].as_str().unwrap();
    let start = "It added a rate.\n\nLikely affected lines (tool heuristic):\n";
    assert!(answer.starts_with(start) && answer.contains("WS-FX-RATE"), "{answer}");
    let first = server.requests()[0].json();
    assert_eq!(tool_names(&first), ["changed_lines_tool"]);
    // The model finds the lines with the tool.
    assert!(!first["messages"].to_string().contains("PROCEDURE DIVISION"));
    house.assert_no_processes();
}

#[test]
fn failed_request_keeps_the_old_training_set_or_the_pairs_so_far() {
    for (mode, kept) in [("full", "old\n"), ("full-stream", "It added a rate.")] {
        let server = Server::start([
            Answer::text(&[&log_entries().to_string()]),
            Answer::text(&["It added a rate."]),
            Answer::error(400, "no such moon"),
        ]);
        let Some((house, command)) = generator_command(&server, &["--mode", mode]) else { return };
        house.write("workspace/training_data.jsonl", "old\n");
        let output = command.run().code(1);
        assert!(output.stderr.contains("no such moon"), "{output}");
        assert!(output.stdout.contains("[ledger] Calls=2 "), "{output}");
        let text = fs::read_to_string(house.workspace().join("training_data.jsonl")).unwrap();
        assert!(text.contains(kept) && text.lines().count() == 1, "{text}");
        house.assert_no_processes();
    }
}

#[test]
fn modlog_fails_if_the_model_finds_no_entries() {
    let server = Server::start([Answer::text(&["There is no log."])]);
    let Some((house, command)) = generator_command(&server, &["--mode", "parse"]) else { return };
    let output = command.run().code(1);
    let text = "error: No modification entries identified; aborting.\n";
    assert!(output.stderr.starts_with(text), "{output}");
    assert!(!house.workspace().join("modlog_entries.jsonl").exists());
    house.assert_no_processes();
}
