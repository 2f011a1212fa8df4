//! `jaato provider check NAME --full`: twelve checks against a real vendor, in a table for a bug
//! report.
//!
//! A check that could not be provoked says so and does not pass. All checks together stop at a cost
//! of [`COST_MAX_MICROS`], as far as the price is known.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use jaato_runtime::config::{Caps, Dollars};
use jaato_runtime::session_loop::{
    AskingPlugin, Cancel, DeadlineHold, EventSink, History, HistoryEntry, Session, TurnReport,
    UserPrompt,
};
use jaato_runtime::types::model::ModelComplete;
use jaato_runtime::types::{
    Effort, Error, ErrorKind, Event, EventEnvelope, Message, ModelId, Outcome as TurnOutcome, Part,
    ToolCall, ToolResult,
};
use jaato_runtime::{ProviderInfo, Runtime, SessionOptions};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};

use super::{one_line, provider_failure};
use crate::exit::{CommandFailure, CommandResult, Exit};
use crate::report;

/// The maximum cost of all checks, in millionths of a US dollar.
const COST_MAX_MICROS: u64 = 100_000;

/// The largest context window that the overflow check fills, because a server that accepts the
/// request anyway bills it.
const WINDOW_TOKENS_MAX: u64 = 33_000;

/// How quickly a cancelled turn must end.
const CANCEL_MAX: Duration = Duration::from_secs(5);

/// How far the model counts in the check of a long answer.
const COUNTED: u32 = 200;

/// The sentences of the long system prompt: some 4,500 tokens, which every vendor caches.
const SENTENCES: u32 = 300;

/// An image of 64 x 64 red pixels.
const RED: &[u8] = include_bytes!("red.png");

const BOTH: &str = "Call the tool `get_environment` twice at the same time: once with the aspect \
                    `os`, once with the aspect `shell`. Then say both in one line.";
const THINK: &str = "Work out 17 * 23 step by step in your thoughts. Then call the tool \
                     `get_environment` with the aspect `os`, and say the product and the system.";

/// The result of a check.
enum ProviderCheckResult {
    Passed(String),
    Failed(String),
    /// The vendor's server did not show the behaviour.
    NotProvoked(String),
    /// The provider or the model does not support it.
    NotOffered(String),
}

/// Runs all checks and prints them.
pub(super) async fn run_full_check(
    runtime: &Runtime,
    provider: &ProviderInfo,
    model: &ModelId,
    cancel: &Cancel,
) -> CommandResult {
    let mut checks = ProviderChecks::new(runtime, model, cancel);
    let first = checks.check_text().await;
    let failure = match first {
        Some(error) => Some(provider_failure(error)),
        None => {
            checks.run_other_checks().await;
            None
        }
    };
    if cancel.is_cancelled() {
        return Ok(Exit::Cancelled);
    }
    checks.print_results(provider)?;
    match failure {
        Some(failure) => Err(failure),
        None if checks.has_failed => Ok(Exit::Failed),
        None => Ok(Exit::Done),
    }
}

/// Returns the meaning of an error for a check. An error because of the cost limit says nothing
/// about the vendor.
fn error_result(error: &Error) -> ProviderCheckResult {
    match error.kind {
        ErrorKind::LimitReached => ProviderCheckResult::NotProvoked(one_line(&error.message)),
        _ => ProviderCheckResult::Failed(one_line(&error.message)),
    }
}

struct ProviderChecks<'a> {
    runtime: &'a Runtime,
    model: &'a ModelId,
    cancel: &'a Cancel,
    watch: Arc<ProviderCheckEvents>,
    rows: Vec<Vec<String>>,
    has_failed: bool,
    tokens: u64,
    cost_micro_usd: u64,
    is_cost_known: bool,
    /// A conversation that a later check continues.
    earlier: Vec<Arc<HistoryEntry>>,
}

