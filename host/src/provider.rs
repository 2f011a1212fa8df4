//! `jaato provider`: lists providers with the sources of their keys, and tests whether one answers.

mod full_check;

use std::sync::Arc;
use std::time::{Duration, Instant};

use jaato_runtime::config::Dollars;
use jaato_runtime::session_loop::{Cancel, EventSink};
use jaato_runtime::types::text::{self, truncate_chars};
use jaato_runtime::types::{
    Error, ErrorKind, Event, EventEnvelope, ModelId, Outcome as TurnOutcome,
};
use jaato_runtime::{KeyInfo, ModelFacts, ProviderInfo, Runtime, SessionOptions, snapshot_source};
use parking_lot::Mutex;
use serde_json::json;

use crate::args::GlobalArgs;
use crate::exit::{CommandFailure, CommandResult, Exit};
use crate::signals::cancel_on_signals;
use crate::{report, start};

/// The tool that the model should call. It only reads, and reaches nothing.
const TOOL: &str = "get_environment";

/// The width of the column with the names, before the values.
const NAME_COLUMNS: usize = 10;

/// The prompt for the test.
const HELLO: &str = "Say hello in one word.";
const CALL: &str = "Call the tool `get_environment` with the aspect `os`, then name the operating \
                    system in one word.";

/// How long a provider may take to list its models.
const LIST_WAIT: Duration = Duration::from_secs(15);

/// Lists the providers.
pub async fn list_providers(global: GlobalArgs, as_json: bool) -> CommandResult {
    let runtime = start::start_runtime(start::setup_arguments(global)).await?;
    let providers = runtime.providers();
    let default = runtime.model();
    let is_default = |name: &str| default.split().is_some_and(|(provider, _)| provider == name);
    report::print_problems(&start::list_problems(&runtime));
    runtime.close().await;
    if as_json {
        let providers: Vec<_> = providers
            .iter()
            .map(|provider| {
                let keys = provider.keys.iter();
                json!({
                    "provider": provider.name,
                    "plugin": provider.plugin,
                    "server": provider.server,
                    "default": is_default(&provider.name),
                    "unused": provider.is_unused,
                    "keys": keys.map(|key| json!({ "looked_for": key.looked_for, "found": key.found }))
                        .collect::<Vec<_>>(),
                    "problem": provider.problem,
                })
            })
            .collect();
        return report::print_exact_json(&json!({ "providers": providers }));
    }
    let (unused, used): (Vec<_>, Vec<_>) = providers.iter().partition(|it| it.is_unused);
    let rows: Vec<_> = used
        .iter()
        .map(|provider| {
            let mark = if is_default(&provider.name) { "*" } else { "" };
            let server = provider.server.as_deref().unwrap_or("this machine");
            [mark, &provider.name, server, &key_source(provider), provider.plugin.as_str()]
                .map(str::to_owned)
                .to_vec()
        })
        .collect();
    report::print_table(&["", "provider", "server", "key", "plugin"], &rows)?;
    if !unused.is_empty() {
        let names: Vec<_> = unused.iter().map(|provider| provider.name.as_str()).collect();
        report::print_sentence(&format!("also known by name: {}", names.join(", ")))?;
    }
    Ok(Exit::Done)
}

/// Lists the models of a provider.
pub async fn list_models(global: GlobalArgs, name: Option<String>, as_json: bool) -> CommandResult {
    let runtime = start::start_runtime(start::setup_arguments(global)).await?;
    let configured = runtime.model().split().map(|(provider, _)| provider.to_owned());
    let name = name.or(configured).unwrap_or_default();
    let listed = runtime.models_of_provider(&name, LIST_WAIT).await;
    let facts = listed.map(|infos| {
        let about = |info| runtime.describe_model(&name, info);
        infos.iter().map(about).collect::<Vec<ModelFacts>>()
    });
    runtime.close().await;
    let facts = facts.map_err(provider_failure)?;
    if as_json {
        let models: Vec<_> = facts
            .iter()
            .map(|facts| {
                json!({
                    "model": facts.id,
                    "context_limit": facts.context_limit,
                    "output_limit": facts.output_limit,
                    "input": facts.input,
                    "tools": facts.tools,
                    "reasoning": facts.reasoning,
                    "price": facts.price,
                })
            })
            .collect();
        return report::print_exact_json(
            &json!({ "models": models, "snapshot": snapshot_source().date }),
        );
    }
    if facts.is_empty() {
        report::print_sentence(&format!("the provider `{name}` lists no model"))?;
        return Ok(Exit::Done);
    }
    let number = |number: Option<u64>| number.map_or_else(|| "-".to_owned(), |it| it.to_string());
    let rows: Vec<_> = facts
        .iter()
        .map(|facts| {
            let price = match &facts.price {
                None => "unknown".to_owned(),
                Some(price) => format!("{} / {}", price.input, price.output),
            };
            let (window, answer) = (number(facts.context_limit), number(facts.output_limit));
            vec![facts.id.clone(), window, answer, price, list_abilities(facts)]
        })
        .collect();
    report::print_table(&["model", "window", "answer", "$ per million, in / out", "can"], &rows)?;
    let date = snapshot_source().date;
    report::print_remark(&format!(
        "data that the provider does not report comes from models.dev, {date}"
    ));
    Ok(Exit::Done)
}

