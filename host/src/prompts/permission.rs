//! The permission prompt for a tool call at the terminal.

mod answer;
mod dialog;
mod edited;
mod folded_row;

use std::io;
use std::sync::Arc;

use jaato_runtime::types::permission_prompt::{
    PermissionAnswer, PermissionDecision, PermissionPrompt,
};

use self::answer::{TypedAnswer, read_answer};
use self::dialog::{AnswerChoices, permission_question};
use crate::terminal::{self, Before, OpenQuestion, Reply};

/// Asks until there is an answer. Dropping the future withdraws the question.
///
/// # Errors
/// If the terminal is gone.
pub async fn ask_permission(
    open: Arc<OpenQuestion>,
    prompt: &PermissionPrompt,
    mut before: Before<'_>,
) -> io::Result<Reply<PermissionAnswer>> {
    loop {
        let (question, form) = match permission_question(prompt, AnswerChoices::Full) {
            full if full.fits() => (full, AnswerChoices::Full),
            // The call is more important than the answers.
            _ => (permission_question(prompt, AnswerChoices::Short), AnswerChoices::Short),
        };
        let read = |line: &str| read_answer(line, prompt, form);
        let fold = |said: &TypedAnswer| match said {
            TypedAnswer::Answer(answer) => Some(folded_row::folded_row(prompt, answer)),
            TypedAnswer::Edit => None,
        };
        let said = terminal::ask(Arc::clone(&open), question, before, read, fold).await?;
        match said {
            Reply::Answer(TypedAnswer::Answer(answer)) => return Ok(Reply::Answer(answer)),
            // The terminal has become smaller, so there is room for less.
            Reply::Nobody(_)
                if form == AnswerChoices::Full
                    && !permission_question(prompt, AnswerChoices::Full).finds_room()
                    && permission_question(prompt, AnswerChoices::Short).finds_room() =>
            {
                continue;
            }
            Reply::Nobody(reason) => return Ok(Reply::Nobody(reason)),
            Reply::Answer(TypedAnswer::Edit) => {}
        }
        // Text typed between two prompts was meant for the call, not for the next message.
        before = Before::Dropped;
        match edited::ask_for_edit(&open, &prompt.arguments).await? {
            Reply::Answer(Some(arguments)) => {
                let answer = PermissionAnswer::once(PermissionDecision::Edit);
                return Ok(Reply::Answer(PermissionAnswer {
                    arguments: Some(arguments),
                    ..answer
                }));
            }
            Reply::Answer(None) => {}
            Reply::Nobody(reason) => return Ok(Reply::Nobody(reason)),
        }
    }
}
