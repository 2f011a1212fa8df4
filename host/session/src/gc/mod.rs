//! Context garbage collection: a gc proposes a plan, and the session checks and applies it.
//!
//! The session itself truncates content for which no gc can make room: a message that fills the
//! window alone, and large results of the open turn. If a long turn is still too large for the
//! window, its oldest calls are left out with their results. The record keeps everything.
//!
//! Invariants: the open turn stays except for its oldest calls, and pinned turns stay. Calls stay
//! paired and roles in order, or nothing changes. The request changes only together with an event
//! that says so.

mod collect;
mod count;
mod cut;
mod edits;
mod make_room;
mod pairs;
mod plan;
mod preview;
mod settings;
mod undo;
mod usage;
mod window;

use std::sync::Arc;

use futures_util::future::BoxFuture;
use jaato_types::service::GcFacts;
use jaato_types::{Error, GcPlan, GcRequest, Result};
use parking_lot::Mutex;

use crate::{Cancel, DeadlineHold, GcSettings, HistoryEntry, Session};
use count::{CountedTokens, EntrySize};
use cut::PART_BYTES_MIN;
use undo::LastCollection;
use window::WindowState;

pub(crate) use count::{estimate_tokens, is_possible_output, json_bytes};
pub use preview::{GcPreview, PlannedTurn};
pub use undo::GcUndoResult;
pub use usage::{ContextCounter, ContextPart, ContextUsage};
pub use window::{WINDOW_WAIT_MS, WindowOrigin};

/// How often a session makes room and resends one request that the provider refuses as too large.
/// Each time at least two fifths are removed, so four refusals leave an eighth.
pub const OVERFLOWS_MAX: u32 = 4;

/// The number of consecutive failures after which a session asks a gc only if the context is full.
/// Each failure can make the user wait for the whole deadline.
pub(crate) const GC_FAILURES_MAX: u32 = 2;

/// Proposes which messages to remove from a history. The session checks the plan and applies it.
pub trait Gc: Send + Sync {
    /// Returns the gc's name in events: its plugin's name without the kind, `truncate`.
    fn source(&self) -> &str;

    /// Returns true if a plugin can plan. If none can, the settings are not reported.
    fn is_available(&self) -> bool {
        true
    }

    /// Creates a plan. On cancel and at its deadline the session sets the flag and drops the future
    /// without waiting. The hold pauses the deadline. After an error or a bad plan, only this
    /// collection is skipped.
    fn create_plan<'a>(
        &'a self,
        request: &'a GcRequest,
        cancel: Cancel,
        hold: DeadlineHold,
    ) -> BoxFuture<'a, Result<GcPlan>>;
}

/// The result of a collection that the user asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GcReport {
    /// Messages that the gc removed from later requests.
    pub messages_removed: u64,
    /// Messages of which a part is sent truncated, described or not at all.
    pub messages_cut: u64,
    /// Turns that the gc removed from later requests as a whole.
    pub turns_removed: u64,
    /// Tokens in use before, estimated if no provider has counted them.
    pub tokens_before: u64,
    /// Tokens in use after, estimated.
    pub tokens_after: u64,
    /// The gc's note about it.
    pub note: Option<String>,
}

/// The session's state of its gc.
pub(crate) struct GcState {
    pub(crate) settings: GcSettings,
    /// The gc. `None` after the program removed it.
    plugin: Option<Arc<dyn Gc>>,
    /// The context window in tokens. 0 without a model.
    limit: u64,
    window: WindowState,
    /// The provider's last count.
    counted: Option<CountedTokens>,
    sizes: Mutex<Vec<EntrySize>>,
    asked: GcAnswer,
    /// The failure that was reported last. It is reported once, not with every request.
    told: Option<Error>,
    /// How often it has failed in a row.
    failures: u32,
    last: LastCollection,
}

/// The result of asking the gc within the turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GcAnswer {
    /// It was not asked, or it helped.
    Helpful,
    /// It changed nothing. Until the turn is over, no other messages become old, but the context
    /// may become too full for the messages that the gc keeps.
    InVain,
    /// It changed nothing, although the context was full.
    InVainWhenFull,
    /// It failed.
    Failed,
}

impl GcState {
    pub(crate) fn new(
        (plugin, settings): (Option<Arc<dyn Gc>>, GcSettings),
        limit: u64,
        origin: WindowOrigin,
    ) -> Self {
        let window = WindowState::new(origin);
        let (counted, sizes, told) = (None, Mutex::default(), None);
        Self {
            settings,
            plugin,
            limit,
            window,
            counted,
            sizes,
            asked: GcAnswer::Helpful,
            told,
            failures: 0,
            last: LastCollection::default(),
        }
    }

    /// Sets the record before the last collection of a session that continues.
    pub(crate) fn with_record_before(self, before: Option<Vec<Arc<HistoryEntry>>>) -> Self {
        Self { last: LastCollection::from_record(before), ..self }
    }

    /// Returns the state for another model. Its counts and its window are unknown, and the last
    /// collection can still be undone.
    pub(crate) fn for_other_model(&mut self, limit: u64, origin: WindowOrigin) -> Self {
        let last = std::mem::take(&mut self.last);
        let gc = (self.plugin.take(), self.settings.clone());
        Self { last, ..Self::new(gc, limit, origin) }
    }

    /// Returns the settings that tools may see, or `None` without a gc.
    pub(crate) fn gc_facts(&self) -> Option<GcFacts> {
        let plugin = self.plugin.as_ref().filter(|plugin| plugin.is_available());
        plugin.map(|_| settings::settings_facts(&self.settings))
    }

    /// Forgets what the gc answered, because the messages are others now.
    fn forget_gc_answers(&mut self) {
        (self.asked, self.told, self.failures) = (GcAnswer::Helpful, None, 0);
    }
}
impl Session {
    /// Replaces the gc and its settings from the next request on. `None` removes it.
    pub fn change_gc(&mut self, gc: Option<Arc<dyn Gc>>, settings: GcSettings) {
        (self.gc.plugin, self.gc.settings) = (gc, settings);
        self.gc.forget_gc_answers();
        let told = self.gc.gc_facts();
        self.shared.facts.update_facts(|facts| facts.gc = told);
    }
}