/// Lists the known abilities of a model: `tools, reasoning, image`.
fn list_abilities(facts: &ModelFacts) -> String {
    let own = [(facts.tools, "tools"), (facts.reasoning, "reasoning")];
    let own = own.into_iter().filter(|(can, _)| *can).map(|(_, word)| word);
    let all: Vec<&str> = own.chain(facts.input.iter().map(String::as_str)).collect();
    if all.is_empty() { "-".to_owned() } else { all.join(", ") }
}

/// Describes the source of a provider's key.
fn key_source(provider: &ProviderInfo) -> String {
    if let Some(problem) = &provider.problem {
        return problem.message.clone();
    }
    match provider.keys.iter().find_map(|key| key.found.clone()) {
        Some(place) => place,
        None if provider.keys.is_empty() => "needs none".to_owned(),
        None => "none".to_owned(),
    }
}

/// Asks a provider for a word and for a tool call, and reports the answers and their duration. Or
/// runs all checks.
pub async fn check_provider(global: GlobalArgs, name: Option<String>, full: bool) -> CommandResult {
    let mut arguments = start::setup_arguments(global);
    arguments.tools_only = Some(vec![TOOL.to_owned()]);
    let runtime = start::start_runtime(arguments).await?;
    let checked = ask_provider(&runtime, name.as_deref(), full).await;
    runtime.close().await;
    checked
}

async fn ask_provider(runtime: &Runtime, name: Option<&str>, full: bool) -> CommandResult {
    let configured = runtime.setup().config.model.as_str();
    let whole = name.map(ModelId::new).filter(|model| model.split().is_some());
    let wanted = match (name, &whole) {
        (_, Some(model)) => model.clone(),
        (None, None) => runtime.model_by_name(configured).map_err(provider_failure)?.model,
        (Some(_), None) => runtime.model(),
    };
    let own = wanted.split().map_or("", |(provider, _)| provider);
    let provider = runtime.provider(name.filter(|_| whole.is_none()).unwrap_or(own));
    let provider = provider.map_err(provider_failure)?;
    // The facts about the provider are printed whatever the result is.
    print_provider(&provider)?;
    let model = if own == provider.name {
        Ok(wanted.clone())
    } else {
        choose_model(runtime, &provider).await
    };
    let model = model.map_err(provider_failure)?;
    print_named_line("model", model.as_ref())?;
    let cancel = Cancel::new();
    cancel_on_signals(cancel.clone());
    if full {
        return full_check::run_full_check(runtime, &provider, &model, &cancel).await;
    }
    run_check_turn(runtime, &model, &cancel).await
}

fn print_named_line(name: &str, text: &str) -> Result<(), CommandFailure> {
    report::print_sentence(&format!("{name:<NAME_COLUMNS$} {text}"))
}

/// Prints the known facts before anything is sent.
fn print_provider(provider: &ProviderInfo) -> Result<(), CommandFailure> {
    print_named_line("provider", &format!("{} ({})", provider.name, provider.plugin))?;
    let server = provider.server.as_deref().unwrap_or("none: it runs on this machine");
    print_named_line("server", server)?;
    for KeyInfo { looked_for, found } in &provider.keys {
        let found = match found {
            Some(place) => format!("found: {place}"),
            None => format!("none; looked for {looked_for}"),
        };
        print_named_line("key", &found)?;
    }
    Ok(())
}

