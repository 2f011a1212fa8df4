//! The service `count`: how many tokens a text or a request has for a model.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use jaato_types::count::{COUNT, COUNT_WAIT_MS, COUNTS_WAITING_MAX, Count, Counted};
use jaato_types::{Error, ErrorKind, Frame, SessionId};

use super::{Answer, Service, bad_request, frame, ready};
use crate::call::Call;
use crate::detached::Detached;
use crate::shared::Shared;

/// Counts of tokens.
pub struct Counts;

impl Service for Counts {
    fn has(&self, operation: &str) -> bool {
        operation == COUNT
    }

    fn call(&self, call: &Call, _operation: &str, request: Vec<u8>) -> Answer {
        let asked = match Frame::read::<Option<Count>>(&request).map_err(bad_request) {
            Ok(asked) => asked.unwrap_or_default(),
            Err(error) => return ready(Err(error)),
        };
        if asked.request_to("").is_none() {
            let text = "either `text` or `request` is counted, one of both";
            return ready(Err(Error::new(ErrorKind::InvalidArguments, text)));
        }
        let of_session = call.site.facts.as_ref().map(|facts| facts.read().model);
        let model = asked.model.clone().or(of_session).filter(|model| !model.is_empty());
        let Some(model) = model else {
            return ready(frame(&Counted::estimate(asked.estimate(), None, None)));
        };
        let (shared, session) = (Arc::clone(&call.shared), call.site.session.clone());
        // The provider is asked where the session runs, not on the asking plugin's thread.
        let counting =
            Detached::start(|_| async move { count(&shared, asked, model, session).await });
        Box::pin(async move { frame(&counting.await?) })
    }
}

async fn count(
    shared: &Shared,
    asked: Count,
    model: String,
    session: SessionId,
) -> Result<Counted, Error> {
    let counts = &shared.counts;
    if counts.waiting.fetch_add(1, Relaxed) >= COUNTS_WAITING_MAX {
        counts.waiting.fetch_sub(1, Relaxed);
        let text = format!("{COUNTS_WAITING_MAX} counts wait already");
        return Err(Error::new(ErrorKind::LimitReached, text).temporary());
    }
    // Nobody closes it.
    let _turn = counts.at_once.acquire().await;
    counts.waiting.fetch_sub(1, Relaxed);
    let counting = shared.sessions.count(&model, &asked, &session)?;
    let wait = Duration::from_millis(COUNT_WAIT_MS);
    let estimate = |why: Option<String>| {
        Counted::estimate(asked.estimate(), Some(counting.model.clone()), why)
    };
    Ok(match tokio::time::timeout(wait, counting.tokens).await {
        Ok(Ok(tokens)) => Counted::exact(tokens, counting.model),
        Ok(Err(error)) if error.kind == ErrorKind::UnknownOperation => estimate(None),
        Ok(Err(error)) => estimate(Some(error.message)),
        Err(_) => estimate(Some(format!("no count came within {COUNT_WAIT_MS} ms"))),
    })
}
