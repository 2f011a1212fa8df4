//! The open sessions by id, as the services of their plugins' calls access them.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use futures_util::future::BoxFuture;
use jaato_registry::INSTRUCTIONS_BYTES_MAX;
use jaato_session::{
    AnsweringModel, DeadlineHold, EventSink, Session, SessionHandle, SharedSessionState,
};
use jaato_types::child::{CHILD_DEPTH_MAX, CHILDREN_MAX, ChildOpen};
use jaato_types::count::TokenCountInput;
use jaato_types::notify::NOTIFICATIONS_PER_MINUTE_MAX;
use jaato_types::tools_set::{ToolsSet, ToolsSetAnswer};
use jaato_types::{Error, ErrorKind, PluginName, SessionId, ToolName};
use parking_lot::Mutex;

use crate::rate::RequestRateLimit;

/// Creates the parts of sessions. Implemented where the host is assembled.
pub trait SessionMaker: Send + Sync {
    /// Prepares a model that a plugin names, for a request of that session.
    ///
    /// # Errors
    /// `configuration` if the name matches no model, or the provider cannot be used.
    fn answering_model(&self, name: &str, session: &SessionId) -> Result<AnsweringModel, Error>;

    /// Asks a model's provider to count tokens, on behalf of a session.
    ///
    /// # Errors
    /// As [`SessionMaker::answering_model`].
    fn token_count_request(
        &self,
        model: &str,
        asked: &TokenCountInput,
        session: &SessionId,
    ) -> Result<TokenCountRequest, Error>;

    /// Starts a session with what its opener lends. Its events go to the user, the ledger and
    /// `follower`.
    ///
    /// # Errors
    /// `invalid_arguments` if a tool is not the opener's, or why the session cannot be started.
    fn open(
        &self,
        opener: &SessionId,
        lent: SharedSessionState,
        asked: &ChildOpen,
        follower: Arc<dyn EventSink>,
    ) -> Result<Session, Error>;

    /// Sets the tools of a plugin instance, for a session or, without one, for the process.
    ///
    /// # Errors
    /// `limit_reached` if the last change was too recent.
    fn set_tools(
        &self,
        plugin: &PluginName,
        owner: Option<&SessionId>,
        set: ToolsSet,
    ) -> Result<ToolsSetAnswer, Error>;

    /// Cleans up a finished session.
    fn close(&self, session: SessionId) -> BoxFuture<'static, ()>;
}

/// A session that begins.
pub struct SessionEntry {
    /// The session's handle.
    pub handle: SessionHandle,
    /// Receives the events for its user.
    pub events: Arc<dyn EventSink>,
    /// The session that opened it, if any.
    pub opener: Option<SessionId>,
    /// Its displayed name, if another session opened it.
    pub agent: Option<String>,
}

/// A token count requested from a provider.
pub struct TokenCountRequest {
    /// `provider/model`.
    pub model: String,
    /// The provider's answer.
    pub tokens: BoxFuture<'static, Result<u64, Error>>,
}

/// Maximum number of sessions with instructions that arrived before the session entered. If a
/// session never enters, its instructions remain.
const EARLY_MAX: usize = 64;

/// The sessions of a host.
#[derive(Default)]
pub struct OpenSessions {
    maker: OnceLock<Box<dyn SessionMaker>>,
    live: Mutex<HashMap<SessionId, LiveSession>>,
    /// Plugins' instructions about tools set for sessions that have not yet entered.
    early: Mutex<HashMap<SessionId, BTreeMap<PluginName, String>>>,
}

struct LiveSession {
    entered: SessionEntry,
    /// Number of openers above it.
    depth: u32,
    /// Number of children below the root session.
    family: Arc<AtomicUsize>,
    /// The notifications of each plugin.
    notified: HashMap<PluginName, RequestRateLimit>,
}

impl OpenSessions {
    /// Sets the session maker, once.
    pub fn set_maker(&self, maker: Box<dyn SessionMaker>) {
        // It is set only once.
        let _ = self.maker.set(maker);
    }

    /// Prepares a model for a request of a session.
    ///
    /// # Errors
    /// As [`SessionMaker::answering_model`].
    pub fn answering_model(
        &self,
        name: &str,
        session: &SessionId,
    ) -> Result<AnsweringModel, Error> {
        self.session_maker()?.answering_model(name, session)
    }

    /// Asks a model's provider to count tokens.
    ///
    /// # Errors
    /// As [`SessionMaker::token_count_request`].
    pub fn token_count_request(
        &self,
        model: &str,
        asked: &TokenCountInput,
        session: &SessionId,
    ) -> Result<TokenCountRequest, Error> {
        self.session_maker()?.token_count_request(model, asked, session)
    }

    fn session_maker(&self) -> Result<&dyn SessionMaker, Error> {
        let none = || Error::new(ErrorKind::Unavailable, "this host does not create sessions");
        self.maker.get().map(Box::as_ref).ok_or_else(none)
    }

    /// Registers a session that begins.
    pub fn register_session(&self, id: &SessionId, entered: SessionEntry) {
        let mut live = self.live.lock();
        for (plugin, text) in self.early.lock().remove(id).unwrap_or_default() {
            // The session has just begun, so this cannot fail.
            let _ = entered.handle.set_instructions(&plugin, &text);
        }
        let opener = entered.opener.as_ref().and_then(|opener| live.get(opener));
        let (depth, family) = match opener {
            Some(opener) => (opener.depth + 1, Arc::clone(&opener.family)),
            None => (0, Arc::default()),
        };
        family.fetch_add(usize::from(depth > 0), Relaxed);
        live.insert(id.clone(), LiveSession { entered, depth, family, notified: HashMap::new() });
    }

