//! Everything that a session stands on, in one place, scripted and recorded.

use std::sync::Arc;

use jaato_types::ModelId;

use crate::testing::{
    CountingIds, KeptOutputs, RecordedEvents, ScriptedGc, ScriptedHooks, ScriptedPerson,
    ScriptedProvider, ScriptedTools, SimulatedClock, Tool,
};
use crate::{
    Clock, Gc, HistoryError, Media, NoMedia, Ports, PromptParts, SeededRandom, Session,
    SessionSetup, SystemPrompt,
};

/// A stage; what is on it can be looked at while and after a session plays.
pub struct Stage {
    /// The model.
    pub provider: Arc<ScriptedProvider>,
    /// The tools.
    pub tools: Arc<ScriptedTools>,
    /// The person; not there until given answers.
    pub person: Arc<ScriptedPerson>,
    /// The plugins that are asked beside their calls; none until a test adds some.
    pub hooks: Arc<ScriptedHooks>,
    /// The gc; not there until given plans.
    pub gc: Arc<ScriptedGc>,
    /// The events.
    pub events: Arc<RecordedEvents>,
    /// The output files.
    pub outputs: Arc<KeptOutputs>,
    /// What is known of images and files; nothing unless a test puts something there.
    pub media: Arc<dyn Media>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
}

impl Stage {
    /// Sets a stage with these tools. Within a tokio runtime, best with its clock paused.
    pub fn new(tools: impl IntoIterator<Item = Tool>) -> Self {
        Self {
            provider: Arc::default(),
            tools: Arc::new(ScriptedTools::new(tools)),
            person: Arc::default(),
            hooks: Arc::default(),
            gc: Arc::default(),
            events: Arc::default(),
            outputs: Arc::default(),
            media: Arc::new(NoMedia),
            clock: Arc::new(SimulatedClock::new()),
        }
    }

    /// Returns what a session needs.
    pub fn ports(&self) -> Ports {
        Ports {
            gate: Arc::new(crate::RulesGate),
            provider: self.provider.clone(),
            tools: self.tools.clone(),
            hooks: self.hooks.clone(),
            asker: self.person.clone(),
            gc: self.gc.is_there().then(|| self.gc.clone() as Arc<dyn Gc>),
            events: self.events.clone(),
            outputs: self.outputs.clone(),
            media: self.media.clone(),
            clock: self.clock.clone(),
            ids: Arc::new(CountingIds::default()),
            random: Arc::new(SeededRandom::new(1)),
        }
    }

    /// Returns the setup of a session with the model `test/model` and a window of 10,000 tokens.
    pub fn setup() -> SessionSetup {
        Self::setup_of(10_000)
    }

    /// The same with a window of so many tokens.
    pub fn setup_of(context_limit: u64) -> SessionSetup {
        let system = SystemPrompt::build(PromptParts::default());
        SessionSetup::new(ModelId::from("test/model"), context_limit, system)
    }

    /// Starts a session as the setup says.
    pub fn start(&self, setup: SessionSetup) -> Result<Session, HistoryError> {
        Session::start(setup, self.ports())
    }
}