/// Observations from the events of all checks.
#[derive(Default)]
struct ProviderCheckEvents {
    /// The calls since the last request, and the most of one request.
    calls: AtomicU32,
    calls_most: AtomicU32,
    calls_failed: AtomicU32,
    has_thought: AtomicBool,
    notices: Mutex<String>,
    /// The wait that followed a rate limit error.
    rate: Mutex<Option<u64>>,
    cached_tokens: AtomicU64,
    /// Cancelled by the first word of an answer.
    stop_at_first: Mutex<Option<(Cancel, Option<Instant>)>>,
}

impl EventSink for ProviderCheckEvents {
    fn receive_event(&self, envelope: EventEnvelope) {
        match envelope.event {
            Event::StepStarted { .. } => self.calls.store(0, Relaxed),
            Event::ToolCallStarted { .. } => {
                let calls = self.calls.fetch_add(1, Relaxed) + 1;
                self.calls_most.fetch_max(calls, Relaxed);
            }
            Event::ToolCallFinished { is_error: true, .. } => {
                self.calls_failed.fetch_add(1, Relaxed);
            }
            Event::TextDelta { .. } => self.record_first_word(),
            Event::ThoughtDelta { .. } => {
                self.has_thought.store(true, Relaxed);
                self.record_first_word();
            }
            Event::Notice { text, .. } => *self.notices.lock() += &text,
            Event::Usage { usage } => self.cached_tokens.store(usage.cached_tokens, Relaxed),
            Event::Retry { delay_ms, error, .. } if error.message.contains(" 429") => {
                *self.rate.lock() = Some(delay_ms);
            }
            _ => {}
        }
    }
}

impl ProviderCheckEvents {
    fn record_first_word(&self) {
        if let Some((cancel, at)) = &mut *self.stop_at_first.lock() {
            at.get_or_insert_with(Instant::now);
            cancel.cancel();
        }
    }

    fn reset_counts(&self) {
        for count in [&self.calls, &self.calls_most, &self.calls_failed] {
            count.store(0, Relaxed);
        }
        self.has_thought.store(false, Relaxed);
        self.cached_tokens.store(0, Relaxed);
        self.notices.lock().clear();
    }
}

impl<'a> ProviderChecks<'a> {
    fn new(runtime: &'a Runtime, model: &'a ModelId, cancel: &'a Cancel) -> Self {
        Self {
            runtime,
            model,
            cancel,
            watch: Arc::default(),
            rows: Vec::new(),
            has_failed: false,
            tokens: 0,
            cost_micro_usd: 0,
            is_cost_known: true,
            earlier: Vec::new(),
        }
    }

    /// Asks for a word. If that fails, other checks make no sense.
    async fn check_text(&mut self) -> Option<Error> {
        let begun = self.start_check();
        let mut session = match self.open_session(self.session_options()) {
            Ok(session) => session,
            Err(error) => return Some(error),
        };
        let report = session.run_turn(super::HELLO, self.cancel).await;
        let found = match &report.error {
            None => ProviderCheckResult::Passed(one_line(&report.text)),
            Some(error) => error_result(error),
        };
        self.record_result("text", begun, Some(&session), found);
        report.error
    }

    async fn run_other_checks(&mut self) {
        self.check_parallel_calls().await;
        self.check_thinking().await;
        self.check_image().await;
        self.check_caching().await;
        self.check_cancellation().await;
        self.check_overflow().await;
        self.check_schema().await;
        self.check_long_output().await;
        self.check_odd_names().await;
        self.check_resume().await;
        // Last, because any of the others may have met a rate limit.
        let begun = self.start_check();
        let met = *self.watch.rate.lock();
        let found = match met {
            Some(wait_ms) => ProviderCheckResult::Passed(format!(
                "a request was refused and repeated after {wait_ms} ms"
            )),
            None => {
                ProviderCheckResult::NotProvoked("no request was refused for its rate".to_owned())
            }
        };
        self.record_result("429", begun, None, found);
    }