    /// Forgets a finished session.
    pub fn forget_session(&self, id: &SessionId) {
        let gone = self.live.lock().remove(id);
        if let Some(LiveSession { depth: 1.., family, .. }) = gone {
            family.fetch_sub(1, Relaxed);
        }
    }

    /// Finds a session.
    ///
    /// # Errors
    /// `unavailable` if there is none, because a host-wide instance asks outside of calls, or the
    /// session is over.
    pub fn find(&self, id: &SessionId) -> Result<SessionHandle, Error> {
        let found = self.live.lock().get(id).map(|live| live.entered.handle.clone());
        found.ok_or_else(|| {
            let text = "there is no session to act in";
            Error::new(ErrorKind::Unavailable, text)
                .with_hint("ask within a call: the request applies to the session of the call")
        })
    }

    /// Returns the receiver of events for a session's user.
    pub fn events_of(&self, id: &SessionId) -> Option<Arc<dyn EventSink>> {
        self.live.lock().get(id).map(|live| Arc::clone(&live.entered.events))
    }

    /// Returns the displayed name of a session that another one opened.
    pub fn agent_name(&self, id: &SessionId) -> Option<String> {
        self.live.lock().get(id)?.entered.agent.clone()
    }

    /// Opens a child of a session.
    ///
    /// # Errors
    /// `limit_reached` if it is nested too deeply or there are too many children, otherwise as
    /// [`SessionMaker::open`].
    pub fn open(
        &self,
        opener: &SessionId,
        asked: &ChildOpen,
        hold: &DeadlineHold,
        follower: Arc<dyn EventSink>,
    ) -> Result<Session, Error> {
        let lent = self.find(opener)?.share_state(hold)?;
        let (depth, children) = {
            let live = self.live.lock();
            let opener = live.get(opener);
            opener.map_or((0, 0), |it| (it.depth, it.family.load(Relaxed)))
        };
        let limit = |text: String| Err(Error::new(ErrorKind::LimitReached, text));
        if depth >= CHILD_DEPTH_MAX {
            return limit(format!("sessions can be nested at most {CHILD_DEPTH_MAX} deep"));
        }
        if children >= CHILDREN_MAX {
            return limit(format!("{CHILDREN_MAX} child sessions are already open"));
        }
        if !ToolName::from(asked.name.as_str()).is_valid() {
            let text = "a child's name is 1 to 64 of a-z, A-Z, 0-9, `-`, `_`";
            return Err(Error::new(ErrorKind::InvalidArguments, text));
        }
        self.session_maker()?.open(opener, lent, asked, follower)
    }

    /// Sets the tools of a plugin instance, and passes its instructions to the models of the
    /// sessions.
    ///
    /// # Errors
    /// As [`SessionMaker::set_tools`].
    pub fn set_tools(
        &self,
        plugin: &PluginName,
        owner: Option<&SessionId>,
        mut set: ToolsSet,
    ) -> Result<ToolsSetAnswer, Error> {
        let instructions = set.instructions.take();
        let answer = self.session_maker()?.set_tools(plugin, owner, set)?;
        let Some(text) = instructions.filter(|text| !text.trim().is_empty()) else {
            return Ok(answer);
        };
        if text.len() > INSTRUCTIONS_BYTES_MAX {
            let text = format!("instructions have at most {INSTRUCTIONS_BYTES_MAX} bytes");
            return Err(Error::new(ErrorKind::InvalidArguments, text));
        }
        let live = self.live.lock();
        if let Some(owner) = owner.filter(|owner| !live.contains_key(*owner)) {
            // Plugins open while their session is being created, so one may be ready first.
            let mut early = self.early.lock();
            if early.len() < EARLY_MAX || early.contains_key(owner) {
                early.entry(owner.clone()).or_default().insert(plugin.clone(), text);
            }
            return Ok(answer);
        }
        let all = live.iter().filter(|(id, _)| owner.is_none_or(|owner| owner == *id));
        for (_, live) in all {
            // A finished session needs no instructions.
            let _ = live.entered.handle.set_instructions(plugin, &text);
        }
        Ok(answer)
    }

    /// Shows each session with a model its own news.
    pub fn update_news(&self, news: impl Fn(&SessionId) -> Vec<String>) {
        let live = self.live.lock();
        let all = live.iter().map(|(id, live)| (id.clone(), live.entered.handle.clone()));
        let all: Vec<(SessionId, SessionHandle)> = all.collect();
        drop(live);
        for (id, handle) in all.into_iter().filter(|(_, handle)| handle.has_model()) {
            // A finished session needs no news.
            news(&id).into_iter().for_each(|line| _ = handle.show_notice(line));
        }
    }

    /// Cleans up a finished session.
    pub async fn close(&self, id: &SessionId) {
        let Ok(maker) = self.session_maker() else { return };
        maker.close(id.clone()).await;
    }

    /// Counts a plugin's notification. Returns false if it has sent too many.
    pub fn may_notify(&self, id: &SessionId, plugin: &PluginName) -> bool {
        let mut live = self.live.lock();
        let Some(live) = live.get_mut(id) else { return false };
        let rate = live.notified.entry(plugin.clone()).or_default();
        rate.take_in_minute(NOTIFICATIONS_PER_MINUTE_MAX)
    }
}
