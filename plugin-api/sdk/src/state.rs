//! The state that everything in a plugin shares, one per instance.

use std::future::{Future, ready};

use jaato_types::hooks::{CompleteWords, WordChoices};
use jaato_types::tools_set::{ToolsAwaited, ToolsMissing};
use jaato_types::{Description, Error, ErrorKind, Output, Result};
use serde_json::Value;

use crate::resources::{NewResource, Resources};
use crate::{Cx, Home};

/// A plugin's living state: made per session (or per host process, with `scope: host`), shared by
/// its tools, commands, gc and provider. Keep nothing in globals: sessions must not see each other.
///
/// All methods are called on the host's plugin executor and must not block.
pub trait State: Sized + Send + Sync + 'static {
    /// Makes the state, fresh or from what [`State::save`] gave for an earlier instance (resume,
    /// reload, a restarted worker; possibly by an older version of the plugin).
    ///
    /// # Errors
    /// Whatever makes the plugin unusable. With `saved`, the host keeps the bytes and makes a fresh
    /// state.
    fn create(home: &Home, saved: Option<Value>) -> impl Future<Output = Result<Self>> + Send;

    /// Gives what the next [`State::create`] needs, at most 8 MiB. Asked in a worker after each
    /// call that is not read-only; inside the host when a newer edition of the plugin follows, as
    /// there nothing else is lost.
    ///
    /// # Errors
    /// The person is told once, the log has it, and the host keeps what it had; so where it takes
    /// longer than 2 s.
    fn save(&self) -> impl Future<Output = Result<Option<Value>>> + Send {
        ready(Ok(None))
    }

    /// Ends what the instance has going on. The host waits at most 2 s for calls before it.
    fn close(&self) -> impl Future<Output = ()> + Send {
        ready(())
    }

    /// Adds to the plugin's description: instructions for the prompt, commands, configuration
    /// schema, assets, credentials. Tools and provider are filled in by the sdk: a description that
    /// holds tools of its own is refused. Runs without an instance.
    fn describe(_description: &mut Description) {}

    /// Runs one of the described commands.
    ///
    /// # Errors
    /// What the person is told.
    fn command(
        _cx: &Cx<Self>,
        name: &str,
        _arguments: Value,
    ) -> impl Future<Output = Result<Output>> + Send {
        let text = format!("the plugin has no command `{name}`");
        ready(Err(Error::new(ErrorKind::UnknownOperation, text)))
    }

    /// Offers words that may come next while a person types a command whose description says
    /// `completes`, within 1 s. The context only reads. Choices that the command's schema lists
    /// need no answer: the host knows them.
    ///
    /// # Errors
    /// Nothing is offered.
    fn complete_words(
        _cx: &Cx<Self>,
        asked: CompleteWords,
    ) -> impl Future<Output = Result<WordChoices>> + Send {
        let text = format!("the plugin offers no words for the command `{}`", asked.command);
        ready(Err(Error::new(ErrorKind::UnknownOperation, text)))
    }

    /// Waits for tools that the plugin has not set yet, with `tools: dynamic` and `tool_prefixes`
    /// alone. Starts what these tools need, and answers when they are set or cannot be, at the
    /// latest after `wait_ms`. The host asks again while something is pending, so the plugin bounds
    /// how long a source stays pending. The context only reads.
    ///
    /// # Errors
    /// The host waits no longer.
    fn await_tools(
        _cx: &Cx<Self>,
        _awaited: ToolsAwaited,
    ) -> impl Future<Output = Result<ToolsMissing>> + Send {
        ready(Ok(ToolsMissing::default()))
    }

    /// Runs a tool that the plugin has set while it runs
    /// ([`Reporter::set_tools`](crate::Reporter::set_tools)); with `tools: dynamic` alone. The
    /// arguments match the tool's schema.
    ///
    /// # Errors
    /// What the model is told.
    fn call_tool(
        _cx: &Cx<Self>,
        name: &str,
        _arguments: Value,
    ) -> impl Future<Output = Result<Output>> + Send {
        let text = format!("the plugin has no tool `{name}`");
        ready(Err(Error::new(ErrorKind::UnknownTool, text)))
    }

    /// Returns where it holds its resources; nothing where it keeps none. Without this the host can
    /// neither close them nor lend them to others.
    fn resources(&self) -> Option<&Resources> {
        None
    }

    /// Makes a resource that the description names a factory of. The host asks once at a time for
    /// each name, and registers the result.
    ///
    /// # Errors
    /// What whoever wanted it is told.
    fn create_resource(
        _cx: &Cx<Self>,
        name: &str,
    ) -> impl Future<Output = Result<NewResource>> + Send {
        let text = format!("the plugin does not make the resource `{name}`");
        ready(Err(Error::new(ErrorKind::UnknownOperation, text)))
    }
}

impl State for () {
    async fn create(_home: &Home, _saved: Option<Value>) -> Result<Self> {
        Ok(())
    }
}
