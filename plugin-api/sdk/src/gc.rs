//! Context garbage collection: what authors implement.

use std::future::Future;
use std::pin::Pin;

use jaato_types::{GcPlan, GcRequest, Result};

use crate::context::Cx;
use crate::state::State;

/// A gc: proposes what to drop from a history. The session checks the plan and applies it.
pub trait Gc: Send + Sync + 'static {
    /// The plugin's state, as `export_plugin!` names it.
    type State: State;

    /// Proposes a plan. Polled on the host's plugin executor: must not block.
    ///
    /// # Errors
    /// The session goes on without a gc and says why.
    fn plan(
        cx: &Cx<Self::State>,
        request: GcRequest,
    ) -> impl Future<Output = Result<GcPlan>> + Send;
}

type Running<'a> = Pin<Box<dyn Future<Output = Result<GcPlan>> + Send + 'a>>;

/// How the sdk reaches the gc.
pub struct GcEntry<S: State> {
    pub(crate) plan: for<'a> fn(&'a Cx<S>, GcRequest) -> Running<'a>,
}

impl<S: State> GcEntry<S> {
    /// Makes the entry.
    pub const fn of<G: Gc<State = S>>() -> Self {
        Self { plan: |cx, request| Box::pin(G::plan(cx, request)) }
    }
}
