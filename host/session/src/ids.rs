//! Ids behind a trait, so that a run can be replayed.

use std::sync::Arc;

use jaato_types::{CallId, SessionId};
use jiff::Timestamp;

use crate::{Random, SessionClock};

/// Generates unique ids.
pub trait Ids: Send + Sync {
    /// Creates a session id. It is safe as a file name, and sorts by the second of its creation.
    fn create_session_id(&self) -> SessionId;

    /// Creates an id for a tool call whose provider gave none, or gave one that is already in use.
    fn create_call_id(&self) -> CallId;
}

/// Ids from the clock and random numbers. A session's id is the time in UTC and six random letters
/// or digits that are hard to confuse, for example `20261128-121314-k3f9qz`.
pub struct RandomIds {
    clock: Arc<dyn SessionClock>,
    random: Arc<dyn Random>,
}

impl RandomIds {
    /// Creates ids from this clock and this source of random numbers.
    pub fn new(clock: Arc<dyn SessionClock>, random: Arc<dyn Random>) -> Self {
        Self { clock, random }
    }
}

impl Ids for RandomIds {
    fn create_session_id(&self) -> SessionId {
        const LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
        let at = i64::try_from(self.clock.wall_ms()).ok();
        let at = at.and_then(|ms| Timestamp::from_millisecond(ms).ok()).unwrap_or_default();
        let chance = self.random.next_u64();
        let letter = |at: u32| char::from(LETTERS[(chance >> (at * 5)) as usize % LETTERS.len()]);
        let letters: String = (0..6).map(letter).collect();
        SessionId::new(format!("{}-{letters}", at.strftime("%Y%m%d-%H%M%S")))
    }

    fn create_call_id(&self) -> CallId {
        CallId::new(format!("call_{:016x}", self.random.next_u64()))
    }
}
