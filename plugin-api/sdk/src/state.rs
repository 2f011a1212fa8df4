//! The state that all parts of a plugin share, one per instance.

use std::future::{Future, ready};

use jaato_types::hooks::{CompleteWords, WordChoices};
use jaato_types::tools_set::{ToolsAwaited, ToolsMissing};
use jaato_types::{Description, Error, ErrorKind, Output, Result};
use serde_json::Value;

use crate::resources::{NewResource, Resources};
use crate::{Cx, Home};

/// A plugin's state, created per session (or per host process, with `scope: host`). Its tools,
/// commands, gc and provider share it. Keep nothing in globals, because sessions must not see each
/// other.
///
/// The host calls all methods on its plugin executor, so they must not block.
pub trait State: Sized + Send + Sync + 'static {
    /// Creates the state, either fresh or from the value that [`State::save`] returned for an
    /// earlier instance (after a resume, a reload or a worker restart, and possibly by an older
    /// version of the plugin).
    ///
    /// # Errors
    /// Any error that makes the plugin unusable. If `saved` was given, the host keeps the bytes and
    /// creates a fresh state.
    fn create(home: &Home, saved: Option<Value>) -> impl Future<Output = Result<Self>> + Send;

    /// Returns the value for the next [`State::create`], at most 8 MiB. In a worker, the host calls
    /// it after each call that is not read-only. Inside the host, it calls it only before it loads
    /// a newer edition of the plugin, because nothing else loses the state there.
    ///
    /// # Errors
    /// If it fails or takes longer than 2 s, the host tells the user once, logs the error, and
    /// keeps the previous value.
    fn save(&self) -> impl Future<Output = Result<Option<Value>>> + Send {
        ready(Ok(None))
    }

    /// Ends all activity of the instance. Before that, the host waits at most 2 s for running
    /// calls.
    fn close(&self) -> impl Future<Output = ()> + Send {
        ready(())
    }

    /// Extends the plugin's description: instructions for the system prompt, commands,
    /// configuration schema, assets, credentials. The SDK fills in tools and provider, and refuses
    /// a description that already contains tools. Runs without an instance.
    fn describe(_description: &mut Description) {}

    /// Runs one of the described commands.
    ///
    /// # Errors
    /// The host shows the error to the user.
    fn command(
        _cx: &Cx<Self>,
        name: &str,
        _arguments: Value,
    ) -> impl Future<Output = Result<Output>> + Send {
        let text = format!("the plugin has no command `{name}`");
        ready(Err(Error::new(ErrorKind::UnknownOperation, text)))
    }

    /// Returns completions while a user types a command whose description sets `completes`, within
    /// 1 s. The context is read-only. The host already knows the choices that the command's schema
    /// lists.
    ///
    /// # Errors
    /// If it fails, the user gets no completions.
    fn complete_words(
        _cx: &Cx<Self>,
        asked: CompleteWords,
    ) -> impl Future<Output = Result<WordChoices>> + Send {
        let text = format!("the plugin offers no completions for the command `{}`", asked.command);
        ready(Err(Error::new(ErrorKind::UnknownOperation, text)))
    }

    /// Waits for tools that the plugin has not set yet. Only used with `tools: dynamic` and
    /// `tool_prefixes`. It starts what these tools need, and returns when they are set or have
    /// failed, or after `wait_ms`. The host calls it again while a source is pending, so the plugin
    /// must limit how long that can be. The context is read-only.
    ///
    /// # Errors
    /// If it fails, the host stops waiting.
    fn await_tools(
        _cx: &Cx<Self>,
        _awaited: ToolsAwaited,
    ) -> impl Future<Output = Result<ToolsMissing>> + Send {
        ready(Ok(ToolsMissing::default()))
    }

    /// Runs a tool that the plugin set while it runs
    /// ([`Reporter::set_tools`](crate::Reporter::set_tools)). Only used with `tools: dynamic`. The
    /// arguments match the tool's schema.
    ///
    /// # Errors
    /// The model gets the error.
    fn call_tool(
        _cx: &Cx<Self>,
        name: &str,
        _arguments: Value,
    ) -> impl Future<Output = Result<Output>> + Send {
        let text = format!("the plugin has no tool `{name}`");
        ready(Err(Error::new(ErrorKind::UnknownTool, text)))
    }

    /// Returns the plugin's resources, or `None` if there are none. The host needs them to close
    /// resources and to offer them to other plugins.
    fn resources(&self) -> Option<&Resources> {
        None
    }

    /// Creates a resource whose factory is in the description. The host makes one call at a time
    /// for each name, and registers the result.
    ///
    /// # Errors
    /// The caller that requested the resource gets the error.
    fn create_resource(
        _cx: &Cx<Self>,
        name: &str,
    ) -> impl Future<Output = Result<NewResource>> + Send {
        let text = format!("the plugin cannot create the resource `{name}`");
        ready(Err(Error::new(ErrorKind::UnknownOperation, text)))
    }
}

impl State for () {
    async fn create(_home: &Home, _saved: Option<Value>) -> Result<Self> {
        Ok(())
    }
}