/// Chooses a model of a provider: its own choice, or otherwise the first one in its list.
async fn choose_model(runtime: &Runtime, provider: &ProviderInfo) -> Result<ModelId, Error> {
    if let Some(problem) = &provider.problem {
        return Err(problem.clone());
    }
    let name = &provider.name;
    let mut chosen = provider.default_model.clone();
    if chosen.is_empty() {
        let models = runtime.models_of_provider(name, LIST_WAIT).await?;
        chosen = models.first().map(|info| info.name.clone()).unwrap_or_default();
    }
    if chosen.is_empty() {
        let text = format!("the provider `{name}` lists no model");
        let hint = format!("name one: `jaato provider check {name}/MODEL`");
        return Err(Error::new(ErrorKind::Configuration, text).with_hint(hint));
    }
    Ok(ModelId::new(format!("{name}/{chosen}")))
}

/// The observations of a turn.
#[derive(Default)]
struct TurnObservations {
    first: Mutex<Option<Instant>>,
    called: Mutex<Option<bool>>,
}

impl EventSink for TurnObservations {
    fn receive_event(&self, envelope: EventEnvelope) {
        match envelope.event {
            Event::TextDelta { .. } | Event::ThoughtDelta { .. } => {
                self.first.lock().get_or_insert_with(Instant::now);
            }
            Event::ToolCallFinished { is_error, .. } => *self.called.lock() = Some(!is_error),
            _ => {}
        }
    }
}

async fn run_check_turn(runtime: &Runtime, model: &ModelId, cancel: &Cancel) -> CommandResult {
    let seen = Arc::new(TurnObservations::default());
    let mut options = SessionOptions::unattended(Arc::clone(&seen) as _);
    options.allow_all = true;
    options.model = Some(model.to_string());
    let mut session = runtime.open_session(options).map_err(provider_failure)?;
    let begun = Instant::now();
    let hello = session.run_turn(HELLO, cancel).await;
    let whole = begun.elapsed();
    if hello.outcome == TurnOutcome::Cancelled {
        return Ok(Exit::Cancelled);
    }
    if let Some(error) = hello.error {
        return Err(provider_failure(error));
    }
    let first = seen.first.lock().map_or(whole, |first| first.duration_since(begun));
    print_named_line("answer", &one_line(&hello.text))?;
    let (first, whole) = (first.as_secs_f64(), whole.as_secs_f64());
    print_named_line("time", &format!("{first:.2} s to the first word, {whole:.2} s in all"))?;
    let usage = hello.usage;
    print_named_line(
        "tokens",
        &format!(
            "{} in ({} of them from a cache), {} out",
            usage.prompt_tokens, usage.cached_tokens, usage.output_tokens
        ),
    )?;
    if let Some(cost) = usage.cost_micro_usd {
        let source = if usage.cost_is_estimate { " by the price that is known" } else { "" };
        print_named_line("cost", &format!("${}{source}", Dollars::from_micros(cost)))?;
    }
    let called = session.run_turn(CALL, cancel).await;
    if called.outcome == TurnOutcome::Cancelled {
        return Ok(Exit::Cancelled);
    }
    if let Some(error) = called.error {
        return Err(provider_failure(error));
    }
    let line = match *seen.called.lock() {
        Some(true) => format!("called `{TOOL}` and answered: {}", one_line(&called.text)),
        Some(false) => format!("called `{TOOL}` in a way that does not work"),
        None => format!("answered without it: {}", one_line(&called.text)),
    };
    print_named_line("tool call", &line)?;
    let works = *seen.called.lock() == Some(true);
    report::print_sentence(if works { "it works" } else { "it answers, but calls no tools" })?;
    Ok(if works { Exit::Done } else { Exit::Failed })
}

fn one_line(text: &str) -> String {
    truncate_chars(&text::one_line(text), 200)
}

fn provider_failure(error: Error) -> CommandFailure {
    let exit = match error.kind {
        ErrorKind::Configuration | ErrorKind::NotFound => Exit::Configuration,
        ErrorKind::PluginDisabled => Exit::Plugin,
        _ => Exit::Provider,
    };
    CommandFailure { exit, message: error.message, hint: error.hint }
}
