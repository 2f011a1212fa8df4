//! What a plugin is asked beside its own calls: what authors implement.

use std::future::{Future, ready};
use std::pin::Pin;

use jaato_types::hooks::{
    AfterTool, BeforePrompt, BeforeRequest, BeforeTool, EventsTold, GuardAnswer, Hook,
    PromptAddition, RequestChange, ResultChange,
};
use jaato_types::{Error, ErrorKind, Frame, Result};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::context::Cx;
use crate::instance::{bad_frame, value_frame};
use crate::state::State;

/// Answers that a plugin gives beside its own calls. [`Hooks::ASKED`] says which of the methods the
/// host calls; `export_plugin! { state: …, hook: TYPE }` makes it part of the plugin.
///
/// The context of all of them only reads: session, configuration, store, files, the conversation.
/// Any other service is answered with `permission_denied`. Polled on the host's plugin executor:
/// none may block. A person grants each hook of a plugin that is not shipped with jaato.
///
/// ```
/// # use jaato_plugin_sdk::prelude::*;
/// use jaato_plugin_sdk::hooks::{BeforeTool, GuardAnswer, Hook, Hooks};
///
/// /// Lets nothing be written on a Friday.
/// struct NoFridays;
///
/// impl Hooks for NoFridays {
///     type State = ();
///
///     const ASKED: &'static [Hook] = &[Hook::BeforeTool];
///
///     async fn before_tool(_cx: &Cx, asked: BeforeTool) -> Result<GuardAnswer> {
///         if asked.annotations.read_only {
///             return Ok(GuardAnswer::GoOn);
///         }
///         Ok(GuardAnswer::deny("nothing is changed on a Friday"))
///     }
/// }
/// # export_plugin! { state: (), hook: NoFridays }
/// # fn main() {}
/// ```
pub trait Hooks: Send + Sync + 'static {
    /// The plugin's state, as `export_plugin!` names it.
    type State: State;

    /// What the plugin wants to be asked; nothing else of this trait is called.
    const ASKED: &'static [Hook];

    /// Gives text to put before a prompt, within 200 ms. It becomes a part of the prompt's message,
    /// named after the plugin, and stays in the conversation.
    ///
    /// # Errors
    /// The prompt goes without it, and the person is told.
    fn before_prompt(
        _cx: &Cx<Self::State>,
        _asked: BeforePrompt,
    ) -> impl Future<Output = Result<PromptAddition>> + Send {
        ready(Err(unanswered(Hook::BeforePrompt)))
    }

    /// Changes options of a request that the provider honours, and puts text behind its newest
    /// message, within 1 s.
    ///
    /// # Errors
    /// The request goes as it is, and the person is told.
    fn before_request(
        _cx: &Cx<Self::State>,
        _asked: BeforeRequest,
    ) -> impl Future<Output = Result<RequestChange>> + Send {
        ready(Err(unanswered(Hook::BeforeRequest)))
    }

    /// Says what becomes of a tool call before the person's rules decide about it, within 1 s. It
    /// sees every call: the model's, a person's, another plugin's.
    ///
    /// # Errors
    /// The call is denied, and the plugin is named: a guard that fails opens no gate.
    fn before_tool(
        _cx: &Cx<Self::State>,
        _asked: BeforeTool,
    ) -> impl Future<Output = Result<GuardAnswer>> + Send {
        ready(Err(unanswered(Hook::BeforeTool)))
    }

    /// Says what becomes of a tool's result before the model is given it, within 1 s.
    ///
    /// # Errors
    /// The result stays as it is, and the person is told.
    fn after_tool(
        _cx: &Cx<Self::State>,
        _asked: AfterTool,
    ) -> impl Future<Output = Result<ResultChange>> + Send {
        ready(Err(unanswered(Hook::AfterTool)))
    }

    /// Hears what happens in the session, beside it: nothing waits for this. What comes faster than
    /// it is taken is counted and left out.
    ///
    /// # Errors
    /// After the third in a row the plugin is told nothing more in this session.
    fn events(_cx: &Cx<Self::State>, _told: EventsTold) -> impl Future<Output = Result<()>> + Send {
        ready(Err(unanswered(Hook::Event)))
    }
}

/// A plugin that asks to be asked promises a method.
fn unanswered(hook: Hook) -> Error {
    let name = hook.name();
    let text = format!("`Hooks::ASKED` has `{name}`, and there is no method for it");
    Error::new(ErrorKind::UnknownOperation, text)
}

type Running<'a> = Pin<Box<dyn Future<Output = Result<Vec<u8>>> + Send + 'a>>;

/// How the sdk reaches the hooks.
pub struct HookEntry<S: State> {
    pub(crate) asked: &'static [Hook],
    pub(crate) answer: for<'a> fn(&'a Cx<S>, Hook, &'a [u8]) -> Running<'a>,
}

impl<S: State> HookEntry<S> {
    /// Makes the entry.
    pub const fn of<H: Hooks<State = S>>() -> Self {
        Self { asked: H::ASKED, answer: |cx, hook, frame| Box::pin(answer::<H>(cx, hook, frame)) }
    }
}

async fn answer<H: Hooks>(cx: &Cx<H::State>, hook: Hook, frame: &[u8]) -> Result<Vec<u8>> {
    match hook {
        Hook::BeforePrompt => value_frame(&H::before_prompt(cx, read(frame)?).await?),
        Hook::BeforeRequest => value_frame(&H::before_request(cx, read(frame)?).await?),
        Hook::BeforeTool => value_frame(&H::before_tool(cx, read(frame)?).await?),
        Hook::AfterTool => value_frame(&H::after_tool(cx, read(frame)?).await?),
        Hook::Event => {
            H::events(cx, read(frame)?).await?;
            value_frame(&Map::<String, Value>::new())
        }
        Hook::Unknown => Err(unanswered(hook)),
    }
}

fn read<T: DeserializeOwned>(frame: &[u8]) -> Result<T> {
    Frame::read(frame).map_err(bad_frame)
}
