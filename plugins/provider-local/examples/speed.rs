//! Measures prefill, decoding, saved states and memory of a model, with one process per figure.
//!
//! `cargo run --release -p provider-local --example speed -- WEIGHTS.gguf STATE_FOLDER`: run it
//! twice with the same folder. The second run finds the state that the first one saved.
#![allow(clippy::print_stdout)]

use std::path::{Path, PathBuf};
use std::time::Instant;

use jaato_plugin_sdk::types::{CompletionRequest, Error, Message, Result, ToolSpec};
use provider_local::cancel::CancelFlag;
use provider_local::local::{CompletionSink, LocalModel};
use provider_local::state::{BYTES_MAX, ModelStateStore};
use serde_json::Value;

struct PrintedNotices;

impl CompletionSink for PrintedNotices {
    fn send_text(&mut self, _text: &str) -> bool {
        true
    }
    fn show_notice(&mut self, text: String) {
        println!("notice: {text}");
    }
    fn log(&mut self, text: String) {
        println!("log: {text}");
    }
}

fn main() -> Result<()> {
    let started = Instant::now();
    let mut arguments = std::env::args().skip(1);
    let (Some(weights), Some(folder)) = (arguments.next(), arguments.next()) else {
        return Err(Error::failed("usage: speed WEIGHTS.gguf STATE_FOLDER"));
    };
    let mut model = LocalModel::load_model(Path::new(&weights), 8192)?;
    println!("load {:.2} s", started.elapsed().as_secs_f64());
    let bytes = model.state_bytes_per_token();
    model.set_store(ModelStateStore::new(PathBuf::from(folder), [0; 32], bytes, BYTES_MAX));
    let tasks = Path::new(env!("CARGO_MANIFEST_DIR")).join("bench/tasks.json");
    let tasks =
        std::fs::read_to_string(&tasks).map_err(|error| Error::failed(error.to_string()))?;
    let tasks: Value =
        serde_json::from_str(&tasks).map_err(|error| Error::failed(error.to_string()))?;
    let tools: Vec<ToolSpec> = serde_json::from_value(tasks["tools"].clone())
        .map_err(|error| Error::failed(error.to_string()))?;
    complete_prompt(&mut model, &tools, "What operating system am I running on?", 1)?;
    println!("first token {:.2} s after the start", started.elapsed().as_secs_f64());
    let saving = Instant::now();
    model.save_prefix()?;
    println!("save {:.3} s", saving.elapsed().as_secs_f64());
    complete_prompt(&mut model, &tools, "What operating system am I running on?", 64)?;
    complete_prompt(&mut model, &tools, "Tell me a long story about a ship.", 64)?;
    Ok(())
}

fn complete_prompt(
    model: &mut LocalModel,
    tools: &[ToolSpec],
    prompt: &str,
    tokens: u32,
) -> Result<()> {
    let mut request = CompletionRequest::new(String::new(), vec![Message::user(prompt)]);
    request.tools = tools.to_vec();
    request.options.max_output_tokens = Some(tokens);
    let started = Instant::now();
    let answer = model.complete_request(&request, &CancelFlag::default(), &mut PrintedNotices)?;
    let seconds = started.elapsed().as_secs_f64();
    let usage = answer.usage;
    println!(
        "{} prompt tokens ({} cached), {} answered, {seconds:.2} s",
        usage.prompt_tokens, usage.cached_tokens, usage.output_tokens
    );
    Ok(())
}