    async fn check_parallel_calls(&mut self) {
        let begun = self.start_check();
        let Some((session, report)) = self.ask_prompt("parallel calls", begun, BOTH).await else {
            return;
        };
        let (most, wrong) =
            (self.watch.calls_most.load(Relaxed), self.watch.calls_failed.load(Relaxed));
        let found = match (&report.error, most) {
            (Some(error), _) => error_result(error),
            (None, _) if wrong > 0 => {
                ProviderCheckResult::Failed(format!("{wrong} calls do not work"))
            }
            (None, 0) => ProviderCheckResult::Failed("the model calls no tool".to_owned()),
            (None, 1) => {
                ProviderCheckResult::NotProvoked("the model made one call at a time".to_owned())
            }
            (None, most) => ProviderCheckResult::Passed(format!("{most} calls in one answer")),
        };
        if report.error.is_none() {
            self.earlier = session.history().entries().to_vec();
        }
        self.record_result("parallel calls", begun, Some(&session), found);
    }

    async fn check_thinking(&mut self) {
        let begun = self.start_check();
        let mut options = self.session_options();
        options.request.effort = Some(Effort::Medium);
        let session =
            self.open_session(options).or_else(|_| self.open_session(self.session_options()));
        let Some(mut session) = self.session_or_failure("thinking round trip", begun, session)
        else {
            return;
        };
        let first = session.run_turn(THINK, self.cancel).await;
        let next =
            session.run_turn("Add one to that product. Say the sum only.", self.cancel).await;
        let is_signed = |part: &Part| part.signature().is_some() || matches!(part, Part::Opaque(_));
        let parts = session.history().entries().iter().flat_map(|entry| &entry.message.parts);
        let is_signed = parts.clone().any(is_signed);
        let has_thought = self.watch.has_thought.load(Relaxed)
            || parts.clone().any(|it| matches!(it, Part::Thought { .. }));
        let found = match first.error.or(next.error) {
            Some(error) => error_result(&error),
            None if is_signed => {
                ProviderCheckResult::Passed("signed thoughts went back".to_owned())
            }
            None if has_thought => {
                ProviderCheckResult::Passed("thoughts, which the server does not sign".into())
            }
            None => ProviderCheckResult::NotProvoked("the model showed no thoughts".to_owned()),
        };
        if matches!(found, ProviderCheckResult::Passed(_)) {
            self.earlier = session.history().entries().to_vec();
        }
        self.record_result("thinking round trip", begun, Some(&session), found);
    }

    async fn check_image(&mut self) {
        let begun = self.start_check();
        let session = self.open_session(self.session_options());
        let Some(mut session) = self.session_or_failure("image", begun, session) else { return };
        let prompt = "Which colour is this image? Answer with one word.";
        let prompt = match self.attach_image(&session, prompt).await {
            Ok(prompt) => prompt,
            Err(error) => {
                let found = error_result(&error);
                return self.record_result("image", begun, Some(&session), found);
            }
        };
        let report = session.run_turn(prompt, self.cancel).await;
        let notices = self.watch.notices.lock().clone();
        let found = match &report.error {
            Some(error) => error_result(error),
            None if notices.contains("cannot look at") => {
                ProviderCheckResult::NotOffered("the model does not look at images".to_owned())
            }
            None if notices.contains("refused the request: trying again without") => {
                ProviderCheckResult::Failed("the provider refuses the image".to_owned())
            }
            None if report.text.to_lowercase().contains("red") => {
                ProviderCheckResult::Passed("red".to_owned())
            }
            None => ProviderCheckResult::Failed(format!(
                "it is red, and the model says: {}",
                one_line(&report.text)
            )),
        };
        self.record_result("image", begun, Some(&session), found);
    }

    async fn attach_image(&self, session: &Session, prompt: &str) -> Result<UserPrompt, Error> {
        let file = std::env::temp_dir().join(format!("jaato-check-{}.png", session.id()));
        let io = |error: std::io::Error| Error::new(ErrorKind::Io, error.to_string());
        fs::write(&file, RED).map_err(io)?;
        let prompt = UserPrompt::from(prompt);
        let attached =
            self.runtime.attach_files(session.id(), prompt, std::slice::from_ref(&file)).await;
        fs::remove_file(&file).map_err(io)?;
        attached
    }

