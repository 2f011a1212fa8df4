//! Ids behind a trait, so that a run can be replayed.

use std::sync::Arc;

use jaato_types::{CallId, SessionId};

use crate::{Random, SessionClock};

/// Generates unique ids.
pub trait Ids: Send + Sync {
    /// Creates a session id. It is safe as a file name, and later ids sort after earlier ones.
    fn session(&self) -> SessionId;

    /// Creates an id for a tool call whose provider gave none, or gave one that is already in use.
    fn call(&self) -> CallId;
}

/// Ids from the clock and random numbers.
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
    fn session(&self) -> SessionId {
        let chance = self.random.next_u64() >> 24;
        SessionId::new(format!("{:012x}-{chance:010x}", self.clock.wall_ms()))
    }

    fn call(&self) -> CallId {
        CallId::new(format!("call_{:016x}", self.random.next_u64()))
    }
}
