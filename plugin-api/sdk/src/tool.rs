//! Tools: the traits that authors implement, and the entries that collect a plugin's tools.

use std::future::{Future, ready};
use std::pin::Pin;

use jaato_types::hooks::Preview;
use jaato_types::{ConditionAnswer, ConditionDecision, Error, ErrorKind, Output, Result, ToolSpec};

use crate::context::{Cx, Reporter};
use crate::state::State;

/// The arguments and the spec of a tool. Derive it with [`derive@crate::ToolInput`], which can also
/// use a literal JSON Schema instead of the generated one.
///
/// Implement it manually if the spec is only known at run time. `parse` must then refuse arguments
/// that do not match the schema, because commands and tests may call the tool without the host's
/// validation.
pub trait ToolInput: Sized + Send + 'static {
    /// Returns the spec.
    fn spec() -> ToolSpec;

    /// Parses arguments. The host has validated them against the spec's schema.
    ///
    /// # Errors
    /// `invalid_arguments`.
    fn parse(json: &[u8]) -> Result<Self>;
}

/// A tool in async Rust. The argument struct *is* the tool.
pub trait Tool: ToolInput {
    /// The plugin's state, as `export_plugin!` names it.
    type State: State;

    /// Runs one call. The host polls it on its plugin executor, so it must not block (see
    /// [`Cx::blocking`]). On a cancel, the host drops the future at its next await.
    ///
    /// # Errors
    /// The model gets the error and can act on it.
    fn call(self, cx: &Cx<Self::State>) -> impl Future<Output = Result<Output>> + Send;

    /// Decides whether the model is offered the tool. The host calls it before each request, but
    /// only if the spec has `available_if(asked, reason = "…")`. It must be quick, because the
    /// model waits.
    ///
    /// ```
    /// # use jaato_plugin_sdk::prelude::*;
    /// /// Sends the letter that was written.
    /// #[derive(ToolInput)]
    /// #[tool(available_if(asked, reason = "once a letter was written by `write_letter`"))]
    /// struct SendLetter {}
    ///
    /// impl Tool for SendLetter {
    ///     type State = ();
    ///
    ///     async fn call(self, _cx: &Cx) -> Result<Output> {
    ///         Ok(Output::text("sent"))
    ///     }
    ///
    ///     async fn available_if(cx: &Cx) -> Result<ConditionAnswer> {
    ///         Ok(match cx.objects().hidden("letter").await? {
    ///             Some(_) => ConditionAnswer::yes(),
    ///             None => ConditionAnswer::no(),
    ///         })
    ///     }
    /// }
    /// # tool!(SendLetter);
    /// # export_plugin! { state: (), tools }
    /// # fn main() {}
    /// ```
    ///
    /// # Errors
    /// If it fails, the tool is not offered, and the host tells the user why.
    fn available_if(_cx: &Cx<Self::State>) -> impl Future<Output = Result<ConditionAnswer>> + Send {
        ready(Err(missing_method_error::<Self>("available_if")))
    }

    /// Decides whether the tool runs automatically, and with which arguments. The host calls it
    /// before each request until the tool has run, and again after the session's objects change,
    /// but only if the spec has `run_if(asked)`. It must be quick, because the model waits.
    ///
    /// # Errors
    /// If it fails, the tool does not run, and the host tells the user why.
    fn run_if(_cx: &Cx<Self::State>) -> impl Future<Output = Result<ConditionAnswer>> + Send {
        ready(Err(missing_method_error::<Self>("run_if")))
    }

    /// Previews the changes of the call for the permission prompt, within 1 s. The host calls it
    /// only if the spec has `previews`. The context is read-only.
    ///
    /// # Errors
    /// If it fails, the prompt appears without a preview.
    fn preview(self, _cx: &Cx<Self::State>) -> impl Future<Output = Result<Preview>> + Send {
        ready(Err(missing_method_error::<Self>("preview")))
    }
}

/// A tool in plain blocking Rust, which runs on the host's blocking pool.
pub trait SyncTool: ToolInput {
    /// The plugin's state, as `export_plugin!` names it.
    type State: State;

    /// Runs one call. It may block, but should check [`Reporter::is_cancelled`] regularly.
    ///
    /// # Errors
    /// The model gets the error and can act on it.
    fn call(self, state: &Self::State, host: &Reporter) -> Result<Output>;

    /// Like [`Tool::available_if`], but may block.
    ///
    /// # Errors
    /// As for [`Tool::available_if`].
    fn available_if(_state: &Self::State, _host: &Reporter) -> Result<ConditionAnswer> {
        Err(missing_method_error::<Self>("available_if"))
    }

    /// Like [`Tool::run_if`], but may block.
    ///
    /// # Errors
    /// As for [`Tool::run_if`].
    fn run_if(_state: &Self::State, _host: &Reporter) -> Result<ConditionAnswer> {
        Err(missing_method_error::<Self>("run_if"))
    }

    /// Like [`Tool::preview`], but may block.
    ///
    /// # Errors
    /// As for [`Tool::preview`].
    fn preview(self, _state: &Self::State, _host: &Reporter) -> Result<Preview> {
        Err(missing_method_error::<Self>("preview"))
    }
}

