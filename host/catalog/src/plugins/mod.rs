//! Keeps the knowledge about plugins up to date while sessions run.
//!
//! If plugins are watched, the folders are checked when a turn begins, and a plugin's file before
//! each of its calls. This needs no thread and no delay, and an idle host does nothing. Changes
//! produce a new [`Catalog`], and each session switches to it through its [`views`].
//!
//! Invariant: an unusable file only changes the messages to the user.

mod catalog;
mod file_changes;
mod news;
mod redescribe;
mod set;
mod views;

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use jaato_loader::PluginFileStamp;
use jaato_log::Log;
use jaato_registry::Registry;
use jaato_types::{PluginName, SessionId};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

pub use catalog::{Catalog, Edition};
pub use file_changes::ScanInputs;
pub use redescribe::{RedescribedFile, describe_again};
pub use views::SessionOffer;

use crate::discover::PluginStamps;
use news::{NewsJournal, PluginNews, WARN};
use set::DynamicTools;
use views::SessionView;

/// The state when the host started.
#[derive(Debug, Default)]
pub struct StartState {
    /// The plugin files.
    pub stamps: Vec<(PathBuf, PluginFileStamp)>,
    /// The trust record.
    pub trust: Option<PluginFileStamp>,
    /// The problems that were reported to the user.
    pub problems: Vec<String>,
}

/// The current plugins, and each session's view of them.
pub struct Plugins {
    state: Mutex<PluginsState>,
    /// Held during a check.
    seen: tokio::sync::Mutex<PluginStamps>,
    is_watched: AtomicBool,
    start: Mutex<StartState>,
    log: Log,
    /// Signalled when news arrives while calls run.
    misdeeds: Notify,
}

/// State that changes together.
struct PluginsState {
    current: Arc<Catalog>,
    views: HashMap<SessionId, SessionView>,
    journal: NewsJournal,
    /// The tools that plugins have set while they run.
    set: Vec<Arc<DynamicTools>>,
    /// Notices about set tools that users have seen, by plugin and owner.
    notices: HashMap<(PluginName, Option<SessionId>), BTreeSet<String>>,
    /// The number of the last edition.
    last_edition: u64,
}

impl Plugins {
    /// Takes the plugins that were found at the start.
    pub fn new(registry: Registry, start: StartState, log: Log) -> Self {
        let current = Arc::new(Catalog::from_first_registry(registry));
        let state = PluginsState {
            current,
            views: HashMap::new(),
            journal: NewsJournal::default(),
            set: Vec::new(),
            notices: HashMap::new(),
            last_edition: 0,
        };
        let (seen, is_watched) = (tokio::sync::Mutex::default(), AtomicBool::new(false));
        let (start, misdeeds) = (Mutex::new(start), Notify::new());
        Self { state: Mutex::new(state), seen, is_watched, start, log, misdeeds }
    }

    /// Starts watching. Further calls have no effect.
    pub async fn start_watching(&self) {
        let mut seen = self.seen.lock().await;
        if self.is_watched.swap(true, Relaxed) {
            return;
        }
        let start = std::mem::take(&mut *self.start.lock());
        *seen = PluginStamps { files: start.stamps.into_iter().collect(), trust: start.trust };
        let mut state = self.lock_state();
        let watched = Arc::new(state.current.with_stamps(&seen, start.problems));
        state.current = Arc::clone(&watched);
        // Before this there was only one catalog.
        state.views.values_mut().for_each(|view| view.switch_base(&watched));
    }

    /// Returns true once plugins are watched.
    pub fn is_watched(&self) -> bool {
        self.is_watched.load(Relaxed)
    }

    /// Returns the current catalog.
    pub fn current(&self) -> Arc<Catalog> {
        Arc::clone(&self.lock_state().current)
    }

    /// Records a plugin's misdeed as news, and wakes the calls that show it.
    pub fn report_misdeed(&self, plugin: &PluginName, text: String) {
        self.lock_state().add_news([PluginNews::new(Some(plugin), WARN, text)], &self.log);
        self.misdeeds.notify_waiters();
    }

    /// Waits for the next misdeed that is reported after this call.
    pub fn next_misdeed(&self) -> Notified<'_> {
        self.misdeeds.notified()
    }

    fn lock_state(&self) -> MutexGuard<'_, PluginsState> {
        self.state.lock()
    }
}

impl PluginsState {
    /// Records news for the user.
    fn add_news(&mut self, news: impl IntoIterator<Item = PluginNews>, log: &Log) {
        for news in news {
            log.write_line(news.level, "host", &news.text);
            self.journal.push(news);
        }
    }
}
