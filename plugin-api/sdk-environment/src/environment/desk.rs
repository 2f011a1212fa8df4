//! The streams, running programs, terminals and uploads of an environment, by number.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use jaato_plugin_sdk::Home;
use jaato_types::execution::EnvironmentFacts;
use jaato_types::{Error, ErrorKind, Result};
use parking_lot::Mutex;

use super::background::Background;
use super::held::Held;
use super::shell::Shell;
use super::streams::{FileSink, NextFrame};
use super::terminals::Terminals;
use super::traits::ExecutionEnvironment;

/// The most streams, programs, terminals and files that an environment has open at a time.
pub(super) const OPEN_MAX: usize = 1024;

/// The program type of an environment.
pub(super) type ProgramOf<E> = <<E as ExecutionEnvironment>::Shell as Shell>::Program;
type EventsOf<E> = <<E as ExecutionEnvironment>::Shell as Shell>::Events;
type TerminalOf<E> = <<E as ExecutionEnvironment>::Terminals as Terminals>::Terminal;
type TerminalEventsOf<E> = <<E as ExecutionEnvironment>::Terminals as Terminals>::Events;
type FilesOf<E> = <E as ExecutionEnvironment>::Files;

/// An open stream, program, terminal or upload.
pub(super) enum Open<E: ExecutionEnvironment> {
    /// A program of a call.
    Program { program: ProgramOf<E>, events: Held<EventsOf<E>> },
    /// A terminal.
    Terminal { terminal: TerminalOf<E>, events: Held<TerminalEventsOf<E>> },
    /// A file read, a tree walk or a search.
    Stream(Held<Box<dyn NextFrame<FilesOf<E>>>>),
    /// A file write.
    Writer(Held<FileSink<FilesOf<E>>>),
}

/// The open streams, programs, terminals and files of one instance's environment.
pub(super) struct Desk<E: ExecutionEnvironment> {
    pub(super) home: Home,
    ready: Mutex<Option<Arc<E>>>,
    /// The deadline of a command that sets none itself; 0 for no deadline.
    shell_timeout_ms: AtomicU64,
    numbers: AtomicU64,
    open: Mutex<BTreeMap<u64, Arc<Open<E>>>>,
    pub(super) background: Background<ProgramOf<E>>,
}

impl<E: ExecutionEnvironment> Desk<E> {
    pub(super) fn new(home: Home) -> Self {
        Self {
            home,
            ready: Mutex::default(),
            shell_timeout_ms: AtomicU64::new(0),
            numbers: AtomicU64::new(1),
            open: Mutex::default(),
            background: Background::default(),
        }
    }

    /// Returns the environment.
    ///
    /// # Errors
    /// `unavailable` if it was not set up, or was taken down.
    pub(super) fn environment(&self) -> Result<Arc<E>> {
        self.ready.lock().clone().ok_or_else(|| {
            Error::new(ErrorKind::Unavailable, "the execution environment is not set up")
        })
    }

    /// Stores an environment that is set up, and returns it.
    pub(super) fn put(&self, environment: E) -> Arc<E> {
        let environment = Arc::new(environment);
        *self.ready.lock() = Some(Arc::clone(&environment));
        environment
    }

    /// Stores the facts that calls need later.
    pub(super) fn keep_to(&self, facts: &EnvironmentFacts) {
        self.shell_timeout_ms.store(facts.shell_timeout_ms, Relaxed);
    }

    /// Returns the deadline of a command that sets none itself.
    pub(super) fn shell_timeout_ms(&self) -> Option<u64> {
        Some(self.shell_timeout_ms.load(Relaxed)).filter(|&milliseconds| milliseconds > 0)
    }

    /// Removes and returns the environment and everything that it has open.
    pub(super) fn take(&self) -> (Option<Arc<E>>, Vec<Arc<Open<E>>>) {
        let open = std::mem::take(&mut *self.open.lock());
        (self.ready.lock().take(), open.into_values().collect())
    }

    /// Returns an unused number.
    pub(super) fn number(&self) -> u64 {
        self.numbers.fetch_add(1, Relaxed)
    }

    /// Returns an error if [`OPEN_MAX`] items are open.
    pub(super) fn has_room(&self) -> Result<()> {
        if self.open.lock().len() < OPEN_MAX {
            return Ok(());
        }
        let text = format!("the environment has {OPEN_MAX} streams and programs open");
        Err(Error::new(ErrorKind::LimitReached, text).with_hint("close some of them").temporary())
    }

    /// Adds an open item and returns its number.
    pub(super) fn add(&self, opened: Open<E>) -> u64 {
        let number = self.number();
        self.open.lock().insert(number, Arc::new(opened));
        number
    }

    /// Returns the open item with this number.
    pub(super) fn find(&self, number: u64) -> Option<Arc<Open<E>>> {
        self.open.lock().get(&number).cloned()
    }

    /// Removes an open item. It ends when no call uses it.
    pub(super) fn close(&self, number: u64) {
        let closed = self.open.lock().remove(&number);
        drop(closed);
    }
}
