//! `jaato chat`: a conversation at the terminal, one message a line.
//!
//! Ctrl-C stops the answer that is being given and leaves the conversation as it is; what is typed
//! next goes on from there. A line that begins with `/` is for jaato, not for the model. What is
//! typed while the model works is taken too (`meanwhile`).

mod meanwhile;
mod model;

use std::sync::Arc;

use clap::Args;
use jaato_runtime::registry::{CommandStatus, nearest};
use jaato_runtime::session_loop::{Cancel, Prompt, Session};
use jaato_runtime::types::Error;
use jaato_runtime::{Command, Runtime, visible};
use parking_lot::Mutex;
use serde_json::{Map, Value};

use self::meanwhile::Meanwhile;
use crate::args::{Global, OutputForm, SessionArgs};
use crate::ask::Stage;
use crate::conversation::Watch;
use crate::exit::{Exit, Failure, Outcome};
use crate::lines::{Beside, HistoryFile, Line, Lines};
use crate::signals::interrupt_on_signals;
use crate::view::View;
use crate::words::Words;
use crate::{attach, conversation, permissions, reload, report, start, tasks, terminal, words};

/// Most turns in a row that nobody has asked for: a plugin that wakes the conversation again and
/// again must not spend without end while the person is away.
const WOKEN_TURNS_MAX: u32 = 100;

const HELP: &str = "\
/again                  sends the last request again, for another answer
/attach FILE…           shows the model an image, a PDF or text with your next message, as `@FILE` in it does
/help                   lists all this
/mode [NAME]            shows or changes the approval mode: ask, accept-edits, plan or read-only
/model [NAME]           another model answers from here on; alone says which one does
/permissions            lists your answers for later calls; `remove NUMBER|all` removes them
/plugin list|show|reload [NAME]   the plugins; a replaced file is taken by itself
/quit                   ends the conversation, as Ctrl-D does
/tasks                  what runs in the background; `stop ID|all` ends it
A line that begins with // is sent to the model, with one / less.
What you type while the model works goes with its next step; /help, /mode, /permissions and /tasks answer at once.
Alt-Enter, Ctrl-J, or a \\ before Enter make a new line; Up and Ctrl-R find what you typed before, unless a blank begins it.
Esc or Ctrl-C stops an answer; while it stops, a second Ctrl-C ends jaato. At the prompt Ctrl-C drops the line. Commands:";

/// What to do where a message begins with a path.
const SLASH_HINT: &str =
    "`//` sends a line that begins with a slash to the model; Up brings the line back";

/// What `chat` takes.
#[derive(Debug, Args)]
pub struct ChatArgs {
    /// The first message; further ones are read line by line
    pub message: Vec<String>,

    #[command(flatten)]
    pub session: SessionArgs,
}

