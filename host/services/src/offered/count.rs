//! The service `count`, which counts the tokens of a text or a request for a model.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use jaato_types::count::{COUNT_WAIT_MS, COUNTS_WAITING_MAX, TokenCountAnswer, TokenCountInput};
use jaato_types::{Error, ErrorKind, SessionId};

use super::ServiceFuture;
use crate::call::ServiceCall;
use crate::detached::DetachedWork;
use crate::shared::SharedServices;

jaato_types::count_operations!(bodies);

fn count(
    call: &ServiceCall,
    asked: Option<TokenCountInput>,
) -> Result<ServiceFuture<TokenCountAnswer>, Error> {
    let asked = asked.unwrap_or_default();
    if asked.to_completion_request("").is_none() {
        let text = "give either `text` or `request`, not both or neither";
        return Err(Error::new(ErrorKind::InvalidArguments, text));
    }
    let of_session = call.site.facts.as_ref().map(|facts| facts.snapshot().model);
    let model = asked.model.clone().or(of_session).filter(|model| !model.is_empty());
    let Some(model) = model else {
        let estimate = TokenCountAnswer::estimate(asked.estimate(), None, None);
        return Ok(Box::pin(std::future::ready(Ok(estimate))));
    };
    let (shared, session) = (Arc::clone(&call.shared), call.site.session.clone());
    // Call the provider on the session's runtime and not on the thread of the calling plugin.
    let counting = |_| async move { count_tokens_for_model(&shared, asked, model, session).await };
    Ok(Box::pin(DetachedWork::start(counting)))
}

async fn count_tokens_for_model(
    shared: &SharedServices,
    asked: TokenCountInput,
    model: String,
    session: SessionId,
) -> Result<TokenCountAnswer, Error> {
    let counts = &shared.counts;
    if counts.waiting.fetch_add(1, Relaxed) >= COUNTS_WAITING_MAX {
        counts.waiting.fetch_sub(1, Relaxed);
        let text = format!("{COUNTS_WAITING_MAX} token counts are already waiting");
        return Err(Error::new(ErrorKind::LimitReached, text).temporary());
    }
    // The semaphore is never closed.
    let _turn = counts.at_once.acquire().await;
    counts.waiting.fetch_sub(1, Relaxed);
    let counting = shared.sessions.token_count_request(&model, &asked, &session)?;
    let wait = Duration::from_millis(COUNT_WAIT_MS);
    let estimate = |why: Option<String>| {
        TokenCountAnswer::estimate(asked.estimate(), Some(counting.model.clone()), why)
    };
    Ok(match tokio::time::timeout(wait, counting.tokens).await {
        Ok(Ok(tokens)) => TokenCountAnswer::exact(tokens, counting.model),
        Ok(Err(error)) if error.kind == ErrorKind::UnknownOperation => estimate(None),
        Ok(Err(error)) => estimate(Some(error.message)),
        Err(_) => estimate(Some(format!(
            "the provider did not count the tokens within {COUNT_WAIT_MS} ms"
        ))),
    })
}
