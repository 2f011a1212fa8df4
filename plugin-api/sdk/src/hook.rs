//! Hooks: the trait that authors implement for questions of the host outside the plugin's own
//! calls.

use std::future::{Future, ready};
use std::pin::Pin;

use jaato_types::hooks::{
    AfterTool, BeforeGc, BeforeGcAnswer, BeforePrompt, BeforeRequest, BeforeTool, EventBatch,
    GuardAnswer, Hook, PromptAddition, RequestChange, ResultChange, SessionEnd, SessionStart,
    SessionText, TurnEnd, TurnEndAnswer,
};
use jaato_types::{Error, ErrorKind, Frame, Result};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::context::Cx;
use crate::instance::{encode_value, invalid_frame_error};
use crate::state::State;

/// The hooks of a plugin. The host calls those methods that [`Hooks::ASKED`] lists.
/// `export_plugin! { state: …, hook: TYPE }` adds them to the plugin.
///
/// The context of a hook reads: session, configuration, store, files, the conversation. With a
/// grant it also runs programs (`process`, `host_process`) and asks models (`model.complete`).
/// Other services answer `permission_denied`. The host polls hooks on its plugin executor, so they
/// must not block. The user must grant each hook of a plugin that does not come with jaato.
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

    /// The hooks that the host calls. It calls no other method of this trait.
    const ASKED: &'static [Hook];

    /// How long the host waits for these hooks, in milliseconds. The user's
    /// `session.hook_deadline_ms` is the limit. Any other hook has 200 ms before a prompt, and 1 s
    /// otherwise. The time in which a hook waits for a model does not count.
    const DEADLINES_MS: &'static [(Hook, u64)] = &[];

    /// Returns text to add before the first prompt of a session, within 1 s.
    ///
    /// # Errors
    /// If it fails, the host sends the prompt without the text and reports the error to the user.
    fn session_start(
        _cx: &Cx<Self::State>,
        _asked: SessionStart,
    ) -> impl Future<Output = Result<SessionText>> + Send {
        ready(Err(missing_hook_error(Hook::SessionStart)))
    }

    /// Returns text to add before a prompt, or refuses the prompt, within 200 ms. The text becomes
    /// a part of the prompt's message, named after the plugin, and stays in the conversation.
    ///
    /// # Errors
    /// If it fails, the host sends the prompt without the text and reports the error to the user.
    fn before_prompt(
        _cx: &Cx<Self::State>,
        _asked: BeforePrompt,
    ) -> impl Future<Output = Result<PromptAddition>> + Send {
        ready(Err(missing_hook_error(Hook::BeforePrompt)))
    }

    /// Changes options of a request that the provider supports, and adds text after its newest
    /// message, within 1 s.
    ///
    /// # Errors
    /// If it fails, the host sends the request unchanged and reports the error to the user.
    fn before_request(
        _cx: &Cx<Self::State>,
        _asked: BeforeRequest,
    ) -> impl Future<Output = Result<RequestChange>> + Send {
        ready(Err(missing_hook_error(Hook::BeforeRequest)))
    }

    /// Decides about a tool call before the user's rules do, within 1 s. It gets all calls: from
    /// the model, from users and from other plugins.
    ///
    /// # Errors
    /// If it fails, the host denies the call and names the plugin, because a failing guard must not
    /// allow anything.
    fn before_tool(
        _cx: &Cx<Self::State>,
        _asked: BeforeTool,
    ) -> impl Future<Output = Result<GuardAnswer>> + Send {
        ready(Err(missing_hook_error(Hook::BeforeTool)))
    }

    /// Changes a tool's result before the model gets it, within 1 s.
    ///
    /// # Errors
    /// If it fails, the result stays unchanged, and the host reports the error to the user.
    fn after_tool(
        _cx: &Cx<Self::State>,
        _asked: AfterTool,
    ) -> impl Future<Output = Result<ResultChange>> + Send {
        ready(Err(missing_hook_error(Hook::AfterTool)))
    }

    /// Decides whether a turn ends with the model's answer, within 1 s. The host continues a turn
    /// at most [`TURN_CONTINUATIONS_MAX`](jaato_types::hooks::TURN_CONTINUATIONS_MAX) times.
    ///
    /// # Errors
    /// If it fails, the turn ends, and the host reports the error to the user.
    fn turn_end(
        _cx: &Cx<Self::State>,
        _asked: TurnEnd,
    ) -> impl Future<Output = Result<TurnEndAnswer>> + Send {
        ready(Err(missing_hook_error(Hook::TurnEnd)))
    }

    /// Acts before a gc removes messages, or refuses it, within 1 s. The gc waits for it.
    ///
    /// # Errors
    /// If it fails, the gc runs all the same, and the host reports the error to the user.
    fn before_gc(
        _cx: &Cx<Self::State>,
        _asked: BeforeGc,
    ) -> impl Future<Output = Result<BeforeGcAnswer>> + Send {
        ready(Err(missing_hook_error(Hook::BeforeGc)))
    }

    /// Acts at the end of a session that had a prompt, within 1 s.
    ///
    /// # Errors
    /// If it fails, the session ends all the same, and the host reports the error to the user.
    fn session_end(
        _cx: &Cx<Self::State>,
        _asked: SessionEnd,
    ) -> impl Future<Output = Result<()>> + Send {
        ready(Err(missing_hook_error(Hook::SessionEnd)))
    }

    /// Receives the session's events. Nothing waits for it. If events arrive faster than it handles
    /// them, the host drops and counts them.
    ///
    /// # Errors
    /// After three errors in a row, the plugin gets no more events in this session.
    fn events(_cx: &Cx<Self::State>, _told: EventBatch) -> impl Future<Output = Result<()>> + Send {
        ready(Err(missing_hook_error(Hook::Event)))
    }
}

