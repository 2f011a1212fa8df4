//! The streams, running programs, terminals and uploads of an environment, by number.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use jaato_plugin_sdk::Home;
use jaato_types::execution::EnvironmentFacts;
use jaato_types::{Error, ErrorKind, Result};
use parking_lot::Mutex;

use super::background::BackgroundPrograms;
use super::exclusive_value::ExclusiveValue;
use super::shell::Shell;
use super::streams::{FileSink, NextFrame};
use super::terminals::Terminals;
use super::traits::ExecutionEnvironment;

/// The maximum number of streams, programs, terminals and files that an environment has open at a
/// time.
pub(super) const OPEN_MAX: usize = 1024;

/// The program type of an environment.
pub(super) type EnvironmentProgram<E> = <<E as ExecutionEnvironment>::Shell as Shell>::Program;
type EnvironmentProgramEvents<E> = <<E as ExecutionEnvironment>::Shell as Shell>::Events;
type EnvironmentTerminal<E> = <<E as ExecutionEnvironment>::Terminals as Terminals>::Terminal;
type EnvironmentTerminalEvents<E> = <<E as ExecutionEnvironment>::Terminals as Terminals>::Events;
type EnvironmentFiles<E> = <E as ExecutionEnvironment>::Files;

/// An open stream, program, terminal or upload.
pub(super) enum OpenEnvironmentHandle<E: ExecutionEnvironment> {
    /// A program of a call.
    Program { program: EnvironmentProgram<E>, events: ExclusiveValue<EnvironmentProgramEvents<E>> },
    /// A terminal.
    Terminal {
        terminal: EnvironmentTerminal<E>,
        events: ExclusiveValue<EnvironmentTerminalEvents<E>>,
    },
    /// A file read, a tree walk or a search.
    Stream(ExclusiveValue<Box<dyn NextFrame<EnvironmentFiles<E>>>>),
    /// A file write.
    Writer(ExclusiveValue<FileSink<EnvironmentFiles<E>>>),
}

/// The open streams, programs, terminals and files of one instance's environment.
pub(super) struct EnvironmentHandleTable<E: ExecutionEnvironment> {
    pub(super) home: Home,
    ready: Mutex<Option<Arc<E>>>,
    /// The deadline of a command that sets none itself; 0 for no deadline.
    shell_timeout_ms: AtomicU64,
    numbers: AtomicU64,
    open: Mutex<BTreeMap<u64, Arc<OpenEnvironmentHandle<E>>>>,
    pub(super) background: BackgroundPrograms<EnvironmentProgram<E>>,
}

impl<E: ExecutionEnvironment> EnvironmentHandleTable<E> {
    pub(super) fn new(home: Home) -> Self {
        Self {
            home,
            ready: Mutex::default(),
            shell_timeout_ms: AtomicU64::new(0),
            numbers: AtomicU64::new(1),
            open: Mutex::default(),
            background: BackgroundPrograms::default(),
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
    pub(super) fn set_environment(&self, environment: E) -> Arc<E> {
        let environment = Arc::new(environment);
        *self.ready.lock() = Some(Arc::clone(&environment));
        environment
    }

    /// Stores the facts that calls need later.
    pub(super) fn store_facts(&self, facts: &EnvironmentFacts) {
        self.shell_timeout_ms.store(facts.shell_timeout_ms, Relaxed);
    }

    /// Returns the deadline of a command that sets none itself.
    pub(super) fn shell_timeout_ms(&self) -> Option<u64> {
        Some(self.shell_timeout_ms.load(Relaxed)).filter(|&milliseconds| milliseconds > 0)
    }

    /// Removes and returns the environment and everything that it has open.
    pub(super) fn take_all(&self) -> (Option<Arc<E>>, Vec<Arc<OpenEnvironmentHandle<E>>>) {
        let open = std::mem::take(&mut *self.open.lock());
        (self.ready.lock().take(), open.into_values().collect())
    }

    /// Returns an unused number.
    pub(super) fn unused_number(&self) -> u64 {
        self.numbers.fetch_add(1, Relaxed)
    }

    /// Returns an error if [`OPEN_MAX`] items are open.
    pub(super) fn check_has_room(&self) -> Result<()> {
        if self.open.lock().len() < OPEN_MAX {
            return Ok(());
        }
        let text = format!("the environment has {OPEN_MAX} streams and programs open");
        Err(Error::new(ErrorKind::LimitReached, text).with_hint("close some of them").temporary())
    }

    /// Adds an open item and returns its number.
    pub(super) fn add_handle(&self, opened: OpenEnvironmentHandle<E>) -> u64 {
        let number = self.unused_number();
        self.open.lock().insert(number, Arc::new(opened));
        number
    }

    /// Returns the open item with this number.
    pub(super) fn find_handle(&self, number: u64) -> Option<Arc<OpenEnvironmentHandle<E>>> {
        self.open.lock().get(&number).cloned()
    }

    /// Removes an open item. It ends when no call uses it.
    pub(super) fn close_handle(&self, number: u64) {
        let closed = self.open.lock().remove(&number);
        drop(closed);
    }
}
