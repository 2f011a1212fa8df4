//! Asks the person at the terminal whether a call may run.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use jaato_runtime::session_loop::{Answer, Asker, Question};

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
            // A person may take their time: the wait must not hold up the cancel.
            let asked = tokio::task::spawn_blocking(move || ask(&text)).await;
            asked.unwrap_or_else(|_| Answer::Nobody { reason: "the question was cut short".into() })
        })
    }
}

fn question_text(question: &Question<'_>) -> String {
    let arguments = serde_json::to_string_pretty(&question.call.arguments).unwrap_or_default();
    format!(
        "{} of {} wants to run with\n{}\n({})\n",
        question.call.name,
        question.tool.plugin,
        printable(&arguments),
        printable(&question.why)
    )
}

fn ask(text: &str) -> Answer {
    let nobody = |error: io::Error| Answer::Nobody { reason: error.to_string() };
    if let Err(error) = io::stderr().write_all(text.as_bytes()) {
        return nobody(error);
    }
    loop {
        let prompt = "run it? [y]es, [a]lways in this session, [n]o, or say what to do instead: ";
        // Locked for the write alone: a cancel during the wait below must be told too.
        if let Err(error) = io::stderr().write_all(prompt.as_bytes()) {
            return nobody(error);
        }
        let mut line = String::new();
        match io::stdin().lock().read_line(&mut line) {
            Err(error) => return nobody(error),
            Ok(0) => return Answer::Nobody { reason: "standard input has ended".into() },
            Ok(_) => {}
        }
        if let Some(answer) = read_answer(line.trim()) {
            return answer;
        }
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
    use super::*;

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