/// Returns the error for a spec with `asked` or `previews` whose method is missing.
fn missing_method_error<T: ToolInput>(method: &str) -> Error {
    let word = if method == "preview" { "previews" } else { "asked" };
    let text = format!(
        "the tool `{}` declares `{word}` but does not implement `{method}`",
        T::spec().name
    );
    Error::new(ErrorKind::UnknownOperation, text)
}

/// Registers a [`Tool`] of this crate. Put it next to the tool's `impl`.
// `crate`, not `$crate`: `export_plugin!` creates the entry's type in the author's crate.
#[allow(clippy::crate_in_macro_def)]
#[macro_export]
macro_rules! tool {
    ($tool:ty) => {
        $crate::__private::inventory::submit! {
            crate::__jaato::Entry($crate::__private::ToolEntry::for_tool::<$tool>())
        }
    };
}

/// Registers a [`SyncTool`] of this crate. Put it next to the tool's `impl`.
#[allow(clippy::crate_in_macro_def)]
#[macro_export]
macro_rules! sync_tool {
    ($tool:ty) => {
        $crate::__private::inventory::submit! {
            crate::__jaato::Entry($crate::__private::ToolEntry::for_sync_tool::<$tool>())
        }
    };
}

type ToolFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'a>>;

/// The SDK's access to one tool. It is typed by the plugin's state, so that a tool with another
/// state does not compile.
pub struct ToolEntry<S: State> {
    pub(crate) spec: fn() -> ToolSpec,
    pub(crate) call: for<'a> fn(&'a Cx<S>, &'a [u8]) -> ToolFuture<'a, Output>,
    pub(crate) condition:
        for<'a> fn(&'a Cx<S>, ConditionDecision) -> ToolFuture<'a, ConditionAnswer>,
    pub(crate) preview: for<'a> fn(&'a Cx<S>, &'a [u8]) -> ToolFuture<'a, Preview>,
}

impl<S: State> ToolEntry<S> {
    /// Creates the entry of a [`Tool`].
    pub const fn for_tool<T: Tool<State = S>>() -> Self {
        let (call, condition, preview) = (call_tool::<T>, check_condition::<T>, preview_tool::<T>);
        Self { spec: T::spec, call, condition, preview }
    }

    /// Creates the entry of a [`SyncTool`].
    pub const fn for_sync_tool<T: SyncTool<State = S>>() -> Self {
        let (call, condition, preview) =
            (call_sync_tool::<T>, check_sync_condition::<T>, preview_sync_tool::<T>);
        Self { spec: T::spec, call, condition, preview }
    }
}

/// Parses arguments. The error names the tool.
fn parse_tool_arguments<T: ToolInput>(arguments: &[u8]) -> Result<T> {
    T::parse(arguments).map_err(|error| match error.kind {
        ErrorKind::InvalidArguments => {
            let message = format!("the arguments of `{}`: {}", T::spec().name, error.message);
            Error { message, ..error }
        }
        _ => error,
    })
}

fn call_tool<'a, T: Tool>(cx: &'a Cx<T::State>, arguments: &'a [u8]) -> ToolFuture<'a, Output> {
    Box::pin(async move { parse_tool_arguments::<T>(arguments)?.call(cx).await })
}

fn call_sync_tool<'a, T: SyncTool>(
    cx: &'a Cx<T::State>,
    arguments: &'a [u8],
) -> ToolFuture<'a, Output> {
    Box::pin(async move {
        let tool = parse_tool_arguments::<T>(arguments)?;
        let state = cx.shared_state();
        cx.blocking(move |host| tool.call(&state, host)).await?
    })
}

fn preview_tool<'a, T: Tool>(cx: &'a Cx<T::State>, arguments: &'a [u8]) -> ToolFuture<'a, Preview> {
    Box::pin(async move { parse_tool_arguments::<T>(arguments)?.preview(cx).await })
}

fn preview_sync_tool<'a, T: SyncTool>(
    cx: &'a Cx<T::State>,
    arguments: &'a [u8],
) -> ToolFuture<'a, Preview> {
    Box::pin(async move {
        let tool = parse_tool_arguments::<T>(arguments)?;
        let state = cx.shared_state();
        cx.blocking(move |host| tool.preview(&state, host)).await?
    })
}

fn check_condition<T: Tool>(
    cx: &Cx<T::State>,
    deciding: ConditionDecision,
) -> ToolFuture<'_, ConditionAnswer> {
    match deciding {
        ConditionDecision::Available => Box::pin(T::available_if(cx)),
        ConditionDecision::Run => Box::pin(T::run_if(cx)),
        ConditionDecision::Unknown => Box::pin(ready(Ok(ConditionAnswer::no()))),
    }
}

fn check_sync_condition<T: SyncTool>(
    cx: &Cx<T::State>,
    deciding: ConditionDecision,
) -> ToolFuture<'_, ConditionAnswer> {
    Box::pin(async move {
        let state = cx.shared_state();
        let work = move |host: &Reporter| match deciding {
            ConditionDecision::Available => T::available_if(&state, host),
            ConditionDecision::Run => T::run_if(&state, host),
            ConditionDecision::Unknown => Ok(ConditionAnswer::no()),
        };
        cx.blocking(work).await?
    })
}
