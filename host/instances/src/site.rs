//! Where a call of a plugin stands: its session, what it may reach there, and who hears of it.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use jaato_loader::Served;
use jaato_session::{CallFiles, CallScope, Hold, SharedFacts, SharedObjects, StreamedOutput};
use jaato_types::{CallId, Data, Delta, Error, PluginName, SessionId};
use parking_lot::Mutex;

use crate::instances::AskingInstance;

/// Takes what a service tells while it works: shown where the call is shown.
pub type Tell = Arc<dyn Fn(Delta) + Send + Sync>;

/// Hears that bytes came from the network, whatever they say.
pub type Alive = Arc<dyn Fn() + Send + Sync>;

/// What a tool call has attached so far.
pub type Attachments = Arc<Mutex<Vec<Data>>>;

/// What a call may ask of the host.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Access {
    /// All that the plugin may ask for.
    #[default]
    Full,
    /// What only reads: the call is a question to the plugin, and no act of anybody's.
    Reads,
}

/// Where a call stands in a session.
#[derive(Clone)]
pub struct CallSite {
    /// The session; empty for a call typed by a person.
    pub session: SessionId,
    /// Model and tokens, where the session has a model.
    pub facts: Option<SharedFacts>,
    /// The name under `[providers]` by which a provider is asked, where it is one of those.
    pub provider: Option<Arc<str>>,
    /// The call, where it is a tool's.
    pub call: Option<CallId>,
    /// The session's objects, where a tool or a command runs.
    pub objects: Option<CallObjects>,
    /// The session's execution environment.
    pub environment: Option<Arc<dyn EnvironmentAccess>>,
    /// Hears of each piece of an answer from the network, where a provider answers a request.
    pub alive: Option<Alive>,
    /// What the call streams, where a tool runs.
    pub streamed: Option<StreamedOutput>,
    /// What goes beside the result, where a tool runs.
    pub attachments: Option<Attachments>,
    /// The JSON of what is asked, where that is larger than a frame and the call reads it.
    pub request: Option<Arc<[u8]>>,
    /// How many calls of plugins stand above it.
    pub depth: u32,
    /// Stops the call's deadline while it waits for a person or in a queue.
    pub hold: Hold,
    /// What it may ask of the host.
    pub access: Access,
    /// What the file operations of the call keep off; without it, what rules deny to all.
    pub files: Option<Arc<CallFiles>>,
}

/// The objects of a session, as one call of a plugin has them.
#[derive(Clone)]
pub struct CallObjects {
    /// The session's.
    pub shared: SharedObjects,
    /// The tool that runs; the command's name where it is none.
    pub tool: String,
}

/// The execution environment of a session, as the calls of its plugins reach it.
pub trait EnvironmentAccess: Send + Sync {
    /// Answers what a tool asks of files, programs and terminals; `None` where the environment's
    /// own plugin asks, which has none.
    fn call(&self, asked: EnvironmentRequest) -> Option<BoxFuture<'static, Result<Served, Error>>>;

    /// Answers what a plugin asks of the resources that are kept in the environment.
    fn resources(&self, asked: EnvironmentRequest) -> BoxFuture<'static, Result<Served, Error>>;
}

/// What a call of a plugin asks of its session's environment.
pub struct EnvironmentRequest {
    /// The plugin that asks.
    pub plugin: PluginName,
    /// The session.
    pub session: SessionId,
    /// The instance that asks.
    pub asker: AskingInstance,
    /// What is asked.
    pub operation: String,
    /// Its frame.
    pub request: Vec<u8>,
    /// The limits of the call's file operations, if a call asks.
    pub files: Option<Arc<CallFiles>>,
    /// Who hears of it.
    pub tell: Tell,
}

impl CallSite {
    /// A call that belongs to no session.
    pub fn of_nobody() -> Self {
        Self::of(SessionId::from(""))
    }

    /// A call for a session, or for what stands in for one, that reaches nothing there.
    pub fn of(session: SessionId) -> Self {
        Self {
            session,
            facts: None,
            provider: None,
            call: None,
            objects: None,
            environment: None,
            alive: None,
            streamed: None,
            attachments: None,
            request: None,
            depth: 0,
            hold: Hold::default(),
            access: Access::Full,
            files: None,
        }
    }

    /// The same for a question to a plugin, which only reads.
    #[must_use]
    pub fn reading(self) -> Self {
        Self { access: Access::Reads, ..self }
    }

    /// The same for a tool or a command of that name, while it is not called.
    #[must_use]
    pub fn for_tool(self, name: &str, has_model: bool, scope: &CallScope) -> Self {
        let objects = CallObjects { shared: scope.objects.clone(), tool: name.to_owned() };
        let facts = has_model.then(|| scope.facts.clone());
        let (depth, hold) = (scope.depth, scope.hold.clone());
        Self { facts, objects: Some(objects), depth, hold, files: scope.files.clone(), ..self }
    }

    /// The same for the instance that the call has made, which outlives it.
    #[must_use]
    pub fn for_instance(&self) -> Self {
        Self {
            call: None,
            objects: None,
            alive: None,
            streamed: None,
            attachments: None,
            request: None,
            depth: 0,
            hold: Hold::default(),
            access: Access::Full,
            files: None,
            ..self.clone()
        }
    }

    /// Returns the tool or command that runs, where one does.
    pub fn running(&self) -> Option<&str> {
        self.objects.as_ref().map(|objects| objects.tool.as_str())
    }
}

/// Tells whoever follows a call.
pub fn teller(scope: &CallScope) -> Tell {
    let sink = scope.output.clone();
    Arc::new(move |delta| {
        sink.delta(delta);
    })
}
