//! The site of a plugin call: its session, what it may access there, and who follows it.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use jaato_loader::EngineServiceAnswer;
use jaato_session::{
    CallFiles, CallScope, DeadlineHold, SharedFacts, SharedObjects, StreamedOutput,
};
use jaato_types::{CallId, DataPart, Delta, Error, PluginName, SessionId};
use parking_lot::Mutex;

use crate::instances::AskingInstance;

/// Receives a service's deltas while it works, and shows them with the call.
pub type DeltaCallback = Arc<dyn Fn(Delta) + Send + Sync>;

/// Signals that bytes arrived from the network, whatever they contain.
pub type NetworkActivityCallback = Arc<dyn Fn() + Send + Sync>;

/// The attachments of a tool call so far.
pub type CallAttachments = Arc<Mutex<Vec<DataPart>>>;

/// The host features that a call may use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CallAccess {
    /// Everything that the plugin may request.
    #[default]
    Full,
    /// Only reads, because the call is only a question to the plugin.
    Reads,
    /// Reads, and what the user has granted to hooks.
    Hook,
}

/// The place of a call in a session.
#[derive(Clone)]
pub struct CallSite {
    /// The session, empty for a call typed by a user.
    pub session: SessionId,
    /// Model and tokens, if the session has a model.
    pub facts: Option<SharedFacts>,
    /// The name under `[providers]` by which a provider is used, if any.
    pub provider: Option<Arc<str>>,
    /// The id of the tool call, if it is one.
    pub call: Option<CallId>,
    /// The session's objects, if a tool or a command runs.
    pub objects: Option<CallObjects>,
    /// The session's execution environment.
    pub environment: Option<Arc<dyn EnvironmentAccess>>,
    /// Notified of each network piece while a provider answers a request.
    pub alive: Option<NetworkActivityCallback>,
    /// The call's streamed output, if a tool runs.
    pub streamed: Option<StreamedOutput>,
    /// The attachments of the result, if a tool runs.
    pub attachments: Option<CallAttachments>,
    /// The JSON of a request that is larger than a frame, which the call reads.
    pub request: Option<Arc<[u8]>>,
    /// Number of plugin calls above it.
    pub depth: u32,
    /// Pauses the call's deadline while it waits for a user or in a queue.
    pub hold: DeadlineHold,
    /// What it may request from the host.
    pub access: CallAccess,
    /// The limits of the call's file operations, or `None` for the general deny rules.
    pub files: Option<Arc<CallFiles>>,
}

/// The objects of a session for one call of a plugin.
#[derive(Clone)]
pub struct CallObjects {
    /// The session's objects.
    pub shared: SharedObjects,
    /// The running tool, or the command's name.
    pub tool: String,
}

/// A session's execution environment, as its plugins' calls access it.
pub trait EnvironmentAccess: Send + Sync {
    /// Answers a tool's request about files, programs and terminals. Returns `None` for the
    /// environment's own plugin, which cannot make such requests.
    fn call(
        &self,
        asked: EnvironmentRequest,
    ) -> Option<BoxFuture<'static, Result<EngineServiceAnswer, Error>>>;

    /// Answers a plugin's request about the resources in the environment.
    fn call_resources(
        &self,
        asked: EnvironmentRequest,
    ) -> BoxFuture<'static, Result<EngineServiceAnswer, Error>>;
}

/// A plugin call's request to its session's environment.
pub struct EnvironmentRequest {
    /// The plugin that asks.
    pub plugin: PluginName,
    /// The session.
    pub session: SessionId,
    /// The instance that asks.
    pub asker: AskingInstance,
    /// The operation.
    pub operation: String,
    /// Its frame.
    pub request: Vec<u8>,
    /// The limits of the call's file operations, if a call asks.
    pub files: Option<Arc<CallFiles>>,
    /// Receives the deltas.
    pub tell: DeltaCallback,
}

impl CallSite {
    /// Returns a site that belongs to no session.
    pub fn without_session() -> Self {
        Self::for_session(SessionId::from(""))
    }

    /// Returns a site for a session, or for an id that takes the place of a session, without access
    /// to anything there.
    pub fn for_session(session: SessionId) -> Self {
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
            hold: DeadlineHold::default(),
            access: CallAccess::Full,
            files: None,
        }
    }

    /// Returns the same site for a question to a plugin, which only reads.
    #[must_use]
    pub fn read_only(self) -> Self {
        Self { access: CallAccess::Reads, ..self }
    }

    /// Returns the same site for a hook of a plugin.
    #[must_use]
    pub fn for_hook(self) -> Self {
        Self { access: CallAccess::Hook, ..self }
    }

    /// Returns the same site for a tool or a command with this name, while it is not called.
    #[must_use]
    pub fn for_tool(self, name: &str, has_model: bool, scope: &CallScope) -> Self {
        let objects = CallObjects { shared: scope.objects.clone(), tool: name.to_owned() };
        let facts = has_model.then(|| scope.facts.clone());
        let (depth, hold) = (scope.depth, scope.hold.clone());
        Self { facts, objects: Some(objects), depth, hold, files: scope.files.clone(), ..self }
    }

    /// Returns the same site for the instance that the call has created, which outlives the call.
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
            hold: DeadlineHold::default(),
            access: CallAccess::Full,
            files: None,
            ..self.clone()
        }
    }

    /// Returns the running tool or command, if there is one.
    pub fn running_tool_name(&self) -> Option<&str> {
        self.objects.as_ref().map(|objects| objects.tool.as_str())
    }
}

/// Returns a receiver that shows deltas to a call's followers.
pub fn delta_callback(scope: &CallScope) -> DeltaCallback {
    let sink = scope.output.clone();
    Arc::new(move |delta| {
        sink.emit_delta(delta);
    })
}
