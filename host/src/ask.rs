//! Asks the person at the terminal whether a call may run, and for what only a program may see.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use futures_util::future::BoxFuture;
use jaato_runtime::session_loop::{Answer, Asker, Cancel, Question, SecretAnswer, SecretQuestion};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use serde_json::Value;
use tokio::sync::{Mutex, MutexGuard};

use crate::hidden::{self, Hidden};
use crate::view::{View, one_line, printable};

/// Columns of what a program asks for.
const PROMPT_COLUMNS: usize = 400;

/// Whose the terminal is at this moment: a question's, or that of who types the next message.
#[derive(Default)]
pub struct Stage {
    taken: Mutex<()>,
    is_lines: AtomicBool,
}

/// The terminal, for who types the next message.
pub struct ForLines<'a> {
    stage: &'a Stage,
    _taken: MutexGuard<'a, ()>,
}

impl Stage {
    /// Takes the terminal for the next message, once no question has it; none when it is over before.
    pub async fn for_lines(&self, over: &Cancel) -> Option<ForLines<'_>> {
        let _taken = tokio::select! {
            taken = self.taken.lock() => taken,
            () = over.cancelled() => return None,
        };
        self.is_lines.store(true, Relaxed);
        Some(ForLines { stage: self, _taken })
    }

    /// Takes the terminal for a question that comes while calls run; none while the next message is typed, as
    /// nobody knows how long that takes.
    async fn for_question(&self) -> Option<MutexGuard<'_, ()>> {
        if self.is_lines.load(Relaxed) {
            return None;
        }
        Some(self.taken.lock().await)
    }
}

impl Drop for ForLines<'_> {
    fn drop(&mut self) {
        self.stage.is_lines.store(false, Relaxed);
    }
}

/// Asks on standard error and reads from standard input, where both are a terminal.
pub struct TerminalAsker {
    view: Arc<View>,
    stage: Arc<Stage>,
    nobody: Option<&'static str>,
}

impl TerminalAsker {
    /// Looks at the terminal once.
    pub fn new(view: Arc<View>, stage: Arc<Stage>) -> Self {
        let nobody = if !io::stdin().is_terminal() {
            Some("standard input is no terminal")
        } else if !io::stderr().is_terminal() {
            Some("standard error is no terminal")
        } else {
            None
        };
        Self { view, stage, nobody }
    }
}

impl Asker for TerminalAsker {
    fn nobody(&self) -> Option<String> {
        self.nobody.map(str::to_owned)
    }

    fn ask<'a>(&'a self, question: Question<'a>) -> BoxFuture<'a, Answer> {
        let text = question_text(&question);
        Box::pin(async move {
            let _taken = self.stage.taken.lock().await;
            self.view.settle();
            ask(&text).await.unwrap_or_else(|error| Answer::Nobody { reason: error.to_string() })
        })
    }

    fn secret<'a>(&'a self, question: SecretQuestion<'a>) -> BoxFuture<'a, SecretAnswer> {
        let nobody = |reason: &str| SecretAnswer::Nobody { reason: reason.to_owned() };
        Box::pin(async move {
            if let Some(reason) = self.nobody {
                return nobody(reason);
            }
            let Some(_taken) = self.stage.for_question().await else {
                return nobody("the next message is being typed at the terminal");
            };
            self.view.settle();
            match hidden::ask(&secret_text(&question)).await {
                Ok(Hidden::Typed(secret)) => SecretAnswer::Typed(secret),
                Ok(Hidden::Declined) => SecretAnswer::Declined,
                Err(error) => nobody(&error.to_string()),
            }
        })
    }
}

/// Asks at the terminal for what only a program may see, and somebody else for everything else.
pub struct SecretsAlone {
    /// Who is asked whether a call may run.
    pub rest: Arc<dyn Asker>,
    /// The terminal.
    pub terminal: TerminalAsker,
}

impl Asker for SecretsAlone {
    fn nobody(&self) -> Option<String> {
        self.rest.nobody()
    }

    fn ask<'a>(&'a self, question: Question<'a>) -> BoxFuture<'a, Answer> {
        self.rest.ask(question)
    }

    fn secret<'a>(&'a self, question: SecretQuestion<'a>) -> BoxFuture<'a, SecretAnswer> {
        self.terminal.secret(question)
    }
}

/// Says who asks before it says what: the program's own words may say anything.
fn secret_text(question: &SecretQuestion<'_>) -> String {
    let SecretQuestion { plugin, name, command, prompt } = question;
    let [name, command, prompt] = [name, command, prompt].map(|it| one_line(it, PROMPT_COLUMNS));
    format!(
        "{} of {plugin} runs `{command}`, which asks for what nobody else may see.\n\
         What you type now goes to that program alone and is not shown; Ctrl-C declines.\n\
         {} ",
        name,
        prompt.trim_end()
    )
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
    something_is_typed().await
}

/// Waits until something can be read from the terminal.
pub async fn something_is_typed() -> io::Result<()> {
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
    use jaato_runtime::types::PluginName;
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

    #[tokio::test]
    async fn a_question_waits_for_another_and_not_for_the_next_message() {
        let (stage, over) = (Stage::default(), Cancel::new());
        let lines = stage.for_lines(&over).await;
        assert!(lines.is_some() && stage.for_question().await.is_none());
        drop(lines);
        let question = stage.for_question().await;
        assert!(question.is_some());
        // The next message waits for the question, as long as there is to be one.
        over.cancel();
        assert!(stage.for_lines(&over).await.is_none());
        drop(question);
        assert!(stage.for_question().await.is_some());
    }

    #[test]
    fn a_question_for_a_secret_says_who_asks_and_cannot_pass_for_another() {
        let plugin = PluginName::from("tool-x");
        let prompt = "password:\u{1b}[2J\nrun it? ";
        let question = SecretQuestion { plugin: &plugin, name: "session_0", command: "su", prompt };
        let text = secret_text(&question);
        assert!(text.starts_with("session_0 of tool-x runs `su`, which asks"), "{text}");
        assert!(text.ends_with("\npassword:\u{fffd}[2J run it? "), "{text}");
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
