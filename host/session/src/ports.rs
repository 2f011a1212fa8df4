//! Everything outside that a session uses, as traits.

use std::sync::Arc;

use crate::{
    CallGate, EventSink, Gc, Hooks, Ids, Media, OutputStore, Provider, Random, SessionClock,
    SessionSaver, ToolSet, UserAsker,
};

/// The outside interfaces of a session. Cheap to clone.
#[derive(Clone)]
pub struct SessionPorts {
    /// The model.
    pub provider: Arc<dyn Provider>,
    /// The tools.
    pub tools: Arc<dyn ToolSet>,
    /// The plugins that have hooks.
    pub hooks: Arc<dyn Hooks>,
    /// Decides about calls before the user is asked.
    pub gate: Arc<dyn CallGate>,
    /// Asks the user.
    pub asker: Arc<dyn UserAsker>,
    /// Makes room in a full context, if there is a gc.
    pub gc: Option<Arc<dyn Gc>>,
    /// Receives events.
    pub events: Arc<dyn EventSink>,
    /// Stores output that is too long for the model.
    pub outputs: Arc<dyn OutputStore>,
    /// Sizes and dimensions of the session's images and files.
    pub media: Arc<dyn Media>,
    /// The clock.
    pub clock: Arc<dyn SessionClock>,
    /// Saves the record, if the session is to outlive the process.
    pub saver: Option<Arc<dyn SessionSaver>>,
    /// Generates ids.
    pub ids: Arc<dyn Ids>,
    /// Random numbers, for jitter.
    pub random: Arc<dyn Random>,
}
