//! Everything that a session depends on, in one place, scripted and recorded.

use std::sync::Arc;

use jaato_types::ModelId;

use crate::testing::{
    CountingIds, MemoryOutputStore, RecordedEvents, ScriptedGc, ScriptedHooks, ScriptedProvider,
    ScriptedTool, ScriptedTools, ScriptedUser, SimulatedClock,
};
use crate::{
    Gc, HistoryError, Media, NoMedia, PromptParts, SeededRandom, Session, SessionClock,
    SessionPorts, SessionSetup, SystemPrompt,
};

/// A stage. A test can inspect it while and after a session runs.
pub struct TestStage {
    /// The model.
    pub provider: Arc<ScriptedProvider>,
    /// The tools.
    pub tools: Arc<ScriptedTools>,
    /// The user, absent until a test adds answers.
    pub person: Arc<ScriptedUser>,
    /// The plugins with hooks. Empty until a test adds some.
    pub hooks: Arc<ScriptedHooks>,
    /// The gc, absent until a test adds plans.
    pub gc: Arc<ScriptedGc>,
    /// The events.
    pub events: Arc<RecordedEvents>,
    /// The output files.
    pub outputs: Arc<MemoryOutputStore>,
    /// The facts about images and files. Empty unless a test adds some.
    pub media: Arc<dyn Media>,
    /// The clock.
    pub clock: Arc<dyn SessionClock>,
}

impl TestStage {
    /// Creates a stage with these tools, within a tokio runtime, preferably with a paused clock.
    pub fn new(tools: impl IntoIterator<Item = ScriptedTool>) -> Self {
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
    pub fn ports(&self) -> SessionPorts {
        SessionPorts {
            gate: Arc::new(crate::RulesGate),
            provider: self.provider.clone(),
            tools: self.tools.clone(),
            hooks: self.hooks.clone(),
            asker: self.person.clone(),
            gc: self.gc.is_available().then(|| self.gc.clone() as Arc<dyn Gc>),
            events: self.events.clone(),
            outputs: self.outputs.clone(),
            media: self.media.clone(),
            clock: self.clock.clone(),
            saver: None,
            ids: Arc::new(CountingIds::default()),
            random: Arc::new(SeededRandom::new(1)),
        }
    }

    /// Returns the setup of a session with the model `test/model` and a window of 10,000 tokens.
    pub fn setup() -> SessionSetup {
        Self::setup_with_limit(10_000)
    }

    /// As [`Self::setup`], with a window of this many tokens.
    pub fn setup_with_limit(context_limit: u64) -> SessionSetup {
        let system = SystemPrompt::build(PromptParts::default());
        SessionSetup::new(ModelId::from("test/model"), context_limit, system)
    }

    /// Starts a session with this setup.
    pub fn start(&self, setup: SessionSetup) -> Result<Session, HistoryError> {
        Session::start(setup, self.ports())
    }
}
