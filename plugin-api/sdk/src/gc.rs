//! Context garbage collection: the trait that authors implement.

use std::future::Future;
use std::pin::Pin;

use jaato_types::{GcPlan, GcRequest, Result};

use crate::context::Cx;
use crate::state::State;

/// A gc, which proposes the messages to remove from a history. The session validates the plan and
/// applies it.
pub trait Gc: Send + Sync + 'static {
    /// The plugin's state, as `export_plugin!` names it.
    type State: State;

    /// Proposes a plan. The host polls it on its plugin executor, so it must not block.
    ///
    /// # Errors
    /// If it fails, the session continues without a gc and reports the error.
    fn plan(
        cx: &Cx<Self::State>,
        request: GcRequest,
    ) -> impl Future<Output = Result<GcPlan>> + Send;
}

type GcPlanFuture<'a> = Pin<Box<dyn Future<Output = Result<GcPlan>> + Send + 'a>>;

/// The SDK's access to the gc.
pub struct GcEntry<S: State> {
    pub(crate) plan: for<'a> fn(&'a Cx<S>, GcRequest) -> GcPlanFuture<'a>,
}

impl<S: State> GcEntry<S> {
    /// Creates the entry.
    pub const fn for_gc<G: Gc<State = S>>() -> Self {
        Self { plan: |cx, request| Box::pin(G::plan(cx, request)) }
    }
}
