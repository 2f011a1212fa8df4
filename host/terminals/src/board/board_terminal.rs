//! One terminal on the board: its newest screen, its watchers, and its events.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use jaato_session::{Cancel, EventEmitter};
use jaato_types::terminal::TerminalScreen;
use jaato_types::{Event, PluginName, SessionId};
use parking_lot::{Mutex, MutexGuard};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::join::JoinableTerminal;

/// The minimum time between two screen events, about as fast as a user can follow.
pub(crate) const SCREEN_EVERY: Duration = Duration::from_millis(100);

/// The minimum time between two typing events. A shorter interval would reveal the rhythm of a
/// password.
pub(crate) const TYPED_EVERY: Duration = Duration::from_secs(1);

/// The content of a screen.
#[derive(Debug)]
pub(crate) struct ScreenContent {
    pub(crate) screen: TerminalScreen,
    /// The same as ANSI text.
    pub(crate) ansi: String,
    /// Whether it is the last one.
    pub(crate) is_last: bool,
}

/// A terminal that a plugin has shown.
pub(crate) struct ShownTerminal {
    pub(crate) session: SessionId,
    pub(crate) number: u64,
    pub(crate) plugin: PluginName,
    /// Cancelled when its program or the terminal has ended.
    pub(crate) over: Cancel,
    began: Instant,
    newest: watch::Sender<Arc<ScreenContent>>,
    watchers: AtomicU32,
    typers: AtomicU32,
    emitter: Option<EventEmitter>,
    runtime: Handle,
    told: Mutex<TerminalEventState>,
}

/// The state of the session's events.
#[derive(Default)]
struct TerminalEventState {
    screen: Option<Arc<ScreenContent>>,
    screen_at: Option<Instant>,
    screen_waits: bool,
    /// Bytes of shown input since the last event, or `None` if nothing was typed.
    typed: Option<u64>,
    typed_at: Option<Instant>,
    typed_waits: bool,
}

impl ShownTerminal {
    /// Creates a terminal with its first screen, without emitting an event.
    pub(crate) fn new(
        (session, number, plugin): (SessionId, u64, PluginName),
        picture: Arc<ScreenContent>,
        over: Cancel,
        emitter: Option<EventEmitter>,
        runtime: Handle,
    ) -> Arc<Self> {
        Arc::new(Self {
            session,
            number,
            plugin,
            over,
            began: Instant::now(),
            newest: watch::Sender::new(picture),
            watchers: AtomicU32::new(0),
            typers: AtomicU32::new(0),
            emitter,
            runtime,
            told: Mutex::default(),
        })
    }

    /// Sets the next screen.
    pub(crate) fn set_screen(self: &Arc<Self>, picture: Arc<ScreenContent>) {
        // Ignore a screen that arrives after the end.
        self.newest.send_if_modified(|newest| {
            let is_live = !newest.is_last;
            if is_live {
                *newest = picture;
            }
            is_live
        });
        self.report_screen();
    }

    /// Takes the terminal down and reports its last screen as no longer alive.
    pub(crate) fn mark_ended(&self) {
        let newest = self.newest_screen();
        let screen = TerminalScreen { is_alive: false, ..newest.screen.clone() };
        let last = ScreenContent { screen, ansi: newest.ansi.clone(), is_last: true };
        self.newest.send_replace(Arc::new(last));
        let mut told = self.lock_event_state();
        self.emit_screen(&mut told);
        self.emit_typed(&mut told);
    }

    /// Returns the newest screen.
    pub(crate) fn newest_screen(&self) -> Arc<ScreenContent> {
        Arc::clone(&self.newest.borrow())
    }

    /// Returns a receiver for screens.
    pub(crate) fn subscribe_to_screens(&self) -> watch::Receiver<Arc<ScreenContent>> {
        self.newest.subscribe()
    }

    /// Adds a watcher, who may also type. Returns the number of watchers.
    pub(crate) fn add_watcher(&self, types: bool) -> u32 {
        self.typers.fetch_add(u32::from(types), Relaxed);
        self.watchers.fetch_add(1, Relaxed) + 1
    }