    async fn check_caching(&mut self) {
        let begun = self.start_check();
        let mut options = self.session_options();
        let sentence =
            |n| format!("Line {n}: the moon circles the earth, and the earth the sun.\n");
        options.system = Some((1..=SENTENCES).map(sentence).collect());
        let session = self.open_session(options);
        let Some(mut session) = self.session_or_failure("cached prefix", begun, session) else {
            return;
        };
        let first = session.run_turn("Say one.", self.cancel).await;
        let next = session.run_turn("Say two.", self.cancel).await;
        let (cached, prompt) = (self.watch.cached_tokens.load(Relaxed), next.usage.prompt_tokens);
        let found = match first.error.or(next.error) {
            Some(error) => error_result(&error),
            None if cached > 0 => ProviderCheckResult::Passed(format!(
                "{cached} of {prompt} tokens came from the cache"
            )),
            None => {
                ProviderCheckResult::NotProvoked("the server reports no cached tokens".to_owned())
            }
        };
        self.record_result("cached prefix", begun, Some(&session), found);
    }

    async fn check_cancellation(&mut self) {
        let begun = self.start_check();
        let session = self.open_session(self.session_options());
        let Some(mut session) = self.session_or_failure("cancel", begun, session) else { return };
        let stop = self.cancel.child_token();
        *self.watch.stop_at_first.lock() = Some((stop.clone(), None));
        let report = session.run_turn("Tell a story of 300 words about the moon.", &stop).await;
        let stopped = self.watch.stop_at_first.lock().take().and_then(|(_, at)| at);
        let took = stopped.map_or(Duration::ZERO, |at| at.elapsed());
        let next = session.run_turn("Say ok.", self.cancel).await;
        let found = match (report.outcome, next.error) {
            (_, Some(error)) => ProviderCheckResult::Failed(format!(
                "the next message fails: {}",
                one_line(&error.message)
            )),
            (TurnOutcome::Cancelled, None) if took <= CANCEL_MAX => ProviderCheckResult::Passed(
                format!("stopped in {} ms, and the next message works", took.as_millis()),
            ),
            (TurnOutcome::Cancelled, None) => ProviderCheckResult::Failed(format!(
                "stopped only after {:.1} s",
                took.as_secs_f64()
            )),
            (_, None) => ProviderCheckResult::NotProvoked(
                "the answer was complete before it was cancelled".into(),
            ),
        };
        self.record_result("cancel", begun, Some(&session), found);
    }

    /// Sends more than the window holds, bypassing the code that makes room for it.
    async fn check_overflow(&mut self) {
        let begun = self.start_check();
        let session = self.open_session(self.session_options());
        let Some(session) = self.session_or_failure("overflow", begun, session) else { return };
        let window = session.facts().context_limit;
        if window == 0 || window > WINDOW_TOKENS_MAX {
            let text = format!("filling a window of {window} tokens may cost too much");
            return self.record_result(
                "overflow",
                begun,
                Some(&session),
                ProviderCheckResult::NotProvoked(text),
            );
        }
        let words = usize::try_from(window.saturating_mul(2)).unwrap_or_default();
        let asked = ModelComplete {
            messages: vec![Message::user("moon ".repeat(words) + "Say ok.")],
            ..ModelComplete::default()
        };
        let asker = AskingPlugin {
            plugin: "provider-check".into(),
            parent: None,
            hold: DeadlineHold::default(),
        };
        let handle = session.handle();
        let answered = handle.ask_model(&asker, asked, None, Arc::new(|_| {}), self.cancel).await;
        let found = match answered {
            Err(error) if error.kind == ErrorKind::ContextOverflow => {
                ProviderCheckResult::Passed("the refusal is recognized as an overflow".to_owned())
            }
            Err(error) if error.kind == ErrorKind::Unavailable => {
                ProviderCheckResult::NotOffered(one_line(&error.message))
            }
            Err(error) => ProviderCheckResult::Failed(format!(
                "not recognized as an overflow: {}",
                one_line(&error.message)
            )),
            Ok(_) => ProviderCheckResult::NotProvoked(format!(
                "the server takes {words} words into {window} tokens"
            )),
        };
        self.record_result("overflow", begun, Some(&session), found);
    }

