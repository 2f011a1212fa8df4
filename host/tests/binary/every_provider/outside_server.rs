//! Runs every provider against a third-party mock server, in all the protocols.
//!
//! Part of the full tier. `cargo xtask setup --outside` downloads the server, which runs on
//! Node.js.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use super::{PROVIDERS, TOOL};
use crate::support::{fixtures, skip};

/// The server's program, inside the folder of packages.
const PROGRAM: &str = "node_modules/@copilotkit/aimock/dist/cli.js";

/// The server's output before its address.
const LISTENS: &str = "listening on ";

/// The server. Dropping it ends the process.
struct OutsideServer {
    process: Child,
    root_url: String,
}

impl OutsideServer {
    /// Starts the server with these answers, or returns `None` if it is missing.
    fn start(answers: &Value) -> Option<Self> {
        let program = fixtures::target_folder().join("outside/node").join(PROGRAM);
        let has_node = Command::new("node").arg("--version").output().is_ok();
        if !has_node || !program.is_file() {
            skip("no outside mock server: `cargo xtask setup --outside` fetches it, for Node.js");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("answers.json");
        std::fs::write(&file, answers.to_string()).unwrap();
        Some(Self::start_program(&program, &file))
    }

    fn start_program(program: &Path, file: &Path) -> Self {
        let mut node = Command::new("node");
        node.arg(program).args(["-p", "0", "--strict", "--validate-on-load", "-c", "3", "-f"]);
        let mut process = node.arg(file).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines().map(Result::unwrap);
        let address = lines.find_map(|line| {
            let (_, address) = line.split_once(LISTENS)?;
            Some(address.trim().to_owned())
        });
        let root_url = address.expect("the server says where it listens");
        // Read its other lines, because it would block otherwise.
        std::thread::spawn(move || lines.for_each(drop));
        Self { process, root_url }
    }
}

impl Drop for OutsideServer {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

/// Returns a call for the first request, and an answer for one with its result.
fn fixture_answers() -> Value {
    let call = json!({ "name": TOOL, "arguments": { "aspect": "os" } });
    let at =
        |has_result: bool| json!({ "userMessage": "which system", "hasToolResult": has_result });
    json!({ "fixtures": [
        { "match": at(false), "response": { "toolCalls": [call] } },
        { "match": at(true), "response": { "content": "It is what the tool says." } },
        { "match": { "userMessage": "thanks" }, "response": { "content": "You are welcome." } },
    ] })
}

#[test]
fn an_outside_server_takes_a_conversation_with_a_tool_from_every_provider() {
    let Some(outside) = OutsideServer::start(&fixture_answers()) else { return };
    // GitHub Models is chat completions at a path that the server does not know.
    for provider in PROVIDERS.iter().filter(|provider| provider.name != "github-models") {
        let Some(house) = provider.new_house() else { return };
        house.configure_more(&provider.url_config(&outside.root_url));
        let words = ["chat", "--yes", "--model", provider.model, "--tools", TOOL];
        let input = "which system is this?\nthanks\n";
        let output = provider.command(&house, &words).input(input).run().code(0);
        let said = "It is what the tool says.\nYou are welcome.\n";
        assert_eq!(output.stdout, said, "{}: {output}", provider.name);
        assert_eq!(output.stderr.matches(TOOL).count(), 1, "{}: {output}", provider.name);
    }
}
