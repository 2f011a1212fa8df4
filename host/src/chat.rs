//! `jaato chat`: a conversation at the terminal, one message a line.
//!
//! Ctrl-C stops the answer that is being given and leaves the conversation as it is; what is typed next
//! goes on from there. A line that begins with `/` is for jaato, not for the model.

use std::io::{self, IsTerminal as _};
use std::sync::{Arc, Mutex, PoisonError};

use console::Style;
use jaato_runtime::Runtime;
use jaato_runtime::registry::CommandStatus;
use jaato_runtime::session_loop::{Cancel, Session};
use serde_json::{Map, Value};

use crate::args::{ChatArgs, Global, OutputForm};
use crate::ask::Stage;
use crate::exit::{Exit, Failure, Outcome};
use crate::lines::{Line, Lines};
use crate::signals::interrupt_on_signals;
use crate::view::View;
use crate::{conversation, reload, report, start};

const HELP: &str = "\
/again   send the last request again, after it failed
/help    this list
/quit    end the conversation (so does Ctrl-D)
/plugin list|show NAME|reload [NAME]    the plugins; a replaced file is taken by itself
A line that begins with // is sent to the model, with one / less.
Ctrl-C stops an answer; a second one ends jaato. Commands:";

/// What a line asks for.
#[derive(Debug, PartialEq, Eq)]
enum Wish<'a> {
    Nothing,
    Say(&'a str),
    Again,
    Help,
    Quit,
    /// What stands behind `/plugin`.
    Plugin(&'a str),
    /// A command by name, and what stands behind it.
    Command(&'a str, &'a str),
}

/// Talks until the lines end. The exit code is that of the last turn, as a shell has it.
pub async fn chat(global: Global, args: ChatArgs) -> Outcome {
    let runtime = conversation::runtime(global, &args.session, true).await?;
    runtime.watch_plugins().await;
    let over = Cancel::new();
    let turn = CurrentTurn::default();
    let current = turn.clone();
    interrupt_on_signals(over.clone(), move || current.stop());
    let view = View::start(OutputForm::Text, over.clone());
    let stage = Arc::<Stage>::default();
    let mut session = conversation::start(&runtime, &args.session, Arc::clone(&view), &stage)?;
    greet(&runtime, &session);
    let mut lines = Lines::new();
    let mut first = Some(args.message.join(" ")).filter(|message| !message.trim().is_empty());
    let mut outcome = Ok(Exit::Done);
    while !over.is_cancelled() {
        let text = match first.take() {
            Some(text) => text,
            None => {
                let Some(_terminal) = stage.for_lines(&over).await else { break };
                view.settle();
                match lines.next(&over).await {
                    Ok(Line::Text(text)) => text,
                    Ok(Line::Dropped) => continue,
                    Ok(Line::End) => break,
                    Err(failure) => {
                        outcome = Err(failure);
                        break;
                    }
                }
            }
        };
        match wish(&text) {
            Wish::Nothing => {}
            Wish::Say(message) => {
                let cancel = turn.begin(&over);
                outcome = Ok(conversation::exit_of_turn(&session.turn(message, &cancel).await));
                turn.end();
            }
            Wish::Again => {
                let cancel = turn.begin(&over);
                outcome = Ok(conversation::exit_of_turn(&session.turn_again(&cancel).await));
                turn.end();
            }
            Wish::Help => help(&runtime),
            Wish::Quit => break,
            Wish::Plugin(words) => {
                let cancel = turn.begin(&over);
                let done = reload::in_chat(&runtime, &mut session, &view, words, &cancel).await;
                outcome = Ok(done.unwrap_or_else(|failure| {
                    view.settle();
                    report::failure(&failure);
                    failure.exit
                }));
                turn.end();
            }
            Wish::Command(name, rest) => {
                let cancel = turn.begin(&over);
                outcome = command(&runtime, &mut session, &view, (name, rest), &cancel).await;
                turn.end();
                if outcome.is_err() {
                    break;
                }
            }
        }
    }
    view.finish();
    runtime.close_session(session.id()).await;
    start::close(runtime).await;
    outcome
}

fn wish(line: &str) -> Wish<'_> {
    let line = line.trim();
    let Some(rest) = line.strip_prefix('/') else {
        return if line.is_empty() { Wish::Nothing } else { Wish::Say(line) };
    };
    match rest {
        _ if rest.starts_with('/') => Wish::Say(rest),
        "again" => Wish::Again,
        "help" => Wish::Help,
        "quit" | "exit" => Wish::Quit,
        other => match other.split_once(char::is_whitespace).unwrap_or((other, "")) {
            ("plugin", rest) => Wish::Plugin(rest.trim()),
            (name, rest) => Wish::Command(name, rest.trim()),
        },
    }
}