    async fn check_schema(&mut self) {
        let begun = self.start_check();
        let mut options = self.session_options();
        options.request.output_schema = Some(json!({
            "type": "object",
            "properties": { "city": { "type": "string" }, "rivers": { "type": "integer" } },
            "required": ["city", "rivers"],
            "additionalProperties": false,
        }));
        let mut session = match self.open_session(options) {
            Ok(session) => session,
            Err(error) => {
                return self.record_result(
                    "schema",
                    begun,
                    None,
                    ProviderCheckResult::NotOffered(one_line(&error.message)),
                );
            }
        };
        let report =
            session.run_turn("Name Paris and say how many rivers it has.", self.cancel).await;
        let read: Value = serde_json::from_str(report.text.trim()).unwrap_or_default();
        let found = match &report.error {
            Some(error) => error_result(error),
            None if read["city"].is_string() && read["rivers"].is_i64() => {
                ProviderCheckResult::Passed("the answer matches".to_owned())
            }
            None => ProviderCheckResult::Failed(format!(
                "it does not match: {}",
                one_line(&report.text)
            )),
        };
        self.record_result("schema", begun, Some(&session), found);
    }

    async fn check_long_output(&mut self) {
        let begun = self.start_check();
        let prompt = format!(
            "Write all numbers from 1 to {COUNTED}, separated by commas, and nothing else."
        );
        let Some((session, report)) = self.ask_prompt("long output", begun, &prompt).await else {
            return;
        };
        let numbers = report.text.split(|it: char| !it.is_ascii_digit());
        let numbers: Vec<u32> = numbers.filter_map(|it| it.parse().ok()).collect();
        let is_whole = numbers.iter().copied().eq(1..=COUNTED);
        let found = match &report.error {
            Some(error) => error_result(error),
            None if is_whole => ProviderCheckResult::Passed(format!("all {COUNTED} numbers came")),
            None => {
                ProviderCheckResult::Failed(format!("{} numbers of {COUNTED} came", numbers.len()))
            }
        };
        self.record_result("long output", begun, Some(&session), found);
    }

    /// Continues a conversation whose tool, ids and arguments have names that vendors refuse.
    async fn check_odd_names(&mut self) {
        let begun = self.start_check();
        let name = "mcp__srv__read.file/über-largest_name_of_a_tool_that_anybody_has_seen_so_far";
        let id = format!("call|{}|ä/1", "9".repeat(60));
        let call = ToolCall::new(id.as_str(), name, json!({ "päth": "a b", "$ref": 1 }));
        let result =
            ToolResult::new(id.as_str(), name, Map::from_iter([("ok".into(), json!(true))]));
        let mut history = History::new();
        let made = history
            .append_prompt(vec![Part::text("Read the file.")])
            .and_then(|()| history.append_answer(vec![Part::ToolCall(call)], None))
            .and_then(|()| history.append_results(vec![result], Vec::new()))
            .and_then(|()| history.append_answer(vec![Part::text("I have read it.")], None));
        if let Err(error) = made {
            return self.record_result(
                "odd names",
                begun,
                None,
                ProviderCheckResult::Failed(error.to_string()),
            );
        }
        self.continue_history(
            "odd names",
            begun,
            history,
            "a tool, an id and arguments with odd names",
        )
        .await;
    }

    async fn check_resume(&mut self) {
        let begun = self.start_check();
        let earlier = std::mem::take(&mut self.earlier);
        if earlier.is_empty() {
            let text = "no earlier check left a conversation with calls".to_owned();
            return self.record_result(
                "resume",
                begun,
                None,
                ProviderCheckResult::NotProvoked(text),
            );
        }
        match History::restore(earlier) {
            Ok(history) => {
                self.continue_history(
                    "resume",
                    begun,
                    history,
                    "a conversation of an earlier session",
                )
                .await;
            }
            Err(error) => self.record_result(
                "resume",
                begun,
                None,
                ProviderCheckResult::Failed(error.to_string()),
            ),
        }
    }

