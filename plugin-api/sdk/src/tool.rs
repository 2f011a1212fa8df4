//! Tools: what authors implement, and the entry by which a plugin's tools are collected.

use std::future::Future;
use std::pin::Pin;

use jaato_types::{Output, Result, ToolSpec};

use crate::context::{Cx, Reporter};
use crate::state::State;

/// A tool's arguments and spec. Derive it; see [`derive@crate::ToolInput`].
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

type Running<'a> = Pin<Box<dyn Future<Output = Result<Output>> + Send + 'a>>;

/// How the sdk reaches one tool. Typed by the plugin's state, so that a tool of another state does not compile.
pub struct ToolEntry<S: State> {
    pub(crate) spec: fn() -> ToolSpec,
    pub(crate) call: for<'a> fn(&'a Cx<S>, &'a [u8]) -> Running<'a>,
}

impl<S: State> ToolEntry<S> {
    /// Makes the entry of a [`Tool`].
    pub const fn of<T: Tool<State = S>>() -> Self {
        Self { spec: T::spec, call: call::<T> }
    }

    /// Makes the entry of a [`SyncTool`].
    pub const fn of_sync<T: SyncTool<State = S>>() -> Self {
        Self { spec: T::spec, call: call_sync::<T> }
    }
}

fn call<'a, T: Tool>(cx: &'a Cx<T::State>, arguments: &'a [u8]) -> Running<'a> {
    Box::pin(async move { T::parse(arguments)?.call(cx).await })
}

fn call_sync<'a, T: SyncTool>(cx: &'a Cx<T::State>, arguments: &'a [u8]) -> Running<'a> {
    Box::pin(async move {
        let tool = T::parse(arguments)?;
        let state = cx.shared_state();
        cx.blocking(move |host| tool.call(&state, host)).await?
    })
}
