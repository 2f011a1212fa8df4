//! Model providers: what authors implement.

use std::future::{Future, ready};
use std::pin::Pin;

use jaato_types::count::COUNT_TOKENS;
use jaato_types::{
    Completion, Error, ErrorKind, ModelInfo, PULL_MODEL, ProviderSpec, Request, Result,
};

use crate::context::Cx;
use crate::state::State;

/// A model provider: a stateless mapping from requests to completions.
///
/// It never retries, logs or counts for itself: those are layers of the host.
pub trait Provider: Send + Sync + 'static {
    /// The plugin's state, as `export_plugin!` names it.
    type State: State;

    /// Names the provider and the models that it knows without asking. Runs without an instance.
    fn spec() -> ProviderSpec;

    /// Answers one request; what is produced goes out piece by piece through
    /// [`Reporter::emit`](crate::Reporter::emit). Polled on the host's plugin executor: must not
    /// block. On a cancel the future is dropped.
    ///
    /// # Errors
    /// With kind and retry class; the host retries.
    fn complete(
        cx: &Cx<Self::State>,
        request: Request,
    ) -> impl Future<Output = Result<Completion>> + Send;

    /// Lists the models that can be used.
    ///
    /// # Errors
    /// What the person is told. `not_found` where nobody has set the provider up (no key): lists
    /// leave it out then, unless its model is the configured one.
    fn models(_cx: &Cx<Self::State>) -> impl Future<Output = Result<Vec<ModelInfo>>> + Send {
        ready(Ok(Self::spec().models))
    }

    /// Lets the server fetch a model, because a person typed `jaato model pull PROVIDER/MODEL`.
    /// What is emitted meanwhile, [`Delta::progress`](crate::types::Delta::progress) above all, is
    /// shown to that person. On a cancel the future is dropped.
    ///
    /// # Errors
    /// What the person is told. `unknown_operation`, as without this method, where the provider
    /// fetches no models.
    fn pull_model(
        _cx: &Cx<Self::State>,
        _model: String,
    ) -> impl Future<Output = Result<()>> + Send {
        let text = format!("the provider does not know the operation `{PULL_MODEL}`");
        ready(Err(Error::new(ErrorKind::UnknownOperation, text)))
    }

    /// Counts the tokens of a request as [`Provider::complete`] would send it, without sending it.
    ///
    /// # Errors
    /// `unknown_operation`, as without this method, where the provider cannot count; any other
    /// error says why it could not this time. The host estimates then.
    fn count_tokens(
        _cx: &Cx<Self::State>,
        _request: Request,
    ) -> impl Future<Output = Result<u64>> + Send {
        let text = format!("the provider does not know the operation `{COUNT_TOKENS}`");
        ready(Err(Error::new(ErrorKind::UnknownOperation, text)))
    }
}

type Running<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'a>>;

/// How the sdk reaches the provider.
pub struct ProviderEntry<S: State> {
    pub(crate) spec: fn() -> ProviderSpec,
    pub(crate) complete: for<'a> fn(&'a Cx<S>, Request) -> Running<'a, Completion>,
    pub(crate) models: for<'a> fn(&'a Cx<S>) -> Running<'a, Vec<ModelInfo>>,
    pub(crate) pull_model: for<'a> fn(&'a Cx<S>, String) -> Running<'a, ()>,
    pub(crate) count_tokens: for<'a> fn(&'a Cx<S>, Request) -> Running<'a, u64>,
}

impl<S: State> ProviderEntry<S> {
    /// Makes the entry.
    pub const fn of<P: Provider<State = S>>() -> Self {
        Self {
            spec: P::spec,
            complete: |cx, request| Box::pin(P::complete(cx, request)),
            models: |cx| Box::pin(P::models(cx)),
            pull_model: |cx, model| Box::pin(P::pull_model(cx, model)),
            count_tokens: |cx, request| Box::pin(P::count_tokens(cx, request)),
        }
    }
}
