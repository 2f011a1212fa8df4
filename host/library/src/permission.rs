//! Answers permission prompts by a function of the program, or later through the session's handle.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use jaato_runtime::session_loop::{NoAnswer, PermissionAsker, UserAsker};
use jaato_runtime::types::permission_prompt::{
    PermissionAnswer, PermissionDecision, PermissionPrompt,
};
use jaato_runtime::types::{CallId, SessionId};
use parking_lot::Mutex;
use tokio::sync::oneshot;

/// Allows one call.
pub fn allow() -> PermissionAnswer {
    PermissionAnswer::once(PermissionDecision::AllowOnce)
}

/// Denies one call, and tells the model why.
pub fn deny(reason: impl Into<String>) -> PermissionAnswer {
    let comment = Some(reason.into()).filter(|reason| !reason.is_empty());
    PermissionAnswer { comment, ..PermissionAnswer::once(PermissionDecision::Deny) }
}

/// Asks a function of the program.
pub(crate) struct CallbackAsker<F>(pub(crate) F);

impl<F, A> PermissionAsker for CallbackAsker<F>
where
    F: Fn(PermissionPrompt) -> A + Send + Sync,
    A: Future<Output = Result<PermissionAnswer, NoAnswer>> + Send + 'static,
{
    fn unavailable(&self) -> Option<String> {
        None
    }

    fn channel(&self) -> &str {
        "program"
    }

    fn ask<'a>(
        &'a self,
        _session: &'a SessionId,
        prompt: &'a PermissionPrompt,
    ) -> BoxFuture<'a, Result<PermissionAnswer, NoAnswer>> {
        Box::pin((self.0)(prompt.clone()))
    }
}

impl<F, A> UserAsker for CallbackAsker<F>
where
    F: Fn(PermissionPrompt) -> A + Send + Sync,
    A: Future<Output = Result<PermissionAnswer, NoAnswer>> + Send + 'static,
{
}

/// Prompts that wait for an answer through the session's handle.
#[derive(Default)]
pub(crate) struct WaitingPrompts(Mutex<HashMap<CallId, oneshot::Sender<PermissionAnswer>>>);

impl WaitingPrompts {
    /// Answers a prompt. Returns false if none waits for this call.
    pub(crate) fn answer(&self, call: &CallId, answer: PermissionAnswer) -> bool {
        let waiting = self.0.lock().remove(call);
        waiting.is_some_and(|waiting| waiting.send(answer).is_ok())
    }

    /// Waits for the answer to a prompt.
    ///
    /// # Errors
    /// If another prompt of the same call takes its place.
    pub(crate) fn wait(
        self: Arc<Self>,
        call: CallId,
    ) -> impl Future<Output = Result<PermissionAnswer, NoAnswer>> + Send + 'static {
        let (answer, answered) = oneshot::channel();
        self.0.lock().insert(call.clone(), answer);
        let mut waiting = WaitingPrompt { prompts: self, call, answered };
        async move {
            let answer = (&mut waiting.answered).await;
            answer.map_err(|_| NoAnswer::new("the program answered another prompt of this call"))
        }
    }
}

/// A prompt that waits. It is removed when it is dropped, but not another one of the same call.
struct WaitingPrompt {
    prompts: Arc<WaitingPrompts>,
    call: CallId,
    answered: oneshot::Receiver<PermissionAnswer>,
}

impl Drop for WaitingPrompt {
    fn drop(&mut self) {
        self.answered.close();
        let mut waiting = self.prompts.0.lock();
        if waiting.get(&self.call).is_some_and(oneshot::Sender::is_closed) {
            waiting.remove(&self.call);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn later_prompt_of_a_call_takes_the_place_of_an_earlier_one() {
        let (prompts, call) = (Arc::<WaitingPrompts>::default(), CallId::from("c1"));
        let earlier = Arc::clone(&prompts).wait(call.clone());
        let later = Arc::clone(&prompts).wait(call.clone());
        assert!(earlier.await.is_err());
        assert!(prompts.answer(&call, allow()));
        assert_eq!(later.await.unwrap(), allow());
        drop(Arc::clone(&prompts).wait(call.clone()));
        assert!(!prompts.answer(&call, allow()), "a dropped prompt is not answered");
    }
}
