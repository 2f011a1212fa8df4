//! A user who gives prepared answers, or is absent.

use std::collections::VecDeque;

use futures_util::future::{BoxFuture, FutureExt};
use jaato_types::SessionId;
use jaato_types::ask::FormAnswer;
use jaato_types::permission_prompt::{PermissionAnswer, PermissionPrompt};
use parking_lot::Mutex;

use crate::{FormQuestion, NoAnswer, PermissionAsker, UserAsker};

/// A user with prepared answers. Once they are used up, a question stays open forever.
#[derive(Debug, Default)]
pub struct ScriptedUser {
    answers: Mutex<Option<VecDeque<Result<PermissionAnswer, NoAnswer>>>>,
    prompts: Mutex<Vec<PermissionPrompt>>,
    forms: Mutex<VecDeque<FormAnswer>>,
}

impl ScriptedUser {
    /// Makes the user present, with these answers.
    pub fn add_answers(&self, answers: impl IntoIterator<Item = PermissionAnswer>) {
        self.add_replies(answers.into_iter().map(Ok));
    }

    /// Makes a user present who sometimes does not answer.
    pub fn add_replies(
        &self,
        replies: impl IntoIterator<Item = Result<PermissionAnswer, NoAnswer>>,
    ) {
        *self.answers.lock() = Some(replies.into_iter().collect());
    }

    /// Answers forms with these, in order.
    pub fn add_form_answers(&self, answers: impl IntoIterator<Item = FormAnswer>) {
        self.forms.lock().extend(answers);
    }

    /// Returns the prompts so far.
    pub fn prompts(&self) -> Vec<PermissionPrompt> {
        self.prompts.lock().clone()
    }

    /// Returns the prompts so far in short form: tool, arguments, reason, preview.
    pub fn form_questions(&self) -> Vec<String> {
        let text = |prompt: &PermissionPrompt| {
            let preview = prompt.preview.as_ref();
            let preview = preview.map(|preview| format!("\n{preview:?}")).unwrap_or_default();
            let why = match prompt.why.as_str() {
                "" => &prompt.rule,
                why => why,
            };
            format!("{} {}: {why}{preview}", prompt.tool, prompt.arguments)
        };
        self.prompts.lock().iter().map(text).collect()
    }
}

impl PermissionAsker for ScriptedUser {
    fn unavailable_reason(&self) -> Option<String> {
        let answers = self.answers.lock();
        answers.is_none().then(|| "standard input is not a terminal".to_owned())
    }

    fn ask_permission<'a>(
        &'a self,
        _session: &'a SessionId,
        prompt: &'a PermissionPrompt,
    ) -> BoxFuture<'a, Result<PermissionAnswer, NoAnswer>> {
        self.prompts.lock().push(prompt.clone());
        let mut answers = self.answers.lock();
        match answers.as_mut().and_then(VecDeque::pop_front) {
            Some(answer) => std::future::ready(answer).boxed(),
            None => std::future::pending().boxed(),
        }
    }
}

impl UserAsker for ScriptedUser {
    fn ask_form<'a>(&'a self, _question: FormQuestion<'a>) -> BoxFuture<'a, FormAnswer> {
        match self.forms.lock().pop_front() {
            Some(answer) => std::future::ready(answer).boxed(),
            None => std::future::pending().boxed(),
        }
    }
}