/// What a line asks for.
#[derive(Debug, PartialEq, Eq)]
enum Wish<'a> {
    Nothing,
    Say(&'a str),
    Again,
    /// Files for the next message.
    Attach(&'a str),
    Help,
    Quit,
    /// What stands behind `/plugin`.
    Plugin(&'a str),
    /// Another model, by name.
    Model(&'a str),
    /// The approval mode, by name.
    Mode(&'a str),
    /// What stands behind `/permissions`.
    Permissions(&'a str),
    /// What stands behind `/tasks`.
    Tasks(&'a str),
    /// A command by name, and what stands behind it.
    Command(&'a str, &'a str),
}

/// Talks until the lines end. Where a person sits, the exit code is that of the last line, as a
/// shell has it; where lines are piped in nobody sees a failure go by, and the worst line decides.
pub async fn chat(global: Global, args: ChatArgs) -> Outcome {
    terminal::reserve();
    let runtime = conversation::runtime(global, &args.session, true).await?;
    runtime.watch_plugins().await;
    let over = Cancel::new();
    let turn = CurrentTurn::default();
    let current = turn.clone();
    interrupt_on_signals(over.clone(), move || current.stop());
    let view = View::start(OutputForm::Text, over.clone());
    let stage = Arc::<Stage>::default();
    stage.keep_lines();
    let mut session =
        conversation::start(&runtime, &args.session, &view, Watch::at_terminal(&view, &stage))?;
    greet(&session);
    if !terminal::input_is_terminal() {
        // Lines that are piped in come at once; a user who types goes on while servers start.
        let cancel = turn.begin(&over);
        conversation::await_tools(&mut session, &args.session, &cancel).await;
        turn.end();
    }
    let history = || HistoryFile::of(&runtime.setup().folders);
    let words = Words::new(runtime.word_completer(&session));
    let escaped = turn.clone();
    let mut lines = Lines::new(words, history, Arc::new(move || escaped.stop()));
    if terminal::input_is_terminal() {
        session.let_tasks_go_on();
    }
    let mut meanwhile = Meanwhile::new(&runtime, &session, (&view, &stage), (&over, &turn));
    let mut first = Some(args.message.join(" ")).filter(|message| !message.trim().is_empty());
    let mut outcome = Ok(());
    let mut exits = LineExits::default();
    let mut attached = Prompt::default();
    let (wake, mut woken_turns) = (session.wake(), 0);
    while !over.is_cancelled() {
        let waiting = match first.take() {
            Some(text) => Ok(Some(text)),
            None => meanwhile.next(),
        };
        let line = match waiting.transpose() {
            Some(line) => line.map(Line::Text),
            None => {
                let wake = Some(&wake).filter(|_| woken_turns < WOKEN_TURNS_MAX);
                lines.next(Beside { wake, stage: &stage, view: &view, over: &over }).await
            }
        };
        let text = match line {
            Ok(Line::Text(text)) => text,
            Ok(Line::Dropped(_)) => continue,
            Ok(Line::Woken) => {
                let woken = async |cancel: &Cancel| session.turn_woken(cancel).await;
                exits.turn(meanwhile.turn(&mut lines, woken).await);
                woken_turns += 1;
                if woken_turns == WOKEN_TURNS_MAX {
                    view.settle().await;
                    report::problems(&[format!(
                        "{WOKEN_TURNS_MAX} turns ran that nobody asked for: what comes next waits for your next line"
                    )]);
                }
                continue;
            }
            Ok(Line::End) => break,
            Err(failure) => {
                outcome = Err(failure);
                break;
            }
        };
        woken_turns = 0;
        match wish(&text) {
            Wish::Nothing => {}
            Wish::Say(message) => {
                // What was attached stays for the next message where this one cannot be sent.
                let prompt = attached.clone().saying(message);
                match attach::beside(&runtime, &session, prompt, &[]).await {
                    Ok(prompt) => {
                        attached = Prompt::default();
                        let said = async |cancel: &Cancel| session.turn(prompt, cancel).await;
                        exits.turn(meanwhile.turn(&mut lines, said).await);
                    }
                    Err(failure) => exits.command(told(&failure)),
                }
            }
            Wish::Attach("") => {
                let failure = Failure::new(Exit::Usage, "/attach needs a file");
                exits.command(told(&failure.hint("/attach FILE, or @FILE in a message")));
            }
            Wish::Attach(files) => {
                let before = attached.clone();
                match attach::beside(&runtime, &session, before, &attach::listed(files)).await {
                    Ok(prompt) => {
                        attached = prompt;
                        report::remark("it goes with your next message");
                        exits.command(Exit::Done);
                    }
                    Err(failure) => exits.command(told(&failure)),
                }
            }
            Wish::Again => {
                let again = async |cancel: &Cancel| session.turn_again(cancel).await;
                exits.again(meanwhile.turn(&mut lines, again).await);
            }
            Wish::Help => help(&runtime),
            Wish::Quit => break,
            Wish::Plugin(words) => {
                let cancel = turn.begin(&over);
                let done = reload::in_chat(&runtime, &mut session, &view, words, &cancel).await;
                view.settle().await;
                exits.command(done.unwrap_or_else(|failure| {
                    report::failure(&failure);
                    failure.exit
                }));
                turn.end();
            }
            Wish::Model(name) => {
                let changed =
                    model::change(&runtime, &mut session, (&args.session, &view), name).await;
                exits.command(changed.unwrap_or_else(|failure| told(&failure)));
            }
            Wish::Mode(name) => {
                exits.command(answered(permissions::mode(&session.handle(), name)));
            }
            Wish::Permissions(words) => {
                exits.command(answered(permissions::permissions(&session.handle(), words)));
            }
            Wish::Tasks(words) => exits.command(answered(tasks::tasks(&session.handle(), words))),
            Wish::Command(name, rest) => {
                let cancel = turn.begin(&over);
                let done = command(&runtime, &mut session, &view, (name, rest), &cancel).await;
                turn.end();
                match done {
                    Ok(Done::Shown(exit)) => exits.command(exit),
                    Ok(Done::Says(text)) => {
                        report::remark(&said(name, &text));
                        let prompt = std::mem::take(&mut attached).saying(&text);
                        let said = async |cancel: &Cancel| session.turn(prompt, cancel).await;
                        exits.turn(meanwhile.turn(&mut lines, said).await);
                    }
                    Err(failure) => {
                        outcome = Err(failure);
                        break;
                    }
                }
            }
        }
    }
    lines.end().await;
    conversation::end_tasks(&session, &view).await;
    let shown = view.finish(&over).await;
    runtime.close_session(session.id()).await;
    start::close(runtime).await;
    shown?;
    outcome.map(|()| if terminal::input_is_terminal() { exits.last } else { exits.worst() })
}

/// How the lines of a conversation ended.
#[derive(Debug)]
struct LineExits {
    last: Exit,
    /// Of the last message: a request that works when it is sent again has not failed.
    turn: Exit,
    /// Of all other lines.
    others: Exit,
}

impl Default for LineExits {
    fn default() -> Self {
        Self { last: Exit::Done, turn: Exit::Done, others: Exit::Done }
    }
}

impl LineExits {
    fn turn(&mut self, exit: Exit) {
        // Who stops an answer and goes on meant it so: only at the end it counts.
        if self.turn != Exit::Cancelled {
            self.others = self.worst();
        }
        (self.turn, self.last) = (exit, exit);
    }

    fn again(&mut self, exit: Exit) {
        if exit == Exit::Usage {
            // There was nothing to send again.
            return self.command(exit);
        }
        (self.turn, self.last) = (exit, exit);
    }

    fn command(&mut self, exit: Exit) {
        self.others = self.others.worse(exit);
        self.last = exit;
    }

    fn worst(&self) -> Exit {
        self.others.worse(self.turn)
    }
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
            ("model", rest) => Wish::Model(rest.trim()),
            ("mode", rest) => Wish::Mode(rest.trim()),
            ("permissions", rest) => Wish::Permissions(rest.trim()),
            ("tasks", rest) => Wish::Tasks(rest.trim()),
            ("attach", rest) => Wish::Attach(rest.trim()),
            (name, rest) => Wish::Command(name, rest.trim()),
        },
    }
}

/// Tells what became of a command about the session.
fn answered(answered: Result<Exit, Error>) -> Exit {
    answered.unwrap_or_else(|error| told(&error.into()))
}

/// Tells why something was not done, and with which exit code.
fn told(failure: &Failure) -> Exit {
    report::failure(failure);
    failure.exit
}

/// What came of a command.
enum Done {
    /// The person has been shown its answer.
    Shown(Exit),
    /// It says this to the model for the person.
    Says(String),
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
) -> Result<Done, Failure> {
    let words: Vec<String> = match rest.starts_with('{') {
        true => vec![rest.to_owned()],
        false => rest.split_whitespace().map(str::to_owned).collect(),
    };
    if runtime.registry().command(name).is_none() {
        // A plugin may have set it for this session, or be about to.
        session.renew_tools(cancel).await;
    }
    let answer = match runtime.command_arguments(name, &words) {
        Ok(arguments) => runtime.command(session, name, arguments, cancel).await,
        Err(error) => Err(error),
    };
    view.settle().await;
    match answer {
        Ok(output) => match text_alone(&output.content) {
            Some(text) if is_prompt(runtime, name) => Ok(Done::Says(text.to_owned())),
            Some(text) => report::line(text).map(|()| Done::Shown(Exit::Done)),
            None => report::json(&Value::Object(output.content)).map(Done::Shown),
        },
        Err(error) => {
            let mut failure = Failure::from(error);
            let commands = runtime.commands();
            if !commands.iter().any(|command| command.spec.name == name) {
                failure.hint = Some(hint_for(&commands, name));
            }
            report::failure(&failure);
            Ok(Done::Shown(failure.exit))
        }
    }
}

/// Says what may have been meant where there is no such command.
fn hint_for(commands: &[Command], name: &str) -> String {
    if name.contains('/') {
        // It was meant for the model: a path begins it.
        return SLASH_HINT.to_owned();
    }
    let plugins = commands.iter().map(|command| command.spec.name.as_str());
    match nearest(name, words::OWN.map(|(own, _)| own).into_iter().chain(plugins)) {
        Some(near) => format!("did you mean `/{}`? /help lists all", visible::name(near)),
        None => "/help lists them".to_owned(),
    }
}

/// Returns true if a command's answer is what the person says next.
fn is_prompt(runtime: &Runtime, name: &str) -> bool {
    runtime.commands().iter().any(|command| command.spec.name == name && command.spec.as_prompt)
}

/// Tells how much a command says to the model.
fn said(name: &str, text: &str) -> String {
    let lines = text.lines().count();
    let lines = if lines == 1 { "1 line".to_owned() } else { format!("{lines} lines") };
    format!("/{} says {lines} to the model", visible::name(name))
}

/// Returns the text of an answer that is nothing else: a person reads it as one, not as JSON.
fn text_alone(content: &Map<String, Value>) -> Option<&str> {
    content.get("result").filter(|_| content.len() == 1)?.as_str()
}

fn help(runtime: &Runtime) {
    report::remark(HELP);
    for command in runtime.commands() {
        // Jaato's own come first, whatever a plugin calls its.
        let is_own = words::OWN.iter().any(|(own, _)| *own == command.spec.name);
        if command.status == CommandStatus::Enabled && !is_own {
            let (usage, description) = (command.usage(), &command.spec.description);
            let usage = visible::name(&usage).into_owned();
            report::remark(&format!("/{usage:<22} {}", report::indented(description)));
        }
    }
}

/// Says who talks, where a person reads it.
fn greet(session: &Session) {
    if !terminal::input_is_terminal() {
        return;
    }
    let (active, all) = (session.toolbox().active().count(), session.toolbox().tools().len());
    let mut tools = if active == 1 { "1 tool".to_owned() } else { format!("{active} tools") };
    if all > active {
        // The model finds them by itself.
        tools += &format!(" of {all}");
    }
    let model = session.facts().model;
    let unasked = session.handle().rules().is_ok_and(|rules| rules.lock().allow_all);
    let unasked = if unasked { ", --yes" } else { "" };
    let model = visible::name(&model);
    report::remark(&format!("{model}, {tools}{unasked}; /help lists what else there is"));
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

    fn lock(&self) -> parking_lot::MutexGuard<'_, Option<Cancel>> {
        self.0.lock()
    }
}

#[cfg(test)]
mod tests {
    use jaato_runtime::types::Output;
    use serde_json::json;

    use super::*;

    #[test]
    fn the_worst_line_counts_unless_it_was_made_good() {
        let mut exits = LineExits::default();
        exits.turn(Exit::Provider);
        exits.command(Exit::Done);
        exits.again(Exit::Done);
        assert_eq!((exits.worst(), exits.last), (Exit::Done, Exit::Done));
        exits.again(Exit::Usage);
        assert_eq!((exits.worst(), exits.last), (Exit::Usage, Exit::Usage));
        exits.turn(Exit::Provider);
        exits.turn(Exit::Limit);
        assert_eq!((exits.worst(), exits.last), (Exit::Provider, Exit::Limit));
        let mut exits = LineExits::default();
        exits.turn(Exit::Cancelled);
        assert_eq!(exits.worst(), Exit::Cancelled);
        exits.turn(Exit::Done);
        assert_eq!(exits.worst(), Exit::Done);
    }

    #[test]
    fn a_line_is_for_the_model_unless_one_slash_begins_it() {
        assert_eq!(wish("  "), Wish::Nothing);
        assert_eq!(wish(" hello "), Wish::Say("hello"));
        assert_eq!(wish("//usr is a folder"), Wish::Say("/usr is a folder"));
        assert_eq!(wish("/help"), Wish::Help);
        assert_eq!(wish("/exit"), Wish::Quit);
        assert_eq!(wish("/note two words"), Wish::Command("note", "two words"));
        assert_eq!(wish("/mode read-only"), Wish::Mode("read-only"));
        assert_eq!(wish("/permissions remove 1"), Wish::Permissions("remove 1"));
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