    async fn continue_history(
        &mut self,
        name: &'static str,
        begun: Instant,
        history: History,
        what: &str,
    ) {
        let session = self.runtime.open_session_from(history, self.session_options());
        let Some(mut session) = self.session_or_failure(name, begun, session) else { return };
        let report = session.run_turn("Say ok.", self.cancel).await;
        let found = match &report.error {
            Some(error) => error_result(error),
            None => ProviderCheckResult::Passed(format!("{what} is continued")),
        };
        self.record_result(name, begun, Some(&session), found);
    }

    /// Asks one prompt in its own session.
    async fn ask_prompt(
        &mut self,
        name: &'static str,
        begun: Instant,
        prompt: &str,
    ) -> Option<(Session, TurnReport)> {
        let session = self.open_session(self.session_options());
        let mut session = self.session_or_failure(name, begun, session)?;
        let report = session.run_turn(prompt, self.cancel).await;
        Some((session, report))
    }

    fn session_options(&self) -> SessionOptions {
        let mut options = SessionOptions::unattended(Arc::clone(&self.watch) as _);
        options.allow_all = true;
        options.model = Some(self.model.to_string());
        // If the price is unknown, a cap on cost would refuse every request.
        if self.is_cost_known && self.cost_micro_usd > 0 {
            let left = COST_MAX_MICROS.saturating_sub(self.cost_micro_usd);
            options.caps = Caps { cost: Some(Dollars::from_micros(left)), ..Caps::default() };
        }
        options
    }

    fn open_session(&self, options: SessionOptions) -> Result<Session, Error> {
        self.runtime.open_session(options)
    }

    fn start_check(&self) -> Instant {
        self.watch.reset_counts();
        Instant::now()
    }

    /// Returns the session, or records why there is none.
    fn session_or_failure(
        &mut self,
        name: &'static str,
        begun: Instant,
        session: Result<Session, Error>,
    ) -> Option<Session> {
        match session {
            Ok(session) => Some(session),
            Err(error) => {
                self.record_result(name, begun, None, error_result(&error));
                None
            }
        }
    }

    fn record_result(
        &mut self,
        name: &str,
        begun: Instant,
        session: Option<&Session>,
        found: ProviderCheckResult,
    ) {
        let spent = session.map(Session::usage).unwrap_or_default();
        self.tokens = self.tokens.saturating_add(spent.tokens);
        self.cost_micro_usd = self.cost_micro_usd.saturating_add(spent.cost_micro_usd);
        self.is_cost_known &= !spent.has_unknown_cost;
        let (result, note) = match found {
            ProviderCheckResult::Passed(note) => ("passed", note),
            ProviderCheckResult::Failed(note) => {
                self.has_failed = true;
                ("FAILED", note)
            }
            ProviderCheckResult::NotProvoked(note) => ("not provoked", note),
            ProviderCheckResult::NotOffered(note) => ("not offered", note),
        };
        let time = format!("{:.1} s", begun.elapsed().as_secs_f64());
        let tokens = if spent.tokens > 0 { spent.tokens.to_string() } else { "-".to_owned() };
        self.rows.push(vec![name.to_owned(), result.to_owned(), time, tokens, note]);
    }

    fn print_results(&self, provider: &ProviderInfo) -> Result<(), CommandFailure> {
        report::print_table(&["check", "result", "time", "tokens", "note"], &self.rows)?;
        let cost = match self.is_cost_known {
            true => format!("${}", Dollars::from_micros(self.cost_micro_usd)),
            false => "a cost that is not known".to_owned(),
        };
        let version = env!("CARGO_PKG_VERSION");
        let (model, plugin, tokens) = (self.model, &provider.plugin, self.tokens);
        report::print_sentence(&format!(
            "jaato {version}, {plugin}, {model}: {tokens} tokens, {cost}"
        ))
    }
}
