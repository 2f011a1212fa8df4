//! Ids behind a trait, so that a run can be replayed.

use std::sync::Arc;

use jaato_types::{CallId, SessionId};

use crate::{Clock, Random};

/// Gives ids that were not given before.
pub trait Ids: Send + Sync {
    /// Makes the id of a session; safe as a file name, and later ones sort after earlier ones.
    fn session(&self) -> SessionId;

    /// Makes the id of a tool call whose provider gave none, or one that is taken.
    fn call(&self) -> CallId;
}

/// Ids from the clock and chance.
pub struct RandomIds {
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
}

impl RandomIds {
    /// Makes ids from that clock and chance.
    pub fn new(clock: Arc<dyn Clock>, random: Arc<dyn Random>) -> Self {
        Self { clock, random }
    }
}

impl Ids for RandomIds {
    fn session(&self) -> SessionId {
        let chance = self.random.next_u64() >> 24;
        SessionId::new(format!("{:012x}-{chance:010x}", self.clock.wall_ms()))
    }

    fn call(&self) -> CallId {
        CallId::new(format!("call_{:016x}", self.random.next_u64()))
    }
}
