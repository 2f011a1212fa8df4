//! Asks the person at the terminal whether a call may run.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use jaato_runtime::session_loop::{Answer, Asker, Question};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use serde_json::Value;

use crate::view::{View, printable};

/// Asks on standard error and reads from standard input, where both are a terminal.
pub struct TerminalAsker {
    view: Arc<View>,
    nobody: Option<&'static str>,
}

impl TerminalAsker {
    /// Looks at the terminal once.
    pub fn new(view: Arc<View>) -> Self {
        let nobody = if !io::stdin().is_terminal() {
            Some("standard input is no terminal")
        } else if !io::stderr().is_terminal() {
            Some("standard error is no terminal")
        } else {
            None
        };
        Self { view, nobody }
    }
}

impl Asker for TerminalAsker {
    fn nobody(&self) -> Option<String> {
        self.nobody.map(str::to_owned)
    }

    fn ask<'a>(&'a self, question: Question<'a>) -> BoxFuture<'a, Answer> {
        self.view.settle();
        let text = question_text(&question);
        Box::pin(async move {
            ask(&text).await.unwrap_or_else(|error| Answer::Nobody { reason: error.to_string() })
        })
    }
}

fn question_text(question: &Question<'_>) -> String {
    format!(
        "{} of {} wants to run with\n{}({})\n",
        question.call.name,
        question.tool.plugin,
        shown(&question.call.arguments),
        printable(&question.why)
    )
}

/// Shows arguments as a person reads them: a text as it is and not as JSON has it, each of its lines
/// behind a bar, so that none can pass for a line of ours.
fn shown(arguments: &Value) -> String {
    let Some(arguments) = arguments.as_object().filter(|arguments| !arguments.is_empty()) else {
        return format!("  {}\n", printable(&arguments.to_string()));
    };
    let mut text = String::new();
    for (name, value) in arguments {
        let name = printable(name).replace('\n', " ");
        let value = value.as_str().map_or_else(|| format!("{value:#}"), str::to_owned);
        let value = printable(&value).into_owned();
        if value.contains('\n') {
            text.push_str(&format!("  {name}:\n"));
            value.lines().for_each(|line| text.push_str(&format!("  │ {line}\n")));
        } else {
            text.push_str(&format!("  {name}: {value}\n"));
        }
    }
    text
}

async fn ask(text: &str) -> io::Result<Answer> {
    // Locked for the write alone: a cancel during the wait below must be told too.
    io::stderr().write_all(text.as_bytes())?;
    loop {
        let prompt = "run it? [y]es, [a]lways in this session, [n]o, or say what to do instead: ";
        io::stderr().write_all(prompt.as_bytes())?;
        let mut line = String::new();
        a_line_is_there().await?;
        if io::stdin().lock().read_line(&mut line)? == 0 {
            return Ok(Answer::Nobody { reason: "standard input has ended".into() });
        }
        if let Some(answer) = read_answer(line.trim()) {
            return Ok(answer);
        }
    }
}

/// Waits until the terminal can be read without a wait: it gives out whole lines. Looked at now and then and
/// not read on a thread, because a cancel would leave that thread behind to take what is typed next.
async fn a_line_is_there() -> io::Result<()> {
    const LOOKED_AT_EVERY: Duration = Duration::from_millis(20);
    loop {
        let stdin = io::stdin();
        let mut terminal = [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
        if poll(&mut terminal, PollTimeout::ZERO)? > 0 {
            return Ok(());
        }
        tokio::time::sleep(LOOKED_AT_EVERY).await;
    }
}

/// Reads an answer; an empty line is none, because silence is not consent.
fn read_answer(line: &str) -> Option<Answer> {
    match line.to_ascii_lowercase().as_str() {
        "" => None,
        "y" | "yes" => Some(Answer::AllowOnce),
        "a" | "always" => Some(Answer::AllowInSession),
        "n" | "no" => Some(Answer::Deny { comment: None }),
        _ => Some(Answer::Deny { comment: Some(line.to_owned()) }),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn arguments_are_shown_as_a_person_reads_them() {
        let arguments = json!({ "command": "echo \"a\"", "text": "one\ntwo\u{1b}[2J", "n": [1] });
        let expected = "  command: echo \"a\"\n  text:\n  │ one\n  │ two\u{fffd}[2J\n  n:\n  │ [\n  │   1\n  │ ]\n";
        assert_eq!(shown(&arguments), expected);
        assert_eq!(shown(&json!({})), "  {}\n");
        assert_eq!(shown(&json!("x")), "  \"x\"\n");
    }

    #[test]
    fn an_empty_line_decides_nothing_and_a_sentence_is_a_refusal_with_a_comment() {
        assert_eq!(read_answer(""), None);
        assert_eq!(read_answer("Y"), Some(Answer::AllowOnce));
        assert_eq!(read_answer("always"), Some(Answer::AllowInSession));
        assert_eq!(read_answer("no"), Some(Answer::Deny { comment: None }));
        let comment = Some("use cargo instead".to_owned());
        assert_eq!(read_answer("use cargo instead"), Some(Answer::Deny { comment }));
    }
}
