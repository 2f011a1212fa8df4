//! A person who gives prepared answers, or is not there.

use std::collections::VecDeque;

use futures_util::future::{BoxFuture, FutureExt};
use jaato_types::ask::FormAnswer;
use parking_lot::Mutex;

use crate::{Answer, Asker, FormQuestion, Question};

/// A person with prepared answers. Without any left, the question stays open for ever.
#[derive(Debug, Default)]
pub struct ScriptedPerson {
    answers: Mutex<Option<VecDeque<Answer>>>,
    questions: Mutex<Vec<String>>,
    offered: Mutex<Vec<(usize, Vec<String>)>>,
    forms: Mutex<VecDeque<FormAnswer>>,
}

impl ScriptedPerson {
    /// Puts a person there, with these answers.
    pub fn answers(&self, answers: impl IntoIterator<Item = Answer>) {
        let mut slot = self.answers.lock();
        *slot = Some(answers.into_iter().collect());
    }

    /// Has forms answered with these, in order.
    pub fn forms(&self, answers: impl IntoIterator<Item = FormAnswer>) {
        self.forms.lock().extend(answers);
    }

    /// Returns for each question so far of how many calls it was, and for which later ones an
    /// answer could hold.
    pub fn offered(&self) -> Vec<(usize, Vec<String>)> {
        self.offered.lock().clone()
    }

    /// Returns the questions so far: tool, arguments, and why.
    pub fn questions(&self) -> Vec<String> {
        self.questions.lock().clone()
    }
}

impl Asker for ScriptedPerson {
    fn nobody(&self) -> Option<String> {
        let answers = self.answers.lock();
        answers.is_none().then(|| "standard input is not a terminal".to_owned())
    }

    fn ask<'a>(&'a self, question: Question<'a>) -> BoxFuture<'a, Answer> {
        let Question { call, why, preview, times, patterns, .. } = question;
        self.offered.lock().push((times, patterns));
        let preview = preview.map(|preview| format!("\n{preview:?}")).unwrap_or_default();
        let text = format!("{} {}: {why}{preview}", call.name, call.arguments);
        self.questions.lock().push(text);
        let mut answers = self.answers.lock();
        match answers.as_mut().and_then(VecDeque::pop_front) {
            Some(answer) => std::future::ready(answer).boxed(),
            None => std::future::pending().boxed(),
        }
    }

    fn form<'a>(&'a self, _question: FormQuestion<'a>) -> BoxFuture<'a, FormAnswer> {
        match self.forms.lock().pop_front() {
            Some(answer) => std::future::ready(answer).boxed(),
            None => std::future::pending().boxed(),
        }
    }
}