    /// Removes a watcher. Returns the number of watchers.
    pub(crate) fn remove_watcher(&self, types: bool) -> u32 {
        self.typers.fetch_sub(u32::from(types), Relaxed);
        self.watchers.fetch_sub(1, Relaxed) - 1
    }

    pub(crate) fn watchers(&self) -> u32 {
        self.watchers.load(Relaxed)
    }

    pub(crate) fn has_typers(&self) -> bool {
        self.typers.load(Relaxed) > 0
    }

    /// Returns the terminal's entry in a list.
    pub(crate) fn list_entry(&self) -> JoinableTerminal {
        let newest = self.newest_screen();
        let TerminalScreen { name, command, rows, columns, is_alive, .. } = &newest.screen;
        JoinableTerminal {
            session: self.session.to_string(),
            terminal: self.number,
            name: name.clone(),
            plugin: self.plugin.to_string(),
            command: command.clone(),
            rows: *rows,
            columns: *columns,
            age_ms: u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX),
            is_alive: *is_alive,
            watchers: self.watchers(),
        }
    }

    /// Reports to the session that a user typed, and how much of it was shown, at once or together
    /// with further input.
    pub(crate) fn report_typing(self: &Arc<Self>, bytes: u64) {
        let mut told = self.lock_event_state();
        told.typed = Some(told.typed.unwrap_or_default() + bytes);
        match next_event_time(told.typed_at, TYPED_EVERY) {
            None => self.emit_typed(&mut told),
            Some(_) if told.typed_waits => {}
            Some(until) => {
                told.typed_waits = true;
                let own = Arc::clone(self);
                self.runtime.spawn(async move {
                    tokio::time::sleep_until(until).await;
                    let mut told = own.lock_event_state();
                    told.typed_waits = false;
                    own.emit_typed(&mut told);
                });
            }
        }
    }

    /// Reports the screen to the session, at once or when the next event is due.
    pub(crate) fn report_screen(self: &Arc<Self>) {
        let mut told = self.lock_event_state();
        match next_event_time(told.screen_at, SCREEN_EVERY) {
            None => self.emit_screen(&mut told),
            Some(_) if told.screen_waits => {}
            Some(until) => {
                told.screen_waits = true;
                let own = Arc::clone(self);
                self.runtime.spawn(async move {
                    tokio::time::sleep_until(until).await;
                    let mut told = own.lock_event_state();
                    told.screen_waits = false;
                    own.emit_screen(&mut told);
                });
            }
        }
    }

    /// Emits under the lock, so that screens keep their order.
    fn emit_screen(&self, told: &mut TerminalEventState) {
        let newest = self.newest_screen();
        if told.screen.as_ref().is_some_and(|screen| screen.screen == newest.screen) {
            return;
        }
        if let Some(emitter) = &self.emitter {
            emitter.emit(screen_event(&self.plugin, &newest.screen));
        }
        told.screen_at = Some(Instant::now());
        told.screen = Some(newest);
    }

    fn emit_typed(&self, told: &mut TerminalEventState) {
        let Some(bytes) = told.typed.take() else { return };
        told.typed_at = Some(Instant::now());
        if let Some(emitter) = &self.emitter {
            let (source, name) =
                (self.plugin.source().to_owned(), self.newest_screen().screen.name.clone());
            emitter.emit(Event::TerminalTyped { source, name, bytes });
        }
    }

    fn lock_event_state(&self) -> MutexGuard<'_, TerminalEventState> {
        self.told.lock()
    }
}

/// Returns the time until which the next event must wait, or `None` if it does not have to.
fn next_event_time(last: Option<Instant>, every: Duration) -> Option<Instant> {
    last.map(|last| last + every).filter(|until| *until > Instant::now())
}

/// Creates the event of a screen.
pub(crate) fn screen_event(plugin: &PluginName, screen: &TerminalScreen) -> Event {
    Event::TerminalScreen {
        source: plugin.source().to_owned(),
        name: screen.name.clone(),
        command: screen.command.clone(),
        rows: screen.rows,
        columns: screen.columns,
        cursor: screen.cursor,
        is_full_screen: screen.is_full_screen,
        lines: screen.lines.clone(),
        is_alive: screen.is_alive,
    }
}
