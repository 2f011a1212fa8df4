//! Plugins' requests to a model, separate from the conversation: without tools, not in the history,
//! but counted against the session's caps.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};

use jaato_types::model::{
    COMPLETIONS_AT_ONCE, COMPLETIONS_PER_TURN_MAX, COMPLETIONS_WAITING_MAX, ModelAnswer,
    ModelComplete, ObjectVisibility,
};
use jaato_types::{
    CallId, Completion, CompletionRequest, Delta, Error, ErrorKind, Event, EventEnvelope, Part,
    PluginName, RequestOptions, Result, Role, Usage,
};
use serde_json::{Map, Value};
use tokio::sync::Semaphore;

use super::limited_count::CountedItem;
use crate::events::EventEmitter;
use crate::exchange::{BrokenAnswerPolicy, RequestOutcome, exchange_with_retries};
use crate::pace::RequestPace;
use crate::session::SessionShared;
use crate::shared_budget::RequestEstimate;
use crate::usage_caps::{request_estimate, unknown_cost_error, with_cost};
use crate::{AnsweringModel, Cancel, DeadlineHold, EventSink, ModelSetup};

/// Receives the pieces of an answer as they arrive.
pub type PieceSink = Arc<dyn Fn(Delta) + Send + Sync>;

/// The requests of a session's plugins.
pub(crate) struct PluginModelRequests {
    at_once: Semaphore,
    waiting: AtomicUsize,
    /// The requests of the current or the last turn.
    in_turn: AtomicU32,
    asked: AtomicU64,
}

impl Default for PluginModelRequests {
    fn default() -> Self {
        Self {
            at_once: Semaphore::new(COMPLETIONS_AT_ONCE),
            waiting: AtomicUsize::new(0),
            in_turn: AtomicU32::new(0),
            asked: AtomicU64::new(0),
        }
    }
}

/// The plugin that asks a model.
#[derive(Debug, Clone)]
pub struct AskingPlugin {
    /// The plugin.
    pub plugin: PluginName,
    /// Its call, if it asks within one.
    pub parent: Option<CallId>,
    /// The deadline of that call, which pauses until the model has answered.
    pub hold: DeadlineHold,
}

impl PluginModelRequests {
    /// Resets the count for a new turn.
    pub(crate) fn begin_turn(&self) {
        self.in_turn.store(0, Relaxed);
    }

    /// Asks the given model, or the session's.
    pub(crate) async fn complete_for_plugin(
        &self,
        shared: &SessionShared,
        asker: &AskingPlugin,
        asked: ModelComplete,
        other: Option<AnsweringModel>,
        take: PieceSink,
        cancel: &Cancel,
    ) -> Result<ModelAnswer> {
        let is_other = other.is_some();
        let model = other.unwrap_or_else(|| shared.model.lock().clone());
        let request = build_request(&asked, &model, is_other, shared)?;
        // How long a model needs is not the plugin's doing. The request has its own limits.
        let _held = asker.hold.pause();
        let _permit = self.wait_for_slot(shared, &model, cancel).await?;
        let _reserved = match shared.budget() {
            Some(budget) => {
                let estimate = estimate_side_request(&model.model, &request);
                Some(budget.reserve_request(&shared.id, estimate, cancel).await?)
            }
            None => None,
        };
        let completion_id = format!("completion_{}", self.asked.fetch_add(1, Relaxed) + 1);
        let by = asker.plugin.as_str().to_owned();
        let id = model.model.id.as_str().to_owned();
        shared.emitter.emit(Event::CompletionStarted {
            completion_id: completion_id.clone(),
            by: by.clone(),
            parent: asker.parent.clone(),
            model: id.clone(),
        });
        let began_ms = shared.ports.clock.monotonic_ms();
        let outcome = send_request(shared, &model, is_other, &request, take, cancel).await;
        let (usage, error) = match &outcome {
            Ok(completion) => (self.account_usage(shared, &model, &request, completion), None),
            Err(error) => (Usage::default(), Some(error.clone())),
        };
        shared.emitter.emit(Event::CompletionFinished {
            completion_id,
            by,
            model: id.clone(),
            usage,
            error,
            duration_ms: shared.ports.clock.monotonic_ms().saturating_sub(began_ms),
        });
        let mut completion = outcome?;
        completion.usage = usage;
        crate::completion::record_maker(&model.model.id, &mut completion.parts);
        Ok(ModelAnswer::new(id, completion))
    }

