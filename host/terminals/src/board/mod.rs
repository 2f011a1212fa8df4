//! The board: which terminals are shown and to whom, and who learns what users do there.

pub(crate) mod board_terminal;
mod socket_server;
mod user_events;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use futures_util::future::BoxFuture;
use jaato_log::Log;
use jaato_session::{Cancel, EventEmitter, UserAsker};
use jaato_types::terminal::{TerminalScreen, TerminalShowAnswer, TerminalState};
use jaato_types::{Error, ErrorKind, PluginName, SessionId};
use parking_lot::{Mutex, MutexGuard};
use tokio::runtime::Handle;
use tokio::sync::Mutex as AsyncMutex;

use crate::join::{JoinableTerminal, SocketFolders};
use board_terminal::{ScreenContent, ShownTerminal, screen_event};
use socket_server::TerminalServer;
use user_events::{TerminalNewsStream, UnreportedTerminalNews};

/// Maximum number of terminals on the board, each with one screen. No machine can use more.
const TERMINALS_MAX: usize = 1024;

/// How long a program may take to read the user's input before the user sees that it does not read.
pub(crate) const TYPE_MAX: Duration = Duration::from_secs(1);

/// Maximum number of news streams for one plugin of a session: one for its instance, and one for an
/// instance that is being replaced.
const NEWS_MAX: usize = 4;

/// A session's event receiver and its asker.
#[derive(Clone)]
pub struct SessionAudience {
    /// The session's events.
    pub emitter: EventEmitter,
    /// The user.
    pub asker: Arc<dyn UserAsker>,
}

/// The terminals of sessions, provided by their execution environments.
pub trait SessionTerminals: Send + Sync {
    /// Types these bytes within the time limit. Returns how many the terminal accepted.
    fn write(
        &self,
        session: &SessionId,
        terminal: u64,
        bytes: Vec<u8>,
        longest: Duration,
    ) -> BoxFuture<'static, Result<usize, Error>>;

    /// Asks how a terminal reads and shows input.
    fn state(
        &self,
        session: &SessionId,
        terminal: u64,
    ) -> BoxFuture<'static, Result<TerminalState, Error>>;

    /// Returns a token that is cancelled when this plugin's terminal has ended, or `None` if the
    /// plugin has no such terminal.
    fn terminal_end(
        &self,
        session: &SessionId,
        plugin: &PluginName,
        terminal: u64,
    ) -> Option<Cancel>;
}

/// The terminals that users may see.
pub struct SharedTerminals {
    state: Mutex<SharedTerminalsState>,
    runtime: Handle,
    sessions: OnceLock<Arc<dyn SessionTerminals>>,
    /// Where users join, or `None` if joining is disabled.
    door: Option<SocketFolders>,
    server: Mutex<JoinAvailability>,
    log: Log,
    /// Held during a secret question, so that a user sees one at a time.
    pub(crate) asking: AsyncMutex<()>,
}

/// Whether users can join.
#[derive(Default)]
enum JoinAvailability {
    /// Nothing has been shown yet.
    #[default]
    NotYet,
    On(TerminalServer),
    /// Joining failed, or has ended.
    Off,
}

#[derive(Default)]
struct SharedTerminalsState {
    audiences: HashMap<SessionId, SessionAudience>,
    shown: BTreeMap<(SessionId, u64), Arc<ShownTerminal>>,
    news: Vec<TerminalNewsReader>,
}

/// A plugin that follows what users do.
struct TerminalNewsReader {
    session: SessionId,
    plugin: PluginName,
    news: Weak<UnreportedTerminalNews>,
}

/// A user who looks at a terminal. Dropping it leaves the terminal.
pub(crate) struct TerminalViewer {
    board: Arc<SharedTerminals>,
    pub(crate) shown: Arc<ShownTerminal>,
    types: bool,
}

