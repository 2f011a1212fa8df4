//! The sessions that live, by id: what services reach of the one for which a plugin is called.

use std::collections::HashMap;
use std::sync::OnceLock;

use futures_util::future::BoxFuture;
use jaato_session::{AnsweringModel, SessionHandle};
use jaato_types::count::Count;
use jaato_types::notify::NOTIFICATIONS_PER_MINUTE_MAX;
use jaato_types::{Error, ErrorKind, PluginName, SessionId};
use parking_lot::Mutex;

use crate::rate::Rate;

/// Makes what sessions are made of; whoever wires the host together does.
pub trait SessionMaker: Send + Sync {
    /// Makes a model ready that a plugin names, for a request of that session.
    ///
    /// # Errors
    /// `configuration` for a name that stands for no model, and a provider that cannot be used.
    fn model(&self, name: &str, session: &SessionId) -> Result<AnsweringModel, Error>;

    /// Lets the provider of a model count, on behalf of a session.
    ///
    /// # Errors
    /// As [`SessionMaker::model`].
    fn count(&self, model: &str, asked: &Count, session: &SessionId) -> Result<Counting, Error>;
}

/// A count that a provider is asked for.
pub struct Counting {
    /// `provider/model`.
    pub model: String,
    /// What the provider says.
    pub tokens: BoxFuture<'static, Result<u64, Error>>,
}

/// The sessions of a host.
#[derive(Default)]
pub struct Sessions {
    maker: OnceLock<Box<dyn SessionMaker>>,
    live: Mutex<HashMap<SessionId, Live>>,
}

struct Live {
    handle: SessionHandle,
    /// What each plugin has notified.
    notified: HashMap<PluginName, Rate>,
}

impl Sessions {
    /// Takes what makes sessions, once.
    pub fn made_by(&self, maker: Box<dyn SessionMaker>) {
        // There is but one.
        let _ = self.maker.set(maker);
    }

    /// Makes a model ready, for a request of a session.
    ///
    /// # Errors
    /// As [`SessionMaker::model`].
    pub fn model(&self, name: &str, session: &SessionId) -> Result<AnsweringModel, Error> {
        self.maker()?.model(name, session)
    }

    /// Lets the provider of a model count.
    ///
    /// # Errors
    /// As [`SessionMaker::count`].
    pub fn count(
        &self,
        model: &str,
        asked: &Count,
        session: &SessionId,
    ) -> Result<Counting, Error> {
        self.maker()?.count(model, asked, session)
    }

    fn maker(&self) -> Result<&dyn SessionMaker, Error> {
        let none = || Error::new(ErrorKind::Unavailable, "this host makes no sessions");
        self.maker.get().map(Box::as_ref).ok_or_else(none)
    }

    /// Takes a session that begins.
    pub fn enter(&self, id: &SessionId, handle: SessionHandle) {
        let live = Live { handle, notified: HashMap::new() };
        self.live.lock().insert(id.clone(), live);
    }

    /// Forgets a session that is over.
    pub fn leave(&self, id: &SessionId) {
        self.live.lock().remove(id);
    }

    /// Finds a session.
    ///
    /// # Errors
    /// `unavailable` where there is none: a host-wide instance asks outside of calls, or the
    /// session is over.
    pub fn find(&self, id: &SessionId) -> Result<SessionHandle, Error> {
        let found = self.live.lock().get(id).map(|live| live.handle.clone());
        found.ok_or_else(|| {
            let text = "there is no session to act in";
            Error::new(ErrorKind::Unavailable, text)
                .with_hint("ask within a call: it is the call's session that is meant")
        })
    }

    /// Counts a notification of a plugin; false where it has sent too many.
    pub fn may_notify(&self, id: &SessionId, plugin: &PluginName) -> bool {
        let mut live = self.live.lock();
        let Some(live) = live.get_mut(id) else { return false };
        let rate = live.notified.entry(plugin.clone()).or_default();
        rate.take_in_minute(NOTIFICATIONS_PER_MINUTE_MAX)
    }
}
