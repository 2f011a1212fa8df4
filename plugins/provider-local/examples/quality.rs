//! Scores the model on one-line tasks and prints the misses; then measures speed and memory.
//!
//! `cargo run --release -p provider-local --example quality -- WEIGHTS.gguf [TASKS.json
//! [SYSTEM_TEXT]]`
#![allow(clippy::print_stdout)]

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use jaato_plugin_sdk::types::{Completion, Error, Message, Request, Result, ToolSpec};
use provider_local::cancel::CancelFlag;
use provider_local::local::{LocalModel, Sink};
use serde::Deserialize;
use serde_json::{Map, Value};

/// Right answers that are expected of 36.
const RIGHT_MIN_OF_36: usize = 33;

#[derive(Deserialize)]
struct Bench {
    tools: Vec<ToolSpec>,
    tasks: Vec<Task>,
}

#[derive(Deserialize)]
struct Task {
    prompt: String,
    /// The tool that is right; none where none is needed.
    tool: Option<String>,
    #[serde(default)]
    arguments: Map<String, Value>,
}

/// What an argument must be; spaces are ignored.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Rule {
    OneOf(Vec<String>),
    HasAll(Vec<String>),
    HasAny(Vec<String>),
}

struct Quiet {
    first: Option<Instant>,
}

impl Sink for Quiet {
    fn text(&mut self, _text: &str) -> bool {
        self.first.get_or_insert_with(Instant::now);
        true
    }
    fn notice(&mut self, _text: String) {}
    fn log(&mut self, text: String) {
        println!("log: {text}");
    }
}

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            println!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<bool> {
    let mut arguments = std::env::args().skip(1);
    let Some(weights) = arguments.next() else {
        return Err(Error::failed("no weights given")
            .with_hint("quality WEIGHTS.gguf [TASKS.json [SYSTEM_TEXT]]"));
    };
    let default = Path::new(env!("CARGO_MANIFEST_DIR")).join("bench/tasks.json");
    let tasks = arguments.next().map_or(default, PathBuf::from);
    let bench = read(&tasks)?;
    let system = arguments.next().unwrap_or_default();
    let started = Instant::now();
    let mut model = LocalModel::load(Path::new(&weights), 8192)?;
    println!("loaded in {:.2} s", started.elapsed().as_secs_f64());
    score(&mut model, &bench, &system)
}

fn read(path: &Path) -> Result<Bench> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| Error::failed(format!("cannot read `{}`: {error}", path.display())))?;
    serde_json::from_str(&text)
        .map_err(|error| Error::failed(format!("`{}` is no task file: {error}", path.display())))
}

fn score(model: &mut LocalModel, bench: &Bench, system: &str) -> Result<bool> {
    let mut right = 0;
    let (mut tokens, mut time) = (0, Duration::ZERO);
    for (index, task) in bench.tasks.iter().enumerate() {
        let request = request(&bench.tools, system, &task.prompt);
        if index == 0 {
            println!("prefix: {} tokens", model.prefix_tokens(&request)?);
        }
        let started = Instant::now();
        let completion =
            model.complete(&request, &CancelFlag::default(), &mut Quiet { first: None })?;
        if index == 0 {
            println!("first answer after {:.2} s", started.elapsed().as_secs_f64());
        } else {
            tokens += completion.usage.output_tokens;
            time += started.elapsed();
        }
        if is_right(task, &completion) {
            right += 1;
        } else {
            let has = serde_json::to_string(&completion.parts).unwrap_or_default();
            println!(
                "miss: {}\n  wants {:?} {}\n  has {has}",
                task.prompt,
                task.tool,
                Value::from(task.arguments.clone())
            );
        }
    }
    let count = bench.tasks.len();
    println!(
        "{right} of {count} right; {:.1} tokens/s with short prompts",
        tokens as f64 / time.as_secs_f64()
    );
    if let Some(peak) = peak_memory() {
        println!("peak memory {peak}");
    }
    Ok(right * 36 >= RIGHT_MIN_OF_36 * count)
}

fn request(tools: &[ToolSpec], system: &str, prompt: &str) -> Request {
    let mut request = Request::new(String::new(), vec![Message::user(prompt)]);
    request.system = system.to_owned();
    request.tools = tools.to_vec();
    request.options.max_output_tokens = Some(96);
    request
}

fn is_right(task: &Task, completion: &Completion) -> bool {
    let call = completion.parts.iter().find_map(|part| part.as_tool_call());
    let (Some(wanted), Some(call)) = (&task.tool, call) else {
        return task.tool.is_none() && call.is_none() && !completion.parts.is_empty();
    };
    let has_argument = |(name, rule): (&String, &Value)| {
        let value = call.arguments.get(name).and_then(Value::as_str);
        let rule = serde_json::from_value::<Rule>(rule.clone());
        matches!((value, rule), (Some(value), Ok(rule)) if matches(&rule, value))
    };
    call.name.as_str() == wanted && task.arguments.iter().all(has_argument)
}

fn matches(rule: &Rule, value: &str) -> bool {
    let plain = |text: &str| text.split_whitespace().collect::<String>();
    let value = plain(value);
    match rule {
        Rule::OneOf(texts) => texts.iter().any(|text| plain(text) == value),
        Rule::HasAll(texts) => texts.iter().all(|text| value.contains(&plain(text))),
        Rule::HasAny(texts) => texts.iter().any(|text| value.contains(&plain(text))),
    }
}

/// Reads the peak of resident memory, where the system tells it.
fn peak_memory() -> Option<String> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM"))?;
    Some(line.trim_start_matches("VmHWM:").trim().to_owned())
}
