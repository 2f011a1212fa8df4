//! Context garbage collection: what a gc proposes is checked, and the session alone applies it.
//!
//! Besides, the session itself sends as head and tail what no gc can make room for: a message that
//! fills the window alone, and large results of the turn that is open. Where a long turn outgrows
//! the window even so, its oldest calls go with their results. The record keeps everything.
//!
//! Invariants: the open turn stays but for its oldest calls, and pinned turns stay; calls stay
//! paired and roles in order, or nothing changes; what is sent changes only together with an event
//! that says so.

mod collect;
mod count;
mod cut;
mod pairs;
mod plan;
mod room;
mod settings;
mod window;

use futures_util::future::BoxFuture;
use jaato_types::{Error, GcPlan, GcRequest, Result};

use crate::{Cancel, GcSettings};
use count::Counted;
use cut::PART_BYTES_MIN;
use window::WindowState;

pub(crate) use count::{json_bytes, tokens_of};
pub(crate) use settings::facts;
pub use window::{WINDOW_WAIT_MS, WindowOrigin};

/// Most refusals of one request as too large that are answered by making room and sending it again.
/// Each time at least two fifths go: four refusals leave an eighth.
pub const OVERFLOWS_MAX: u32 = 4;

/// Proposes what to leave out of a history. The session checks the plan and applies it.
pub trait Gc: Send + Sync {
    /// Returns the gc's name in events: its plugin's without the kind, `truncate`.
    fn source(&self) -> &str;

    /// Returns whether one can plan at all: where none can, nothing is told of the settings.
    fn is_there(&self) -> bool {
        true
    }

    /// Plans. On cancel and at its deadline the session sets the flag and drops the future; neither
    /// waits for the other. An error or a bad plan costs nothing but the collection.
    fn plan<'a>(&'a self, request: &'a GcRequest, cancel: Cancel) -> BoxFuture<'a, Result<GcPlan>>;
}

/// What came of a collection that a person asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GcReport {
    /// Messages that are sent no more.
    pub messages_removed: u64,
    /// Messages that are sent as head and tail.
    pub messages_cut: u64,
    /// Turns that are sent no more, not even in part.
    pub turns_removed: u64,
    /// Tokens in use before, estimated where no provider told them.
    pub tokens_before: u64,
    /// Tokens in use after, estimated.
    pub tokens_after: u64,
    /// What the gc says about it.
    pub note: Option<String>,
}

/// What a session remembers for its gc.
pub(crate) struct GcState {
    pub(crate) settings: GcSettings,
    /// The context window in tokens; 0 where there is no model.
    limit: u64,
    window: WindowState,
    /// What the provider told last.
    counted: Option<Counted>,
    asked: Asked,
    /// The failure that was told last: it is told once, not with every request.
    told: Option<Error>,
}

/// What came of asking the gc within the turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    /// It was not asked, or it helped.
    Helpful,
    /// It left everything as it was: until the turn is over nothing else becomes old, but the
    /// context may become too full for what the gc keeps.
    InVain,
    /// It left everything as it was, although the context was full.
    InVainWhenFull,
    /// It failed.
    Failed,
}

impl GcState {
    pub(crate) fn new(settings: GcSettings, limit: u64, origin: WindowOrigin) -> Self {
        let window = WindowState::new(origin);
        Self { settings, limit, window, counted: None, asked: Asked::Helpful, told: None }
    }
}
