//! The model of a session, and switching to another one during a conversation.

use std::fmt;
use std::sync::Arc;

use jaato_types::{
    CompletionRequest, Error, ErrorKind, Event, ModelId, Part, Price, RequestOptions, SessionId,
};

use super::Session;
use crate::exchange::RequestOutcome;
use crate::session::accepted_media::MediaTypeState;
use crate::{ModelCapabilities, Provider, WindowOrigin};

/// A model, and the known facts about it.
#[derive(Debug, Clone)]
pub struct ModelSetup {
    /// The model, `provider/model`.
    pub id: ModelId,
    /// Its context window in tokens.
    pub context_limit: u64,
    /// The source of that size. The session asks the provider unless it is the configuration. If
    /// the size stays unknown, the session tells the user when it matters.
    pub origin: WindowOrigin,
    /// The settings of every request, as they are sent. The code that wires the session has made
    /// sure that the provider honours them.
    pub options: RequestOptions,
    /// The input that the provider accepts besides text.
    pub takes: ModelCapabilities,
    /// Its price, if that is known.
    pub price: Option<Price>,
    /// Whether the user configured the price, which then overrides the provider's.
    pub is_price_configured: bool,
    /// The most tokens of an answer, if that is known.
    pub answer_tokens_max: Option<u64>,
    /// Whether its provider holds one conversation at a time, so that a separate request would cost
    /// the session its cache.
    pub has_one_conversation: bool,
}

/// A model that answers: the session's, a fallback, or one that a plugin asks.
#[derive(Clone)]
pub struct AnsweringModel {
    /// The model.
    pub model: ModelSetup,
    /// Its provider.
    pub provider: Arc<dyn Provider>,
}

impl fmt::Debug for AnsweringModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnsweringModel").field("model", &self.model).finish_non_exhaustive()
    }
}

impl ModelSetup {
    /// Creates the setup of a model with a configured window and no other known facts.
    pub fn new(id: ModelId, context_limit: u64) -> Self {
        Self {
            id,
            context_limit,
            origin: WindowOrigin::Configured,
            options: RequestOptions::default(),
            takes: ModelCapabilities::default(),
            price: None,
            is_price_configured: false,
            answer_tokens_max: None,
            has_one_conversation: false,
        }
    }
}

/// Sets the model of requests.
pub(super) fn set_request_model(
    prefix: &mut CompletionRequest,
    model: &ModelId,
    options: RequestOptions,
    takes: &ModelCapabilities,
    session: &SessionId,
) {
    let name = model.split().map_or(model.as_str(), |(_, name)| name);
    name.clone_into(&mut prefix.model);
    prefix.options = options;
    if takes.honours_option("session_key") {
        prefix.options.session_key = Some(session.as_str().to_owned());
    }
}

impl Session {
    /// Switches to another model. It gets the conversation so far, except for the parts that only
    /// their maker understands. An event says which those are. The fallbacks of the first model are
    /// dropped, because the user has chosen this one.
    pub fn change_model(&mut self, setup: ModelSetup, provider: Arc<dyn Provider>) {
        self.fallbacks.clear();
        self.apply_model(setup, provider, None);
    }

    /// Streams answers from the next request on, or gets each one in full. A model whose provider
    /// has no such option keeps its own way.
    pub fn set_streaming(&mut self, is_streaming: bool) {
        let stream = (!is_streaming).then_some(false);
        if self.takes.honours_option("stream") {
            self.prefix.options.stream = stream;
        }
        let mut current = self.shared.model.lock();
        for AnsweringModel { model, .. } in self.fallbacks.iter_mut().chain([&mut *current]) {
            if model.takes.honours_option("stream") {
                model.options.stream = stream;
            }
        }
    }

    fn apply_model(
        &mut self,
        setup: ModelSetup,
        provider: Arc<dyn Provider>,
        error: Option<Error>,
    ) {
        *self.shared.model.lock() =
            AnsweringModel { model: setup.clone(), provider: Arc::clone(&provider) };
        let ModelSetup { id, context_limit, origin, options, takes, price, .. } = setup;
        let is_price_configured = setup.is_price_configured;
        // Another model's partial answer cannot be the start of this one's.
        self.paused.clear();
        // The plugins changed the options for the previous model.
        self.options_asked = None;
        set_request_model(&mut self.prefix, &id, options, &takes, &self.shared.id);
        (self.model, self.provider, self.takes) = (id.clone(), provider, takes);
        (self.price, self.is_price_configured) = (price, is_price_configured);
        self.sight = MediaTypeState::default();
        self.left_out.forget_size_omissions();
        self.shared.pace.forget_busy_time();
        self.gc = self.gc.for_other_model(context_limit, origin);
        let left_out = self.describe_omissions();
        self.make_cut();
        self.shared.facts.update_facts(|facts| {
            id.as_str().clone_into(&mut facts.model);
            facts.context_limit = context_limit;
        });
        let model = id.as_str().to_owned();
        self.shared.emitter.emit(Event::ModelChanged { model, left_out, error });
    }

    /// Switches to the next model if this one failed permanently before the user saw any of its
    /// answer, and reports it. Returns false if there is none, or if the failure is not the
    /// model's.
    pub(crate) fn switch_to_fallback(&mut self, came: &RequestOutcome) -> bool {
        let RequestOutcome::Failed { partial: None, error } = came else { return false };
        let is_the_models = match error.kind {
            ErrorKind::ContextOverflow
            | ErrorKind::LimitReached
            | ErrorKind::InvalidArguments
            | ErrorKind::Cancelled
            | ErrorKind::HostBug => false,
            _ => self.paused.is_empty(),
        };
        let Some(next) = self.fallbacks.front().filter(|_| is_the_models).cloned() else {
            return false;
        };
        self.fallbacks.pop_front();
        let (failed, next_id) = (self.model.clone(), &next.model.id);
        let text = format!("`{failed}` failed: {}; trying `{next_id}` instead", error.message);
        self.shared.emitter.emit_notice(text);
        self.apply_model(next.model, next.provider, Some(error.clone()));
        true
    }

    /// Describes the parts of the conversation that the model does not get, or gets only as words.
    fn describe_omissions(&self) -> Vec<String> {
        let (mut thoughts, mut opaque, mut unseen) = (0, 0, 0);
        for part in self.history.messages().flat_map(|message| &message.parts) {
            match part {
                Part::Thought { .. } => thoughts += 1,
                Part::Opaque(_) => opaque += 1,
                Part::Data(data) if data.blob_id().is_some() => {
                    unseen += u64::from(!self.takes.accepts_media(&data.mime_type));
                }
                Part::ToolResult(result) => {
                    let unseen_ones = result.attachments.iter();
                    let unseen_ones =
                        unseen_ones.filter(|it| !self.takes.accepts_media(&it.mime_type));
                    unseen += unseen_ones.count() as u64;
                }
                _ => {}
            }
        }
        let counted = |count: u64, one: &str, many: &str| match count {
            0 => None,
            1 => Some(format!("1 {one}")),
            _ => Some(format!("{count} {many}")),
        };
        let told = [
            counted(thoughts, "thought of another model", "thoughts of other models"),
            counted(
                opaque,
                "part that only its maker understands",
                "parts that only their makers understand",
            ),
            counted(
                unseen,
                "file that it cannot read and gets only as a note",
                "files that it cannot read and gets only as a note",
            ),
        ];
        told.into_iter().flatten().collect()
    }
}
