//! Asks the user for a secret that only a program may see, and passes it to that program.
//!
//! The input goes directly from the user to the terminal. No one else sees it or its length, and
//! this crate overwrites its copy after sending it. Copies in transit belong to the environment.
//! The secret is passed on only while the terminal certainly hides it, which means that it reads
//! lines and does not echo them. A program that reads single keys (a shell's prompt, an editor, a
//! masked field) also disables the echo, and may show the input itself. In addition, the program
//! that asked must still be reading, because a program that has ended may have left a shell there.

use std::sync::Arc;

use jaato_session::{Cancel, SecretAnswer, SecretQuestion};
use jaato_types::terminal::{TerminalAsk, TerminalAskOutcome, TerminalState};
use jaato_types::{Error, ErrorKind, Event, PluginName, SecretOutcome, SessionId};

use crate::board::{SessionAudience, SharedTerminals};

/// The key that ends a line.
const LINE_END: u8 = b'\r';

/// A question.
pub(crate) struct TerminalQuestion {
    pub(crate) board: Arc<SharedTerminals>,
    pub(crate) plugin: PluginName,
    pub(crate) session: SessionId,
    /// Cancelled when the terminal has ended.
    pub(crate) over: Cancel,
    pub(crate) ask: TerminalAsk,
}

/// Reports to the session how a question ended, when dropped.
struct QuestionEndReport<'a> {
    asked: &'a TerminalQuestion,
    audience: &'a SessionAudience,
    outcome: SecretOutcome,
}

impl Drop for QuestionEndReport<'_> {
    fn drop(&mut self) {
        let (source, name) = self.asked.source_and_name();
        let outcome = self.outcome;
        self.audience.emitter.emit(Event::TerminalAnswered { source, name, outcome });
    }
}

/// Asks the question.
///
/// # Errors
/// `conflict` if the terminal shows the input, `io` if it is closed or ends.
pub(crate) async fn ask_user(asked: TerminalQuestion) -> Result<TerminalAskOutcome, Error> {
    let Some(audience) = asked.board.audience(&asked.session) else {
        return Ok(asked.no_user_answer("no user follows this session"));
    };
    let shown = asked.board.find_terminal(&asked.session, asked.ask.terminal);
    if shown.is_some_and(|shown| shown.has_typers()) {
        let reason = "a user has joined the terminal and can type there".to_owned();
        return Ok(TerminalAskOutcome::Nobody { reason });
    }
    // One question at a time, even from different plugins.
    let _turn = asked.wait_until_over(asked.board.asking.lock()).await?;
    let before = asked.check_hidden().await?;
    let (source, name) = asked.source_and_name();
    let TerminalAsk { command, prompt, .. } = asked.ask.clone();
    audience.emitter.emit(Event::TerminalAsked { source, name, command, prompt });
    let mut ending =
        QuestionEndReport { asked: &asked, audience: &audience, outcome: SecretOutcome::Withdrawn };
    let question = SecretQuestion {
        plugin: &asked.plugin,
        name: &asked.ask.name,
        command: &asked.ask.command,
        prompt: &asked.ask.prompt,
    };
    let mut secret = match asked.wait_until_over(audience.asker.ask_secret(question)).await? {
        SecretAnswer::Typed(secret) => secret,
        SecretAnswer::Declined => {
            ending.outcome = SecretOutcome::Declined;
            return Ok(TerminalAskOutcome::Declined);
        }
        SecretAnswer::Nobody { reason } => {
            ending.outcome = SecretOutcome::Nobody;
            return Ok(asked.no_user_answer(&reason));
        }
    };
    let after = asked.check_hidden().await?;
    if !is_same_reader(&before, &after) {
        let text = "the program that asked is not the one that reads from the terminal now";
        return Err(Error::new(ErrorKind::Conflict, text).with_hint("the program got no input"));
    }
    if !secret.push(LINE_END) {
        return Err(Error::new(
            ErrorKind::HostBug,
            "the typed text leaves no room for the line end",
        ));
    }
    let bytes = secret.bytes().to_vec();
    drop(secret);
    // Not limited to the terminal's life, because the program may end right after it has read its
    // answer, before this side learns of that.
    asked.board.write(&asked.session, asked.ask.terminal, bytes).await?;
    ending.outcome = SecretOutcome::Typed;
    Ok(TerminalAskOutcome::Typed)
}

/// Returns true if the program that asked still reads. A shell at its prompt shows its input,
/// although its terminal does not.
fn is_same_reader(before: &TerminalState, after: &TerminalState) -> bool {
    let is_same_program = match (before.foreground_pid, after.foreground_pid) {
        (Some(before), Some(after)) => before == after,
        (Some(_) | None, _) => true,
    };
    is_same_program && (before.reads_lines, before.echoes) == (after.reads_lines, after.echoes)
}

/// Returns why input may be visible, or `None` if it certainly is not.
fn visible_input_reason(state: &TerminalState) -> Option<&'static str> {
    match (state.reads_lines, state.echoes) {
        (Some(true), Some(false)) => None,
        (_, Some(true)) => Some("the terminal shows typed text, so jaato types no secret there"),
        (Some(false), Some(false)) => Some(
            "the program reads key by key and may show what is typed, so jaato types no secret there",
        ),
        (None, _) | (_, None) => Some(
            "it is unknown whether the terminal shows typed text, so jaato types no secret there",
        ),
    }
}

impl TerminalQuestion {
    fn source_and_name(&self) -> (String, String) {
        (self.plugin.source().to_owned(), self.ask.name.clone())
    }

    /// Returns the answer if no user is there, with a hint that a user may join.
    fn no_user_answer(&self, reason: &str) -> TerminalAskOutcome {
        let reason = if self.board.is_joinable() {
            format!(
                "{reason}; with `jaato shell attach {}/{} --type` a user can type there from another terminal",
                self.session, self.ask.name
            )
        } else {
            reason.to_owned()
        };
        TerminalAskOutcome::Nobody { reason }
    }

    /// Checks that the terminal hides input. An unknown state counts as visible.
    async fn check_hidden(&self) -> Result<TerminalState, Error> {
        let asked = self.board.sessions()?.state(&self.session, self.ask.terminal);
        let state = self.wait_until_over(asked).await??;
        match visible_input_reason(&state) {
            None => Ok(state),
            Some(text) => Err(Error::new(ErrorKind::Conflict, text).with_hint(
                "nothing was sent: ask for the secret while the program waits for hidden input, or let the user \
                 type it (`jaato shell attach NAME --type`)",
            )),
        }
    }

    /// Waits for a future as long as the terminal exists.
    async fn wait_until_over<T>(&self, work: impl Future<Output = T>) -> Result<T, Error> {
        tokio::select! {
            biased;
            () = self.over.cancelled() => Err(Error::new(ErrorKind::Io, "the terminal is closed")
                .with_hint("its program has ended")),
            done = work => Ok(done),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_line_that_is_read_without_an_echo_is_hidden() {
        let known = [None, Some(false), Some(true)];
        for (reads_lines, echoes) in known.iter().flat_map(|a| known.map(|b| (*a, b))) {
            let state = TerminalState { reads_lines, echoes, ..TerminalState::default() };
            let is_hidden = (reads_lines, echoes) == (Some(true), Some(false));
            assert_eq!(
                visible_input_reason(&state).is_none(),
                is_hidden,
                "{reads_lines:?} {echoes:?}"
            );
        }
    }
}