impl SharedTerminals {
    /// Creates an empty board.
    pub fn new(runtime: Handle, door: Option<SocketFolders>, log: Log) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::default(),
            runtime,
            sessions: OnceLock::new(),
            door,
            server: Mutex::default(),
            log,
            asking: AsyncMutex::default(),
        })
    }

    /// Sets the provider of the terminals.
    pub fn set_sessions(&self, sessions: Arc<dyn SessionTerminals>) {
        // It is set only once.
        let _ = self.sessions.set(sessions);
    }

    /// Registers a session's event receiver and asker.
    pub fn add_session(&self, session: &SessionId, audience: SessionAudience) {
        self.lock_state().audiences.insert(session.clone(), audience);
    }

    /// Removes a session's terminals from the board.
    pub fn remove_session(&self, session: &SessionId) {
        let ended: Vec<_> = {
            let mut state = self.lock_state();
            state.audiences.remove(session);
            state.news.retain(|reader| reader.session != *session);
            state.shown.extract_if(.., |(owner, _), _| owner == session).collect()
        };
        ended.iter().for_each(|(_, shown)| shown.mark_ended());
    }

    /// Returns a session's event receiver and asker.
    pub(crate) fn audience(&self, session: &SessionId) -> Option<SessionAudience> {
        self.lock_state().audiences.get(session).cloned()
    }

    /// Shows a screen. `over` is cancelled once the terminal has ended. The screen is then only
    /// reported as an event.
    ///
    /// # Errors
    /// `limit_reached` if there are too many.
    pub(crate) fn show_screen(
        self: &Arc<Self>,
        session: &SessionId,
        plugin: &PluginName,
        over: &Cancel,
        (screen, ansi): (TerminalScreen, String),
    ) -> Result<TerminalShowAnswer, Error> {
        let key = (session.clone(), screen.terminal);
        let (is_alive, number) = (screen.is_alive, screen.terminal);
        let mut state = self.lock_state();
        let emitter = state.audiences.get(session).map(|audience| audience.emitter.clone());
        if over.is_cancelled() && !state.shown.contains_key(&key) {
            drop(state);
            if let Some(emitter) = emitter.filter(|_| !is_alive) {
                emitter.emit(screen_event(plugin, &screen));
            }
            return Ok(TerminalShowAnswer::default());
        }
        let picture = Arc::new(ScreenContent { screen, ansi, is_last: false });
        let shown = match state.shown.get(&key) {
            Some(shown) => {
                let shown = Arc::clone(shown);
                drop(state);
                shown.set_screen(picture);
                shown
            }
            None if state.shown.len() >= TERMINALS_MAX => {
                let text = format!("{TERMINALS_MAX} terminals are already shown");
                return Err(Error::new(ErrorKind::LimitReached, text).with_hint("close some"));
            }
            None => {
                let place = (session.clone(), number, plugin.clone());
                let (over, runtime) = (over.clone(), self.runtime.clone());
                let new = ShownTerminal::new(place, picture, over, emitter, runtime);
                state.shown.insert(key, Arc::clone(&new));
                drop(state);
                new.report_screen();
                new
            }
        };
        if !is_alive {
            shown.over.cancel();
        }
        self.start_server();
        Ok(TerminalShowAnswer { watchers: shown.watchers() })
    }

    /// Names a session's terminals with their commands.
    pub fn terminal_names(&self, session: &SessionId) -> Vec<String> {
        let state = self.lock_state();
        let shown = state.shown.iter().filter(|((owner, _), _)| owner == session);
        let listed = shown.map(|(_, shown)| shown.list_entry());
        let alive = listed.filter(|it| it.is_alive);
        alive.map(|it| format!("terminal {} ({})", it.name, it.command)).collect()
    }

    /// Removes an ended terminal.
    pub fn remove_terminal(&self, session: &SessionId, number: u64) {
        let ended = self.lock_state().shown.remove(&(session.clone(), number));
        if let Some(shown) = ended {
            shown.mark_ended();
        }
    }

    /// Opens a stream of users' actions in a plugin's terminals. It begins with the users who
    /// already look at them.
    ///
    /// # Errors
    /// `limit_reached` if the plugin has too many.
    pub(crate) fn open_user_actions(
        &self,
        session: &SessionId,
        plugin: &PluginName,
    ) -> Result<TerminalNewsStream, Error> {
        let news = Arc::new(UnreportedTerminalNews::default());
        let mut state = self.lock_state();
        state.news.retain(|reader| reader.news.strong_count() > 0);
        let own = state.news.iter().filter(|it| it.session == *session && it.plugin == *plugin);
        if own.count() >= NEWS_MAX {
            let text = format!("plugin `{plugin}` has {NEWS_MAX} streams of its terminals open");
            return Err(Error::new(ErrorKind::LimitReached, text).with_hint("one is enough"));
        }
        for shown in state.shown.values() {
            if shown.session == *session && shown.plugin == *plugin && shown.watchers() > 0 {
                news.set_watchers(shown.number, shown.watchers());
            }
        }
        let (session, plugin) = (session.clone(), plugin.clone());
        state.news.push(TerminalNewsReader { session, plugin, news: Arc::downgrade(&news) });
        Ok(TerminalNewsStream(news))
    }

    /// Lists the terminals.
    pub(crate) fn list_terminals(&self) -> Vec<JoinableTerminal> {
        self.lock_state().shown.values().map(|shown| shown.list_entry()).collect()
    }

    /// Finds a shown terminal.
    pub(crate) fn find_terminal(
        &self,
        session: &SessionId,
        number: u64,
    ) -> Option<Arc<ShownTerminal>> {
        self.lock_state().shown.get(&(session.clone(), number)).cloned()
    }

    /// Lets a user look at a terminal, and type there if `types` is set.
    pub(crate) fn attach_viewer(
        self: &Arc<Self>,
        shown: Arc<ShownTerminal>,
        types: bool,
    ) -> TerminalViewer {
        let watchers = shown.add_watcher(types);
        let look = TerminalViewer { board: Arc::clone(self), shown, types };
        look.report_watchers(watchers);
        look
    }

    /// Types the user's input, and tells the plugin and the session that it happened, and how much
    /// of it the terminal showed. Hidden input may be a password, so not even its length is
    /// reported.
    ///
    /// # Errors
    /// `unavailable` if the program does not read it in time. The rest is never typed.
    pub(crate) async fn type_into(
        &self,
        shown: &Arc<ShownTerminal>,
        bytes: Vec<u8>,
        longest: Duration,
    ) -> Result<(), Error> {
        let sessions = self.sessions()?;
        // Ask before typing, because the state at that time matters. An unknown state counts as
        // hidden.
        let state = sessions.state(&shown.session, shown.number).await;
        let is_shown = state.is_ok_and(|state| state.echoes == Some(true));
        let length = bytes.len();
        // The plugin learns of the input before the program can react, because the reaction may be
        // visible before the number of accepted bytes is known.
        for news in self.news_readers(shown) {
            news.add_input(shown.number, 0);
        }
        let taken = sessions.write(&shown.session, shown.number, bytes, longest).await?;
        if taken > 0 {
            let told = if is_shown { taken as u64 } else { 0 };
            shown.report_typing(told);
            for news in self.news_readers(shown) {
                news.add_input(shown.number, told);
            }
        }
        if taken < length { Err(unread_input_error()) } else { Ok(()) }
    }

    /// Types into a terminal without reporting it.
    ///
    /// # Errors
    /// `unavailable` if the program does not read it.
    pub(crate) async fn write(
        &self,
        session: &SessionId,
        number: u64,
        bytes: Vec<u8>,
    ) -> Result<(), Error> {
        let length = bytes.len();
        let taken = self.sessions()?.write(session, number, bytes, TYPE_MAX).await?;
        if taken < length { Err(unread_input_error()) } else { Ok(()) }
    }

    /// Returns the provider of the terminals.
    pub(crate) fn sessions(&self) -> Result<&Arc<dyn SessionTerminals>, Error> {
        let none = || Error::new(ErrorKind::Unavailable, "this host has no terminals");
        self.sessions.get().ok_or_else(none)
    }

    /// Returns true if users can join.
    pub(crate) fn is_joinable(&self) -> bool {
        matches!(&*self.lock_server(), JoinAvailability::On(_))
    }

    /// Stops accepting users and tells the connected ones that it is over.
    pub async fn close(&self) {
        let before = std::mem::replace(&mut *self.lock_server(), JoinAvailability::Off);
        if let JoinAvailability::On(server) = before {
            server.close().await;
        }
    }

    /// Begins to listen, with the first terminal.
    fn start_server(self: &Arc<Self>) {
        let mut server = self.lock_server();
        let (Some(door), JoinAvailability::NotYet) = (&self.door, &*server) else { return };
        *server = match TerminalServer::start(door, Arc::downgrade(self), &self.runtime) {
            Ok(server) => JoinAvailability::On(server),
            Err(error) => {
                self.log.write_line(1, "host", &format!("terminals cannot be joined: {error}"));
                JoinAvailability::Off
            }
        };
    }

    fn news_readers(&self, shown: &ShownTerminal) -> Vec<Arc<UnreportedTerminalNews>> {
        let state = self.lock_state();
        let own =
            |it: &&TerminalNewsReader| it.session == shown.session && it.plugin == shown.plugin;
        state.news.iter().filter(own).filter_map(|reader| reader.news.upgrade()).collect()
    }

    fn lock_server(&self) -> MutexGuard<'_, JoinAvailability> {
        self.server.lock()
    }

    fn lock_state(&self) -> MutexGuard<'_, SharedTerminalsState> {
        self.state.lock()
    }
}

fn unread_input_error() -> Error {
    Error::new(ErrorKind::Unavailable, "the program does not read its input")
        .with_hint("Ctrl-C interrupts it and discards its unread input")
}

impl TerminalViewer {
    fn report_watchers(&self, watchers: u32) {
        for news in self.board.news_readers(&self.shown) {
            news.set_watchers(self.shown.number, watchers);
        }
    }
}

impl Drop for TerminalViewer {
    fn drop(&mut self) {
        let watchers = self.shown.remove_watcher(self.types);
        self.report_watchers(watchers);
    }
}