    /// Waits for its turn among the plugins' requests, within the session's caps.
    async fn wait_for_slot(
        &self,
        shared: &SessionShared,
        model: &AnsweringModel,
        cancel: &Cancel,
    ) -> Result<tokio::sync::SemaphorePermit<'_>> {
        let Some(_counted) = CountedItem::try_count(&self.waiting, COMPLETIONS_WAITING_MAX) else {
            let text = format!("{COMPLETIONS_WAITING_MAX} requests of plugins are already waiting");
            return Err(Error::new(ErrorKind::LimitReached, text).temporary());
        };
        let permit = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(Error::cancelled()),
            permit = self.at_once.acquire() => permit,
        };
        let permit = permit.map_err(|error| Error::new(ErrorKind::HostBug, error.to_string()))?;
        self.check_caps(shared, model)?;
        Ok(permit)
    }

    /// Counts a request. Refuses it if a cap is reached, or cannot be enforced.
    fn check_caps(&self, shared: &SessionShared, model: &AnsweringModel) -> Result<()> {
        let mut spent = shared.spent.lock();
        if let Some(error) = spent.reached_cap_error(&shared.caps) {
            return Err(error);
        }
        if let Some(option) = shared.cost_option().filter(|_| model.model.price.is_none()) {
            return Err(unknown_cost_error(&model.model.id, &option));
        }
        let has_caps = shared.caps != crate::Caps::default();
        if !has_caps && self.in_turn.fetch_add(1, Relaxed) >= COMPLETIONS_PER_TURN_MAX {
            let text =
                format!("plugins ask models at most {COMPLETIONS_PER_TURN_MAX} times in a turn");
            return Err(Error::new(ErrorKind::LimitReached, text).with_hint(
                "if you set a cap (`--max-cost`, `--max-tokens`, `--max-steps`), it applies instead",
            ));
        }
        spent.steps += 1;
        Ok(())
    }

    /// Counts an answer's usage. Estimates it if the provider reports none.
    fn account_usage(
        &self,
        shared: &SessionShared,
        model: &AnsweringModel,
        request: &CompletionRequest,
        completion: &Completion,
    ) -> Usage {
        let mut usage = completion.usage;
        if usage == Usage::default() {
            usage.prompt_tokens = crate::gc::estimate_tokens(crate::gc::json_bytes(request));
            usage.output_tokens =
                crate::gc::estimate_tokens(crate::gc::json_bytes(&completion.parts));
        }
        let usage = with_cost(model.model.price.as_ref(), usage);
        shared.add_usage(&usage);
        usage
    }
}

/// Returns the most that a request may use.
fn estimate_side_request(model: &ModelSetup, request: &CompletionRequest) -> RequestEstimate {
    let asked = request.options.max_output_tokens.map(u64::from);
    let tokens = crate::gc::estimate_tokens(crate::gc::json_bytes(request));
    request_estimate(model.price.as_ref(), tokens, asked.or(model.answer_tokens_max))
}

/// Builds the request.
fn build_request(
    asked: &ModelComplete,
    model: &AnsweringModel,
    is_other: bool,
    shared: &SessionShared,
) -> Result<CompletionRequest> {
    let invalid = |text: &str| Err(Error::new(ErrorKind::InvalidArguments, text));
    if asked.messages.last().is_none_or(|last| last.role != Role::User) {
        return invalid("the last message must be the user's");
    }
    if model.model.has_one_conversation && !is_other {
        let id = &model.model.id;
        let text = format!(
            "`{id}` holds one conversation at a time, and already holds the session's: name another model"
        );
        return Err(Error::new(ErrorKind::Unavailable, text)
            .with_hint("the plugin's settings may name one: `model = \"provider/model\"`"));
    }
    let id = &model.model.id;
    let name = id.split().map_or(id.as_str(), |(_, name)| name);
    let mut request = CompletionRequest::new(name, asked.messages.clone());
    request.system.clone_from(&asked.system);
    request.options = request_options(asked, model)?;
    if let Some(part) = visible_objects(asked.objects, shared)
        && let Some(last) = request.messages.last_mut()
    {
        last.parts.insert(0, part);
    }
    request
        .messages
        .iter_mut()
        .for_each(|message| model.model.takes.replace_with_descriptions(message, &BTreeMap::new()));
    Ok(request)
}