/// Runs a command in the conversation and prints its answer, or why there is none.
///
/// # Errors
/// When the answer cannot be printed: nobody reads any more.
async fn command(
    runtime: &Runtime,
    session: &mut Session,
    view: &View,
    (name, rest): (&str, &str),
    cancel: &Cancel,
) -> Outcome {
    let words: Vec<String> = match rest.starts_with('{') {
        true => vec![rest.to_owned()],
        false => rest.split_whitespace().map(str::to_owned).collect(),
    };
    let answer = match runtime.command_arguments(name, &words) {
        Ok(arguments) => runtime.command(session, name, arguments, cancel).await,
        Err(error) => Err(error),
    };
    view.settle();
    match answer {
        Ok(output) => match text_alone(&output.content) {
            Some(text) => report::line(text).map(|()| Exit::Done),
            None => report::json(&Value::Object(output.content)),
        },
        Err(error) => {
            let failure = Failure::from(error);
            report::failure(&failure);
            Ok(failure.exit)
        }
    }
}

/// Returns the text of an answer that is nothing else: a person reads it as one, not as JSON.
fn text_alone(content: &Map<String, Value>) -> Option<&str> {
    content.get("result").filter(|_| content.len() == 1)?.as_str()
}

fn help(runtime: &Runtime) {
    note(HELP);
    for command in runtime.commands() {
        if command.status == CommandStatus::Enabled {
            note(&format!("/{}   {}", command.usage(), command.spec.description));
        }
    }
}

/// Says who talks, where a person reads it.
fn greet(runtime: &Runtime, session: &Session) {
    if !io::stdin().is_terminal() {
        return;
    }
    let tools = session.toolbox().active().count();
    let tools = if tools == 1 { "1 tool".to_owned() } else { format!("{tools} tools") };
    note(&format!("{}, {tools}; /help lists what else there is", runtime.setup().config.model));
}

fn note(text: &str) {
    let dim = Style::new().for_stderr().dim();
    report::notes(&dim.apply_to(text).to_string());
}

/// The cancel of the turn that runs, for whoever handles a signal.
#[derive(Clone, Default)]
struct CurrentTurn(Arc<Mutex<Option<Cancel>>>);

impl CurrentTurn {
    fn begin(&self, over: &Cancel) -> Cancel {
        let cancel = over.child();
        *self.lock() = Some(cancel.clone());
        cancel
    }

    fn end(&self) {
        *self.lock() = None;
    }

    /// Stops the turn; false if none runs, or the one that runs was stopped before.
    fn stop(&self) -> bool {
        let stopped = self.lock().clone().filter(|cancel| !cancel.is_cancelled());
        stopped.inspect(Cancel::cancel).is_some()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Cancel>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use jaato_runtime::types::Output;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_line_is_for_the_model_unless_one_slash_begins_it() {
        assert_eq!(wish("  "), Wish::Nothing);
        assert_eq!(wish(" hello "), Wish::Say("hello"));
        assert_eq!(wish("//usr is a folder"), Wish::Say("/usr is a folder"));
        assert_eq!(wish("/help"), Wish::Help);
        assert_eq!(wish("/exit"), Wish::Quit);
        assert_eq!(wish("/note two words"), Wish::Command("note", "two words"));
        assert_eq!(wish("/gc"), Wish::Command("gc", ""));
        assert_eq!(wish("/plugin show x"), Wish::Plugin("show x"));
    }

    #[test]
    fn an_answer_that_is_a_text_is_shown_as_one() {
        let text = |output: Output| text_alone(&output.content).map(str::to_owned);
        assert_eq!(text(Output::text("1. milk\n2. bread")).as_deref(), Some("1. milk\n2. bread"));
        assert_eq!(text(Output::json(json!(["milk"]))), None);
        assert_eq!(text(Output::json(json!({ "result": "milk", "left": 1 }))), None);
    }
}
