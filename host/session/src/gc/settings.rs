//! The settings of `[gc]`, with the seed's names and defaults.

use jaato_types::service::GcFacts;
use serde_json::{Value, json};

/// Longest time that a gc may take for its plan: the turn waits for it.
pub const GC_DEADLINE_MS: u64 = 10_000;

/// When a gc runs, and what it should leave alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GcSettings {
    /// How full the context window must be, in percent, for the gc to run by itself.
    pub threshold_percent: u64,
    /// How full the context should be afterwards, in percent, where more than old turns must go.
    pub target_percent: u64,
    /// Whether it runs by itself; a request that the provider refuses as too large is always
    /// helped.
    pub auto_trigger: bool,
    /// Whether it is looked at before each request; else when a turn is over.
    pub check_before_send: bool,
    /// Finished turns that it should keep.
    pub preserve_recent_turns: u64,
    /// Turns that always stay, counted from 0 since the session began.
    pub pinned_turn_indices: Vec<u64>,
    /// Most turns that are sent; one more makes it run. 0 for no bound.
    pub max_turns: u64,
    /// Whether the gc should say what it left out.
    pub notify_on_gc: bool,
    /// See [`GC_DEADLINE_MS`].
    pub deadline_ms: u64,
}

impl Default for GcSettings {
    fn default() -> Self {
        Self {
            threshold_percent: 80,
            target_percent: 60,
            auto_trigger: true,
            check_before_send: true,
            preserve_recent_turns: 5,
            pinned_turn_indices: Vec::new(),
            max_turns: 0,
            notify_on_gc: true,
            deadline_ms: GC_DEADLINE_MS,
        }
    }
}

impl GcSettings {
    /// Returns what tools may know of them.
    pub fn facts(&self) -> GcFacts {
        let threshold = u32::try_from(self.threshold_percent).unwrap_or(u32::MAX);
        GcFacts {
            threshold_percent: f64::from(threshold),
            auto_trigger: self.auto_trigger,
            preserve_recent_turns: self.preserve_recent_turns,
            max_turns: (self.max_turns > 0).then_some(self.max_turns),
        }
    }

    /// Returns them as a gc is given them. Its pinned turns are counted among those of the request.
    pub(super) fn for_request(&self, pinned: &[usize]) -> Value {
        json!({
            "threshold_percent": self.threshold_percent,
            "target_percent": self.target_percent,
            "auto_trigger": self.auto_trigger,
            "check_before_send": self.check_before_send,
            "preserve_recent_turns": self.preserve_recent_turns,
            "pinned_turn_indices": pinned,
            "max_turns": (self.max_turns > 0).then_some(self.max_turns),
            "notify_on_gc": self.notify_on_gc,
        })
    }
}
