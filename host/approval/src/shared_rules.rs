//! Rules and remembered answers that a session shares with those that it opens.

use std::fmt;
use std::sync::Arc;

use jaato_policy::{Rules, SessionRule};
use jaato_types::Result;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;

/// Writes down the answers that hold for good.
pub trait KeepAnswers: Send + Sync {
    /// Writes one down, and returns a line for the user that says where. Called while a turn
    /// waits: a short write to a file, no more.
    ///
    /// # Errors
    /// When it cannot be written; the answer then holds for the session.
    fn keep(&self, rule: &SessionRule) -> Result<String>;
}

/// Rules that several sessions share.
#[derive(Default)]
pub struct SessionRules {
    rules: Mutex<Rules>,
    /// Counts the changes, so that a question that waits can be looked at again.
    changes: watch::Sender<u64>,
    keeper: Option<Arc<dyn KeepAnswers>>,
}

/// What the sessions of one person have decided together. Clones are the same.
pub type SharedRules = Arc<SessionRules>;

impl SessionRules {
    /// Makes them of rules.
    pub fn new(rules: Rules) -> Self {
        Self { rules: Mutex::new(rules), ..Self::default() }
    }

    /// Has answers that hold for good written down. Without it they hold for the session.
    #[must_use]
    pub fn kept_by(self, keeper: Arc<dyn KeepAnswers>) -> Self {
        Self { keeper: Some(keeper), ..self }
    }

    /// Returns what writes down answers that hold for good.
    pub(crate) fn keeper(&self) -> Option<&Arc<dyn KeepAnswers>> {
        self.keeper.as_ref()
    }

    /// Returns the rules.
    pub fn lock(&self) -> MutexGuard<'_, Rules> {
        self.rules.lock()
    }

    /// Changes the rules, and has the questions that wait looked at again.
    pub fn change<T>(&self, change: impl FnOnce(&mut Rules) -> T) -> T {
        let changed = change(&mut self.rules.lock());
        self.changes.send_modify(|count| *count = count.wrapping_add(1));
        changed
    }

    /// Returns what becomes ready with each change from here on.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }
}

impl fmt::Debug for SessionRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SessionRules").field(&*self.rules.lock()).finish()
    }
}
