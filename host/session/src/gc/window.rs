//! How large the context window is: what the configuration says, else what the provider says when
//! it is asked, else what its description says, else a guess.
//!
//! The question is asked once, beside a request, when the window begins to matter; no turn fails
//! for want of an answer. Only before something is left out on a guess the answer is waited for,
//! shortly.

use std::convert::Infallible;
use std::future::{Future, pending};

use futures_util::future::{BoxFuture, FutureExt, Shared};
use jaato_types::{ModelInfo, Role};

use crate::clock::sleep_while_running;
use crate::{Cancel, Session};

/// Longest wait for what the provider says of the model: before something is left out on a guess,
/// and before the first image.
pub const WINDOW_WAIT_MS: u64 = 2_000;

/// From here on the window matters in a conversation that has begun: half of the smallest window
/// that a model in use has. A single short answer costs no question.
const MATTERS_TOKENS: u64 = 1_024;

/// A first request matters when it fills this part of the window that is assumed.
const MATTERS_PART: u64 = 8;

/// Smallest window that is believed; what is less is a mistake, and nothing would ever fit.
const WINDOW_TOKENS_MIN: u64 = 256;

/// Where the size of the context window comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowOrigin {
    /// The configuration: nobody is asked.
    Configured,
    /// What the provider's description says of the model.
    Described,
    /// Nobody has said it: it is a guess.
    Assumed,
}

/// What the provider says of the model, on its way.
pub(crate) type Told = Shared<BoxFuture<'static, Option<ModelInfo>>>;

/// What a session knows of its window's size.
pub(super) struct WindowState {
    pub(super) origin: WindowOrigin,
    /// The question, once it was asked.
    asked: Option<Told>,
    /// What the provider said.
    pub(super) told: Option<u64>,
    /// Whether the answer was waited for: once is enough.
    waited: bool,
    /// Whether the person was told that it is a guess.
    pub(super) guess_told: bool,
    /// The smallest context that the provider refused as too large.
    refused: Option<u64>,
}

impl WindowState {
    pub(super) fn new(origin: WindowOrigin) -> Self {
        Self { origin, asked: None, told: None, waited: false, guess_told: false, refused: None }
    }

    /// Tells whether nobody has said how large the window is.
    pub(super) fn is_guess(&self) -> bool {
        self.origin == WindowOrigin::Assumed && self.told.is_none()
    }

    /// Returns the question as long as it has no answer, to be polled beside other work.
    pub(super) fn question(&self) -> Option<Told> {
        self.asked.clone().filter(|_| self.told.is_none())
    }
}

impl Session {
    /// Asks for the window when it begins to matter, and takes the answer when it is there.
    pub(super) fn look_at_window(&mut self) {
        let window = &self.gc.window;
        if window.origin != WindowOrigin::Configured && window.asked.is_none() && self.matters() {
            drop(self.ask_about_model());
        }
        self.take_told();
    }

    /// Asks the provider what it knows of the model, once.
    pub(crate) fn ask_about_model(&mut self) -> Told {
        let provider = &self.provider;
        let asked = &mut self.gc.window.asked;
        asked.get_or_insert_with(|| provider.about_model().shared()).clone()
    }

    /// Takes the answer when it is there.
    pub(crate) fn take_told(&mut self) {
        let answer = self.gc.window.asked.clone().and_then(FutureExt::now_or_never);
        let Some(info) = answer.flatten() else { return };
        if let Some(limit) = info.context_limit
            && self.gc.window.origin != WindowOrigin::Configured
        {
            self.take_window(limit);
        }
        self.take_sight(info.accepts.as_ref());
        if let Some(price) = info.price.filter(|_| !self.is_price_configured) {
            self.price = Some(price);
        }
    }

    /// Waits for the window's size, before something is left out on a guess.
    pub(super) async fn wait_for_window(&mut self, cancel: &Cancel) {
        self.look_at_window();
        if !self.gc.window.is_guess() || self.gc.window.waited {
            return;
        }
        if self.gc.window.asked.is_none() {
            return;
        }
        self.gc.window.waited = true;
        self.wait_for_told(cancel).await;
        self.look_at_window();
    }

    /// Waits, shortly, for what the provider says of the model; asks it where nobody has.
    pub(crate) async fn wait_for_told(&mut self, cancel: &Cancel) {
        let told = self.ask_about_model();
        let clock = self.shared.ports.clock.clone();
        tokio::select! {
            biased;
            _ = told => {}
            () = cancel.cancelled() => {}
            () = sleep_while_running(clock, WINDOW_WAIT_MS) => {}
        }
        self.take_told();
    }

    /// What the provider refused is larger than its window, whatever it said before.
    pub(super) fn window_is_smaller_than(&mut self, tokens: u64) {
        self.gc.window.refused = Some(self.gc.window.refused.map_or(tokens, |it| it.min(tokens)));
        self.set_limit(self.gc.limit.min(tokens));
    }

    /// Returns what is to be restored where a refusal had another reason.
    pub(super) fn known_of_window(&self) -> (u64, Option<u64>) {
        (self.gc.limit, self.gc.window.refused)
    }

    /// Takes a refusal back; what the provider said meanwhile stays.
    pub(super) fn restore_window(&mut self, (limit, refused): (u64, Option<u64>)) {
        self.gc.window.refused = refused;
        let told = self.gc.window.told.map(|told| refused.map_or(told, |it| told.min(it)));
        self.set_limit(told.unwrap_or(limit));
    }

    fn matters(&self) -> bool {
        let tokens = self.tokens_in_use();
        let has_begun = self.history.messages().any(|message| message.role == Role::Model);
        let matters = if has_begun { MATTERS_TOKENS } else { self.gc.limit / MATTERS_PART };
        tokens >= matters
    }

    fn take_window(&mut self, limit: u64) {
        if limit < WINDOW_TOKENS_MIN || self.gc.window.told == Some(limit) {
            return;
        }
        self.gc.window.told = Some(limit);
        self.set_limit(self.gc.window.refused.map_or(limit, |refused| limit.min(refused)));
    }

    fn set_limit(&mut self, limit: u64) {
        self.gc.limit = limit;
        self.shared.facts.update(|facts| facts.context_limit = limit);
    }
}

/// Does some work, and polls the question for the window beside it.
pub(super) async fn beside<T>(work: impl Future<Output = T>, window: Option<Told>) -> T {
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
