//! Rules and remembered answers that a session shares with those that it opens.

use std::fmt;
use std::sync::Arc;

use jaato_policy::{Rules, SessionRule};
use jaato_types::Result;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;

/// Saves kept answers.
pub trait AnswerStore: Send + Sync {
    /// Saves an answer, and returns a line for the user that names the place. Called while a turn
    /// waits, so it must be a short write to a file.
    ///
    /// # Errors
    /// If it cannot be written. The answer then applies to the session.
    fn save_answer(&self, rule: &SessionRule) -> Result<String>;
}

/// Rules that several sessions share.
#[derive(Default)]
pub struct SessionRules {
    rules: Mutex<Rules>,
    /// Counts the changes, so that an open prompt can be checked again.
    changes: watch::Sender<u64>,
    keeper: Option<Arc<dyn AnswerStore>>,
}

/// The rules that the sessions of one user share. Clones refer to the same rules.
pub type SharedRules = Arc<SessionRules>;

impl SessionRules {
    /// Creates them from rules.
    pub fn new(rules: Rules) -> Self {
        Self { rules: Mutex::new(rules), ..Self::default() }
    }

    /// Sets the saver of kept answers. Without it they apply to the session.
    #[must_use]
    pub fn with_answer_store(self, keeper: Arc<dyn AnswerStore>) -> Self {
        Self { keeper: Some(keeper), ..self }
    }

    /// Returns the saver of kept answers.
    pub(crate) fn answer_store(&self) -> Option<&Arc<dyn AnswerStore>> {
        self.keeper.as_ref()
    }

    /// Locks and returns the rules.
    pub fn lock(&self) -> MutexGuard<'_, Rules> {
        self.rules.lock()
    }

    /// Changes the rules, and triggers a new check of open prompts.
    pub fn change_rules<T>(&self, change: impl FnOnce(&mut Rules) -> T) -> T {
        let changed = change(&mut self.rules.lock());
        self.changes.send_modify(|count| *count = count.wrapping_add(1));
        changed
    }

    /// Returns a receiver that is notified of each later change.
    pub(crate) fn subscribe_changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }
}

impl fmt::Debug for SessionRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SessionRules").field(&*self.rules.lock()).finish()
    }
}
