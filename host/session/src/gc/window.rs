//! The size of the context window: from the configuration, else from the provider's answer, else
//! from its description, else a guess.
//!
//! The session asks the provider once, in parallel with a request, when the window begins to
//! matter. No turn fails for lack of an answer. The session waits for the answer, briefly, only
//! before it would remove something based on a guess.

use std::convert::Infallible;
use std::future::{Future, pending};

use futures_util::future::{BoxFuture, FutureExt, Shared};
use jaato_types::{ModelInfo, Role};

use crate::clock::sleep_while_running;
use crate::{Cancel, Session};

/// The longest wait for the provider's facts about the model: before something is removed based on
/// a guess, and before the first image.
pub const WINDOW_WAIT_MS: u64 = 2_000;

/// From this many tokens on, the window matters in a conversation: half of the smallest window of a
/// model in use. A single short answer asks nothing.
const MATTERS_TOKENS: u64 = 1_024;

/// A first request matters when it fills this part of the assumed window.
const MATTERS_PART: u64 = 8;

/// The smallest plausible window. Anything less is a mistake, and nothing would ever fit.
const WINDOW_TOKENS_MIN: u64 = 256;

/// The source of the context window's size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowOrigin {
    /// The configuration. The provider is not asked.
    Configured,
    /// The provider's description of the model.
    Described,
    /// A guess, because no source has the size.
    Assumed,
}

/// The provider's pending answer about the model.
pub(crate) type PendingModelInfo = Shared<BoxFuture<'static, Option<ModelInfo>>>;

/// The session's knowledge of its window's size.
pub(super) struct WindowState {
    pub(super) origin: WindowOrigin,
    /// The question, once it was asked.
    asked: Option<PendingModelInfo>,
    /// The size that the provider reported.
    pub(super) told: Option<u64>,
    /// Whether the session has waited for the answer. It waits once.
    waited: bool,
    /// Whether the session has told the user that the size is a guess.
    pub(super) guess_told: bool,
    /// The smallest context that the provider refused as too large.
    refused: Option<u64>,
}

impl WindowState {
    pub(super) fn new(origin: WindowOrigin) -> Self {
        Self { origin, asked: None, told: None, waited: false, guess_told: false, refused: None }
    }

    /// Returns true if the size is a guess.
    pub(super) fn is_guess(&self) -> bool {
        self.origin == WindowOrigin::Assumed && self.told.is_none()
    }

    /// Returns the question until it is answered, to be polled along with other work.
    pub(super) fn pending_model_info(&self) -> Option<PendingModelInfo> {
        self.asked.clone().filter(|_| self.told.is_none())
    }
}

impl Session {
    /// Asks for the window when it begins to matter, and takes the answer when it is there.
    pub(super) fn query_window(&mut self) {
        let window = &self.gc.window;
        if window.origin != WindowOrigin::Configured
            && window.asked.is_none()
            && self.is_window_needed()
        {
            drop(self.request_model_info());
        }
        self.accept_model_info();
    }

    /// Asks the provider about the model, once.
    pub(crate) fn request_model_info(&mut self) -> PendingModelInfo {
        let provider = &self.provider;
        let asked = &mut self.gc.window.asked;
        asked.get_or_insert_with(|| provider.query_model_info().shared()).clone()
    }

    /// Takes the answer if it is there.
    pub(crate) fn accept_model_info(&mut self) {
        let answer = self.gc.window.asked.clone().and_then(FutureExt::now_or_never);
        let Some(info) = answer.flatten() else { return };
        if let Some(limit) = info.context_limit
            && self.gc.window.origin != WindowOrigin::Configured
        {
            self.accept_window_size(limit);
        }
        self.take_accepted_media(info.accepts.as_ref());
        if let Some(price) = info.price.filter(|_| !self.is_price_configured) {
            self.price = Some(price);
        }
    }

    /// Waits for the window's size, before something is removed based on a guess.
    pub(super) async fn wait_for_window(&mut self, cancel: &Cancel) {
        self.query_window();
        if !self.gc.window.is_guess() || self.gc.window.waited {
            return;
        }
        if self.gc.window.asked.is_none() {
            return;
        }
        self.gc.window.waited = true;
        self.wait_for_model_info(cancel).await;
        self.query_window();
    }

    /// Waits briefly for the provider's facts about the model, and asks for them if that was not
    /// done.
    pub(crate) async fn wait_for_model_info(&mut self, cancel: &Cancel) {
        let told = self.request_model_info();
        let clock = self.shared.ports.clock.clone();
        tokio::select! {
            biased;
            _ = told => {}
            () = cancel.cancelled() => {}
            () = sleep_while_running(clock, WINDOW_WAIT_MS) => {}
        }
        self.accept_model_info();
    }

    /// Records that the window is smaller than a request that the provider refused, regardless of
    /// the size that it reported before.
    pub(super) fn record_refused_size(&mut self, tokens: u64) {
        self.gc.window.refused = Some(self.gc.window.refused.map_or(tokens, |it| it.min(tokens)));
        self.set_window_limit(self.gc.limit.min(tokens));
    }

    /// Returns the state to restore if a refusal turns out to have another reason.
    pub(super) fn window_snapshot(&self) -> (u64, Option<u64>) {
        (self.gc.limit, self.gc.window.refused)
    }

    /// Takes a refusal back. A size that the provider has reported since then stays.
    pub(super) fn restore_window(&mut self, (limit, refused): (u64, Option<u64>)) {
        self.gc.window.refused = refused;
        let told = self.gc.window.told.map(|told| refused.map_or(told, |it| told.min(it)));
        self.set_window_limit(told.unwrap_or(limit));
    }

    fn is_window_needed(&self) -> bool {
        let tokens = self.tokens_in_use();
        let has_begun = self.history.messages().any(|message| message.role == Role::Model);
        let matters = if has_begun { MATTERS_TOKENS } else { self.gc.limit / MATTERS_PART };
        tokens >= matters
    }

    fn accept_window_size(&mut self, limit: u64) {
        if limit < WINDOW_TOKENS_MIN || self.gc.window.told == Some(limit) {
            return;
        }
        self.gc.window.told = Some(limit);
        self.set_window_limit(self.gc.window.refused.map_or(limit, |refused| limit.min(refused)));
    }

    fn set_window_limit(&mut self, limit: u64) {
        self.gc.limit = limit;
        self.shared.facts.update_facts(|facts| facts.context_limit = limit);
    }
}

/// Does some work, and polls the question for the window along with it.
pub(super) async fn poll_with_window<T>(
    work: impl Future<Output = T>,
    window: Option<PendingModelInfo>,
) -> T {
    let question = async {
        if let Some(window) = window {
            window.await;
        }
        pending::<Infallible>().await
    };
    tokio::select! {
        biased;
        done = work => done,
        never = question => match never {},
    }
}
