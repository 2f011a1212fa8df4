//! What is known of the plugins, and how it is kept up to date while sessions go on.
//!
//! Where plugins are watched, the folders are looked at when a turn begins and a plugin's file before each
//! of its calls: no thread, no delay, and nothing happens while nobody asks for anything. What is found is
//! a new [`Catalog`]; each session goes over to it by its [`views`].
//!
//! Invariant: a file that cannot be used changes nothing but what a person is told.

mod again;
mod catalog;
mod copies;
mod look;
mod news;
mod seen;
mod views;
mod watching;

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use jaato_registry::Registry;
use jaato_types::SessionId;

pub use again::{DescribedAgain, describe_again};
pub use catalog::{Catalog, Edition};
pub use copies::{Copies, Copy, CopyProblem, Opening};
pub use look::Eyes;
pub use seen::Seen;

use crate::log::Log;
use news::Journal;
use views::View;

/// The plugins, as they are known at this moment and to each session.
pub struct Plugins {
    state: Mutex<State>,
    /// Held while it is looked.
    seen: tokio::sync::Mutex<Seen>,
    /// There once plugins are watched.
    copies: OnceLock<Copies>,
    log: Log,
}

/// What changes together.
struct State {
    current: Arc<Catalog>,
    views: std::collections::HashMap<SessionId, View>,
    journal: Journal,
    /// The number of the last edition.
    last_edition: u64,
}

impl Plugins {
    /// Takes what was found at the start.
    pub fn new(registry: Registry, seen: Seen, log: Log) -> Self {
        let current = Arc::new(Catalog::first(registry, &seen));
        let state = State {
            current,
            views: std::collections::HashMap::new(),
            journal: Journal::default(),
            last_edition: 0,
        };
        Self { state: Mutex::new(state), seen: seen.into(), copies: OnceLock::new(), log }
    }

    /// Watches from here on; copies of files that are opened are made with this.
    pub fn watch(&self, copies: Copies) {
        // A second word changes nothing.
        let _ = self.copies.set(copies);
    }

    /// Returns what copies files before they are opened, where plugins are watched.
    pub fn copies(&self) -> Option<&Copies> {
        self.copies.get()
    }

    /// Returns what is known at this moment.
    pub fn current(&self) -> Arc<Catalog> {
        Arc::clone(&self.state().current)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Notes what a person is to be told.
    fn tell(&mut self, news: impl IntoIterator<Item = news::News>, log: &Log) {
        for news in news {
            log.line(news.level, "host", &news.text);
            self.journal.push(news);
        }
    }
}
