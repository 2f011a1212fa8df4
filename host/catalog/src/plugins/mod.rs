//! What is known of the plugins, and how it is kept up to date while sessions go on.
//!
//! Where plugins are watched, the folders are looked at when a turn begins and a plugin's file
//! before each of its calls: no thread, no delay, and nothing happens while nobody asks for
//! anything. What is found is a new [`Catalog`]; each session goes over to it by its [`views`].
//!
//! Invariant: a file that cannot be used changes nothing but what a person is told.

mod again;
mod catalog;
mod look;
mod news;
mod set;
mod views;

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use jaato_loader::Stamp;
use jaato_log::Log;
use jaato_registry::Registry;
use jaato_types::{PluginName, SessionId};
use parking_lot::{Mutex, MutexGuard};

pub use again::{DescribedAgain, describe_again};
pub use catalog::{Catalog, Edition};
pub use look::ScanInputs;
pub use views::Offer;

use crate::discover::Seen;
use news::Journal;
use set::SetTools;
use views::View;

/// What was seen when the host started.
#[derive(Debug, Default)]
pub struct Start {
    /// The plugin files.
    pub stamps: Vec<(PathBuf, Stamp)>,
    /// The record of what is trusted.
    pub trust: Option<Stamp>,
    /// What the person has been told.
    pub problems: Vec<String>,
}

/// The plugins, as they are known at this moment and to each session.
pub struct Plugins {
    state: Mutex<State>,
    /// Held while it is looked.
    seen: tokio::sync::Mutex<Seen>,
    is_watched: AtomicBool,
    start: Mutex<Start>,
    log: Log,
}

/// What changes together.
struct State {
    current: Arc<Catalog>,
    views: HashMap<SessionId, View>,
    journal: Journal,
    /// What plugins have set while they run.
    set: Vec<Arc<SetTools>>,
    /// What users were told about tools that were set, by plugin and owner.
    notices: HashMap<(PluginName, Option<SessionId>), BTreeSet<String>>,
    /// The number of the last edition.
    last_edition: u64,
}

impl Plugins {
    /// Takes what was found at the start.
    pub fn new(registry: Registry, start: Start, log: Log) -> Self {
        let current = Arc::new(Catalog::first(registry));
        let state = State {
            current,
            views: HashMap::new(),
            journal: Journal::default(),
            set: Vec::new(),
            notices: HashMap::new(),
            last_edition: 0,
        };
        let (seen, is_watched) = (tokio::sync::Mutex::default(), AtomicBool::new(false));
        Self { state: Mutex::new(state), seen, is_watched, start: Mutex::new(start), log }
    }

    /// Watches from here on. A second word changes nothing.
    pub async fn watch(&self) {
        let mut seen = self.seen.lock().await;
        if self.is_watched.swap(true, Relaxed) {
            return;
        }
        let start = std::mem::take(&mut *self.start.lock());
        *seen = Seen { files: start.stamps.into_iter().collect(), trust: start.trust };
        let mut state = self.state();
        let watched = Arc::new(state.current.watched(&seen, start.problems));
        state.current = Arc::clone(&watched);
        // Before this there was but one catalog.
        state.views.values_mut().for_each(|view| view.begin_anew(&watched));
    }

    /// Returns true once plugins are watched.
    pub fn is_watched(&self) -> bool {
        self.is_watched.load(Relaxed)
    }

    /// Returns what is known at this moment.
    pub fn current(&self) -> Arc<Catalog> {
        Arc::clone(&self.state().current)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
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
