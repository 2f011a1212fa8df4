//! Tools: what authors implement, and the entry by which a plugin's tools are collected.

use std::future::{Future, ready};
use std::pin::Pin;

use jaato_types::hooks::Preview;
use jaato_types::{ConditionAnswer, Deciding, Error, ErrorKind, Output, Result, ToolSpec};

use crate::context::{Cx, Reporter};
use crate::state::State;

/// A tool's arguments and spec. Derive it; see [`derive@crate::ToolInput`], which also takes a
/// literal JSON Schema in place of the one that it makes of the struct.
///
/// By hand it is for specs that are only known at run time. `parse` refuses then what the schema
/// does not allow: commands and tests may call the tool without the host's check.
pub trait ToolInput: Sized + Send + 'static {
    /// Returns the spec.
    fn spec() -> ToolSpec;

    /// Reads arguments. The host has checked them against the spec's schema.
    ///
    /// # Errors
    /// `invalid_arguments`.
    fn parse(json: &[u8]) -> Result<Self>;
}

/// A tool in async Rust. The argument struct *is* the tool.
pub trait Tool: ToolInput {
    /// The plugin's state, as `export_plugin!` names it.
    type State: State;

    /// Runs one call. Polled on the host's plugin executor: must not block (see [`Cx::blocking`]).
    /// On a cancel the future is dropped at its next await.
    ///
    /// # Errors
    /// What the model is told; it can act on it.
    fn call(self, cx: &Cx<Self::State>) -> impl Future<Output = Result<Output>> + Send;

    /// Tells whether the model is offered the tool now. Asked before each request, and only where
    /// the spec says `available_if(asked, reason = "…")`; must be quick, for the model waits.
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
    /// The tool is not offered, and the person is told why.
    fn available_if(_cx: &Cx<Self::State>) -> impl Future<Output = Result<ConditionAnswer>> + Send {
        ready(Err(unanswered::<Self>("available_if")))
    }

    /// Tells whether the tool runs by itself now, and with which arguments. Asked before each
    /// request until it ran, then again when the session's objects changed, and only where the spec
    /// says `run_if(asked)`; must be quick, for the model waits.
    ///
    /// # Errors
    /// It does not run, and the person is told why.
    fn run_if(_cx: &Cx<Self::State>) -> impl Future<Output = Result<ConditionAnswer>> + Send {
        ready(Err(unanswered::<Self>("run_if")))
    }

    /// Shows a person what the call would change, before they are asked whether it may run; within
    /// 1 s, and only where the spec says `previews`. The context only reads.
    ///
    /// # Errors
    /// The question is asked without it.
    fn preview(self, _cx: &Cx<Self::State>) -> impl Future<Output = Result<Preview>> + Send {
        ready(Err(unanswered::<Self>("preview")))
    }
}

/// A tool in plain blocking Rust, run on the host's blocking pool.
pub trait SyncTool: ToolInput {
    /// The plugin's state, as `export_plugin!` names it.
    type State: State;

    /// Runs one call. May block; looks at [`Reporter::is_cancelled`] now and then.
    ///
    /// # Errors
    /// What the model is told; it can act on it.
    fn call(self, state: &Self::State, host: &Reporter) -> Result<Output>;

    /// As [`Tool::available_if`]; may block.
    ///
    /// # Errors
    /// As there.
    fn available_if(_state: &Self::State, _host: &Reporter) -> Result<ConditionAnswer> {
        Err(unanswered::<Self>("available_if"))
    }

    /// As [`Tool::run_if`]; may block.
    ///
    /// # Errors
    /// As there.
    fn run_if(_state: &Self::State, _host: &Reporter) -> Result<ConditionAnswer> {
        Err(unanswered::<Self>("run_if"))
    }

    /// As [`Tool::preview`]; may block.
    ///
    /// # Errors
    /// As there.
    fn preview(self, _state: &Self::State, _host: &Reporter) -> Result<Preview> {
        Err(unanswered::<Self>("preview"))
    }
}

/// A spec that says `asked` or `previews` promises a method.
fn unanswered<T: ToolInput>(method: &str) -> Error {
    let word = if method == "preview" { "previews" } else { "asked" };
    let text = format!("the tool `{}` says `{word}` and has no `{method}`", T::spec().name);
    Error::new(ErrorKind::UnknownOperation, text)
}