/// Returns the error for a hook in [`Hooks::ASKED`] whose method is missing.
fn missing_hook_error(hook: Hook) -> Error {
    let name = hook.name();
    let text = format!("`Hooks::ASKED` lists `{name}`, but the hook is not implemented");
    Error::new(ErrorKind::UnknownOperation, text)
}

type HookAnswerFuture<'a> = Pin<Box<dyn Future<Output = Result<Vec<u8>>> + Send + 'a>>;

/// The SDK's access to the hooks.
pub struct HookEntry<S: State> {
    pub(crate) asked: &'static [Hook],
    pub(crate) deadlines_ms: &'static [(Hook, u64)],
    pub(crate) answer: for<'a> fn(&'a Cx<S>, Hook, &'a [u8]) -> HookAnswerFuture<'a>,
}

impl<S: State> HookEntry<S> {
    /// Creates the entry.
    pub const fn for_hooks<H: Hooks<State = S>>() -> Self {
        Self {
            asked: H::ASKED,
            deadlines_ms: H::DEADLINES_MS,
            answer: |cx, hook, frame| Box::pin(answer_hook::<H>(cx, hook, frame)),
        }
    }
}

async fn answer_hook<H: Hooks>(cx: &Cx<H::State>, hook: Hook, frame: &[u8]) -> Result<Vec<u8>> {
    match hook {
        Hook::SessionStart => encode_value(&H::session_start(cx, read_request(frame)?).await?),
        Hook::BeforePrompt => encode_value(&H::before_prompt(cx, read_request(frame)?).await?),
        Hook::BeforeRequest => encode_value(&H::before_request(cx, read_request(frame)?).await?),
        Hook::BeforeTool => encode_value(&H::before_tool(cx, read_request(frame)?).await?),
        Hook::AfterTool => encode_value(&H::after_tool(cx, read_request(frame)?).await?),
        Hook::TurnEnd => encode_value(&H::turn_end(cx, read_request(frame)?).await?),
        Hook::BeforeGc => encode_value(&H::before_gc(cx, read_request(frame)?).await?),
        Hook::SessionEnd => empty_frame(H::session_end(cx, read_request(frame)?).await?),
        Hook::Event => empty_frame(H::events(cx, read_request(frame)?).await?),
        Hook::Unknown => Err(missing_hook_error(hook)),
    }
}

fn empty_frame((): ()) -> Result<Vec<u8>> {
    encode_value(&Map::<String, Value>::new())
}

fn read_request<T: DeserializeOwned>(frame: &[u8]) -> Result<T> {
    Frame::read(frame).map_err(invalid_frame_error)
}