/// Applies the requested options on top of the model's settings.
fn request_options(asked: &ModelComplete, model: &AnsweringModel) -> Result<RequestOptions> {
    let bug = |error: serde_json::Error| Error::new(ErrorKind::HostBug, error.to_string());
    let set = |options: &RequestOptions| -> Result<Map<String, Value>> {
        match serde_json::to_value(options).map_err(bug)? {
            Value::Object(set) => Ok(set),
            _ => Ok(Map::new()),
        }
    };
    let mut options = set(&model.model.options)?;
    // Headers and a vendor's own bodies are for the user to set.
    for (name, value) in set(&asked.options)? {
        let is_theirs = matches!(name.as_str(), "extra_body" | "extra_headers" | "session_key");
        if is_theirs || !model.model.takes.honours_option(&name) {
            let text = format!("`{}` does not accept the option `{name}`", model.model.id);
            return Err(Error::new(ErrorKind::InvalidArguments, text));
        }
        options.insert(name, value);
    }
    options.remove("tool_choice");
    serde_json::from_value(Value::Object(options)).map_err(bug)
}

/// Returns the session's objects. Returns `None` if there are none, or none are wanted.
fn visible_objects(wanted: ObjectVisibility, shared: &SessionShared) -> Option<Part> {
    let tokens_max = shared.limits.objects_tokens_max;
    let full = |shared: &SessionShared| {
        shared.objects.with_objects(|objects| objects.render(0, tokens_max))
    };
    match wanted {
        ObjectVisibility::None => None,
        ObjectVisibility::Full => full(shared).map(Part::json),
        ObjectVisibility::Contents => {
            let mut value = full(shared)?;
            let tools = value["environment"].as_object_mut()?.values_mut();
            for tool in tools {
                let items = tool.as_array_mut().map(std::mem::take).unwrap_or_default();
                let objects = items
                    .into_iter()
                    .filter_map(|mut item| item["objects"].as_array_mut().map(std::mem::take));
                *tool = objects.flatten().collect();
            }
            Some(Part::json(value))
        }
    }
}

async fn send_request(
    shared: &SessionShared,
    model: &AnsweringModel,
    is_other: bool,
    request: &CompletionRequest,
    take: PieceSink,
    cancel: &Cancel,
) -> Result<Completion> {
    let own_pace = RequestPace::default();
    let pace = if is_other { &own_pace } else { &shared.pace };
    let pieces = Arc::new(PieceForwarder { take, outer: shared.emitter.clone() });
    let emitter = EventEmitter::new(shared.id.clone(), pieces);
    let asked = (&*model.provider, &shared.ports);
    match exchange_with_retries(
        request,
        asked,
        &emitter,
        (&shared.limits, pace),
        BrokenAnswerPolicy::Stop,
        cancel,
    )
    .await
    {
        RequestOutcome::Complete(completion) => Ok(completion),
        RequestOutcome::Failed { error, .. } => Err(error),
        RequestOutcome::Cancelled { .. } => Err(Error::cancelled()),
    }
}

/// Passes the pieces of an answer to the plugin, and all other events to the session's followers.
struct PieceForwarder {
    take: PieceSink,
    outer: EventEmitter,
}

impl EventSink for PieceForwarder {
    fn receive_event(&self, envelope: EventEnvelope) {
        match envelope.event {
            Event::TextDelta { text, .. } => (self.take)(Delta::text(text)),
            Event::ThoughtDelta { text, .. } => (self.take)(Delta::thought(text)),
            event @ (Event::Notice { .. } | Event::Retry { .. } | Event::Progress { .. }) => {
                self.outer.emit(event);
            }
            _ => {}
        }
    }
}
