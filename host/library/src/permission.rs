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
    A: Future<Output = PermissionAnswer> + Send + 'static,
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
        let answer = (self.0)(prompt.clone());
        Box::pin(async move { Ok(answer.await) })
    }
}

impl<F, A> UserAsker for CallbackAsker<F>
where
    F: Fn(PermissionPrompt) -> A + Send + Sync,
    A: Future<Output = PermissionAnswer> + Send + 'static,
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
}

/// Leaves prompts to [`WaitingPrompts::answer`].
pub(crate) struct HandleAsker(pub(crate) Arc<WaitingPrompts>);

impl PermissionAsker for HandleAsker {
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
        let (answer, answered) = oneshot::channel();
        self.0.0.lock().insert(prompt.call_id.clone(), answer);
        let withdrawn = WithdrawnPrompt { prompts: &self.0, call: prompt.call_id.clone() };
        Box::pin(async move {
            let answered = answered.await;
            drop(withdrawn);
            answered.map_err(|_| NoAnswer::new("the program answered another prompt of this call"))
        })
    }
}

impl UserAsker for HandleAsker {}

/// Removes a prompt whose answer is no longer awaited.
struct WithdrawnPrompt<'a> {
    prompts: &'a WaitingPrompts,
    call: CallId,
}

impl Drop for WithdrawnPrompt<'_> {
    fn drop(&mut self) {
        self.prompts.0.lock().remove(&self.call);
    }
}
