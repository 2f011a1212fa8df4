//! Runs the providers whose protocols llama.cpp's server supports against that server with a real
//! model, so that the answers are not ours.
//!
//! Part of the full tier. `cargo xtask setup --outside` downloads the server, `jaato model pull`
//! the weights.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use super::PROVIDERS;
use crate::support::openai::SECRET;
use crate::support::{fixtures, skip};

/// The smaller weights first, because the tasks are small.
const WEIGHTS: [&str; 2] =
    ["qwen2.5-coder-0.5b-instruct-q4_k_m.gguf", "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"];

/// The providers whose protocol the server supports.
const SPOKEN: [&str; 3] = ["anthropic", "openai", "openai-chat"];

/// The server. Dropping it ends the process.
struct InferenceServer {
    process: Child,
    root_url: String,
}

impl InferenceServer {
    /// Starts the server, or returns `None` if it or its weights are missing.
    fn start() -> Option<Self> {
        let libraries = fixtures::target_folder().join("outside/python");
        if !libraries.join("xllamacpp").is_dir() {
            skip("no inference server: `cargo xtask setup --outside` fetches it");
            return None;
        }
        let Some(weights) = find_weights() else {
            skip("no weights are in this user's cache: `jaato model pull` fetches them");
            return None;
        };
        let script =
            concat!(env!("CARGO_MANIFEST_DIR"), "/tests/binary/every_provider/inference_server.py");
        let mut python = Command::new("python3");
        python.args(["-B", script]).arg(weights).env("PYTHONPATH", libraries);
        python.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = python.spawn().unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines().map(Result::unwrap);
        let address = lines.find_map(|line| line.strip_prefix("listening on ").map(str::to_owned));
        Some(Self { process, root_url: address.expect("the server says where it listens") })
    }
}

impl Drop for InferenceServer {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

fn find_weights() -> Option<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")))?;
    let folder = cache.join("jaato/models");
    WEIGHTS.iter().map(|file| folder.join(file)).find(|path| path.is_file())
}

#[test]
fn a_real_model_answers_and_is_asked_again_in_each_protocol_of_its_server() {
    let Some(server) = InferenceServer::start() else { return };
    for provider in PROVIDERS.iter().filter(|provider| SPOKEN.contains(&provider.name)) {
        let Some(house) = provider.new_house() else { return };
        let base = format!("{}{}", server.root_url, provider.root);
        house.configure_more(&format!(
            "[{}]\nbase_url = {base:?}\n{}\n",
            provider.section, provider.settings
        ));
        let model = format!("{}/qwen", provider.name);
        let words = ["chat", "--model", &model, "--max-output-tokens", "40", "--tools", "none"];
        let input = "Say hello in one word.\nSay it again.\n";
        let output = house
            .command(&words)
            .variable(provider.key, SECRET)
            .with_long_deadline()
            .input(input)
            .run()
            .code(0);
        assert!(output.stdout.trim().lines().count() >= 2, "{}: {output}", provider.name);
        let ledger = house.home().join(".local/share/jaato/ledger.jsonl");
        let ledger = std::fs::read_to_string(ledger).unwrap();
        let records = ledger.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let answers: Vec<_> = records.filter(|record| record["stage"] == "response").collect();
        let tokens: Vec<_> =
            answers.iter().filter_map(|record| record["prompt_tokens"].as_u64()).collect();
        // The second request contains the first one and its answer.
        assert!(matches!(tokens[..], [one, two] if 0 < one && one < two), "{tokens:?}: {ledger}");
    }
}
