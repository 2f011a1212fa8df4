//! Model providers: the trait that authors implement.

use std::future::{Future, ready};
use std::pin::Pin;

use jaato_types::count::COUNT_TOKENS;
use jaato_types::{
    Completion, CompletionRequest, Error, ErrorKind, ModelInfo, PULL_MODEL, ProviderSpec, Result,
};

use crate::context::Cx;
use crate::state::State;

/// A model provider: a stateless mapping from requests to completions.
///
/// It never retries, logs or counts, because the host does.
pub trait Provider: Send + Sync + 'static {
    /// The plugin's state, as `export_plugin!` names it.
    type State: State;

    /// Returns the name of the provider and the models that it knows without a request. Runs
    /// without an instance.
    fn spec() -> ProviderSpec;

    /// Answers one request, and emits the answer piece by piece with
    /// [`Reporter::emit`](crate::Reporter::emit). The host polls it on its plugin executor, so it
    /// must not block. On a cancel, the host drops the future.
    ///
    /// # Errors
    /// Return an error with its kind and retry class. The host does the retrying.
    fn complete(
        cx: &Cx<Self::State>,
        request: CompletionRequest,
    ) -> impl Future<Output = Result<Completion>> + Send;

    /// Lists the available models.
    ///
    /// # Errors
    /// The host shows the error to the user. Return `not_found` if the user has not configured the
    /// provider (no API key). Lists then omit the provider, unless its model is the configured one.
    fn models(_cx: &Cx<Self::State>) -> impl Future<Output = Result<Vec<ModelInfo>>> + Send {
        ready(Ok(Self::spec().models))
    }

    /// Downloads a model to the server, for the command `jaato model pull PROVIDER/MODEL`. The host
    /// shows the user what it emits, mainly [`Delta::progress`](crate::types::Delta::progress). On
    /// a cancel, the host drops the future.
    ///
    /// # Errors
    /// The host shows the error to the user. The default is `unknown_operation`, for a provider
    /// that cannot download models.
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
    /// `unknown_operation`, which is the default, if the provider cannot count. Any other error is
    /// the reason why it could not count this time. The host then estimates.
    fn count_tokens(
        _cx: &Cx<Self::State>,
        _request: CompletionRequest,
    ) -> impl Future<Output = Result<u64>> + Send {
        let text = format!("the provider does not know the operation `{COUNT_TOKENS}`");
        ready(Err(Error::new(ErrorKind::UnknownOperation, text)))
    }
}

type ProviderFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'a>>;

/// The SDK's access to the provider.
pub struct ProviderEntry<S: State> {
    pub(crate) spec: fn() -> ProviderSpec,
    pub(crate) complete: for<'a> fn(&'a Cx<S>, CompletionRequest) -> ProviderFuture<'a, Completion>,
    pub(crate) models: for<'a> fn(&'a Cx<S>) -> ProviderFuture<'a, Vec<ModelInfo>>,
    pub(crate) pull_model: for<'a> fn(&'a Cx<S>, String) -> ProviderFuture<'a, ()>,
    pub(crate) count_tokens: for<'a> fn(&'a Cx<S>, CompletionRequest) -> ProviderFuture<'a, u64>,
}

impl<S: State> ProviderEntry<S> {
    /// Creates the entry.
    pub const fn for_provider<P: Provider<State = S>>() -> Self {
        Self {
            spec: P::spec,
            complete: |cx, request| Box::pin(P::complete(cx, request)),
            models: |cx| Box::pin(P::models(cx)),
            pull_model: |cx, model| Box::pin(P::pull_model(cx, model)),
            count_tokens: |cx, request| Box::pin(P::count_tokens(cx, request)),
        }
    }
}
