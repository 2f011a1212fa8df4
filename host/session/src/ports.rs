//! Everything outside that a session uses, by trait.

use std::sync::Arc;

use crate::{
    Asker, Clock, EventSink, Gate, Gc, Hooks, Ids, Media, OutputStore, Provider, Random, ToolSet,
};

/// What a session stands on. Cheap to clone.
#[derive(Clone)]
pub struct Ports {
    /// The model.
    pub provider: Arc<dyn Provider>,
    /// The tools.
    pub tools: Arc<dyn ToolSet>,
    /// The plugins that are asked beside their own calls.
    pub hooks: Arc<dyn Hooks>,
    /// What decides about calls before the person is asked.
    pub gate: Arc<dyn Gate>,
    /// The person.
    pub asker: Arc<dyn Asker>,
    /// What makes room in a full context; none where nothing does.
    pub gc: Option<Arc<dyn Gc>>,
    /// Where events go.
    pub events: Arc<dyn EventSink>,
    /// Where output goes that is too long for the model.
    pub outputs: Arc<dyn OutputStore>,
    /// Size and shape of the session's images and files.
    pub media: Arc<dyn Media>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Ids.
    pub ids: Arc<dyn Ids>,
    /// Chance, for jitter.
    pub random: Arc<dyn Random>,
}