/// Collects a [`Tool`] of this crate; one line beside its `impl`.
// `crate`, not `$crate`: the entry's type is made by `export_plugin!` in the author's crate.
#[allow(clippy::crate_in_macro_def)]
#[macro_export]
macro_rules! tool {
    ($tool:ty) => {
        $crate::__private::inventory::submit! {
            crate::__jaato::Entry($crate::__private::ToolEntry::of::<$tool>())
        }
    };
}

/// Collects a [`SyncTool`] of this crate; one line beside its `impl`.
#[allow(clippy::crate_in_macro_def)]
#[macro_export]
macro_rules! sync_tool {
    ($tool:ty) => {
        $crate::__private::inventory::submit! {
            crate::__jaato::Entry($crate::__private::ToolEntry::of_sync::<$tool>())
        }
    };
}

type Running<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'a>>;

/// How the sdk reaches one tool. Typed by the plugin's state, so that a tool of another state does
/// not compile.
pub struct ToolEntry<S: State> {
    pub(crate) spec: fn() -> ToolSpec,
    pub(crate) call: for<'a> fn(&'a Cx<S>, &'a [u8]) -> Running<'a, Output>,
    pub(crate) condition: for<'a> fn(&'a Cx<S>, Deciding) -> Running<'a, ConditionAnswer>,
    pub(crate) preview: for<'a> fn(&'a Cx<S>, &'a [u8]) -> Running<'a, Preview>,
}

impl<S: State> ToolEntry<S> {
    /// Makes the entry of a [`Tool`].
    pub const fn of<T: Tool<State = S>>() -> Self {
        let (call, condition, preview) = (call::<T>, condition::<T>, preview::<T>);
        Self { spec: T::spec, call, condition, preview }
    }

    /// Makes the entry of a [`SyncTool`].
    pub const fn of_sync<T: SyncTool<State = S>>() -> Self {
        let (call, condition, preview) = (call_sync::<T>, condition_sync::<T>, preview_sync::<T>);
        Self { spec: T::spec, call, condition, preview }
    }
}

/// Reads arguments; an error names the tool.
fn parsed<T: ToolInput>(arguments: &[u8]) -> Result<T> {
    T::parse(arguments).map_err(|error| match error.kind {
        ErrorKind::InvalidArguments => {
            let message = format!("the arguments of `{}`: {}", T::spec().name, error.message);
            Error { message, ..error }
        }
        _ => error,
    })
}

fn call<'a, T: Tool>(cx: &'a Cx<T::State>, arguments: &'a [u8]) -> Running<'a, Output> {
    Box::pin(async move { parsed::<T>(arguments)?.call(cx).await })
}

fn call_sync<'a, T: SyncTool>(cx: &'a Cx<T::State>, arguments: &'a [u8]) -> Running<'a, Output> {
    Box::pin(async move {
        let tool = parsed::<T>(arguments)?;
        let state = cx.shared_state();
        cx.blocking(move |host| tool.call(&state, host)).await?
    })
}

fn preview<'a, T: Tool>(cx: &'a Cx<T::State>, arguments: &'a [u8]) -> Running<'a, Preview> {
    Box::pin(async move { parsed::<T>(arguments)?.preview(cx).await })
}

fn preview_sync<'a, T: SyncTool>(
    cx: &'a Cx<T::State>,
    arguments: &'a [u8],
) -> Running<'a, Preview> {
    Box::pin(async move {
        let tool = parsed::<T>(arguments)?;
        let state = cx.shared_state();
        cx.blocking(move |host| tool.preview(&state, host)).await?
    })
}

fn condition<T: Tool>(cx: &Cx<T::State>, deciding: Deciding) -> Running<'_, ConditionAnswer> {
    match deciding {
        Deciding::Available => Box::pin(T::available_if(cx)),
        Deciding::Run => Box::pin(T::run_if(cx)),
        Deciding::Unknown => Box::pin(ready(Ok(ConditionAnswer::no()))),
    }
}

fn condition_sync<T: SyncTool>(
    cx: &Cx<T::State>,
    deciding: Deciding,
) -> Running<'_, ConditionAnswer> {
    Box::pin(async move {
        let state = cx.shared_state();
        let work = move |host: &Reporter| match deciding {
            Deciding::Available => T::available_if(&state, host),
            Deciding::Run => T::run_if(&state, host),
            Deciding::Unknown => Ok(ConditionAnswer::no()),
        };
        cx.blocking(work).await?
    })
}
