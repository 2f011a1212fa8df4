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
use tokio::sync::watch;

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
    fn unavailable_reason(&self) -> Option<String> {
        None
    }

    fn channel(&self) -> &str {
        "program"
    }

    fn ask_permission<'a>(
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
pub(crate) struct WaitingPrompts(Mutex<HashMap<CallId, watch::Sender<Option<PermissionAnswer>>>>);

impl WaitingPrompts {
    /// Takes an answer from now on. The program may answer when it gets the prompt's event, before
    /// the session waits.
    pub(crate) fn expect_answer(&self, call: &CallId) {
        self.0.lock().insert(call.clone(), watch::Sender::default());
    }

    /// Answers a prompt. Returns false if none waits for this call.
    pub(crate) fn answer(&self, call: &CallId, answer: PermissionAnswer) -> bool {
        let prompts = self.0.lock();
        let keep = |kept: &mut Option<PermissionAnswer>| {
            let is_first = kept.is_none();
            kept.get_or_insert(answer);
            is_first
        };
        prompts.get(call).is_some_and(|prompt| prompt.send_if_modified(keep))
    }

    /// Waits for the answer to a prompt.
    ///
    /// # Errors
    /// If another prompt of the same call takes its place.
    pub(crate) fn wait(
        self: Arc<Self>,
        call: CallId,
    ) -> impl Future<Output = Result<PermissionAnswer, NoAnswer>> + Send + 'static {
        let answered = {
            let mut prompts = self.0.lock();
            let prompt = prompts.entry(call.clone()).or_default();
            if prompt.receiver_count() > 0 {
                *prompt = watch::Sender::default();
            }
            prompt.subscribe()
        };
        let mut waiting = WaitingPrompt { prompts: self, call, answered };
        async move {
            let answer = waiting.answered.wait_for(Option::is_some).await;
            let answer = answer.ok().and_then(|answer| answer.clone());
            let replaced = "the program answered another prompt of this call";
            answer.ok_or_else(|| NoAnswer::new(replaced))
        }
    }
}

/// A prompt that waits. It is removed when it is dropped, but not another one of the same call.
struct WaitingPrompt {
    prompts: Arc<WaitingPrompts>,
    call: CallId,
    answered: watch::Receiver<Option<PermissionAnswer>>,
}

impl Drop for WaitingPrompt {
    fn drop(&mut self) {
        let mut prompts = self.prompts.0.lock();
        let is_this = |prompt: &watch::Sender<_>| prompt.subscribe().same_channel(&self.answered);
        if prompts.get(&self.call).is_some_and(is_this) {
            prompts.remove(&self.call);
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

    #[tokio::test]
    async fn answer_between_the_prompts_event_and_the_wait_is_kept() {
        let (prompts, call) = (Arc::<WaitingPrompts>::default(), CallId::from("c1"));
        prompts.expect_answer(&call);
        assert!(prompts.answer(&call, allow()));
        assert!(!prompts.answer(&call, deny("twice")));
        assert_eq!(Arc::clone(&prompts).wait(call.clone()).await.unwrap(), allow());
        assert!(prompts.0.lock().is_empty());
    }
}
