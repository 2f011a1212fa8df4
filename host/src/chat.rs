//! `jaato chat`: a conversation at the terminal, one message per line.
//!
//! Ctrl-C stops the current answer and keeps the conversation, so the next message continues from
//! that point. A line that begins with `/` is for jaato, not for the model. Lines that the user
//! types while the model works are read, too.

mod context;
mod model;
pub mod slash;
mod typed_ahead;

use std::sync::Arc;

use clap::Args;
use jaato_runtime::registry::{CommandStatus, nearest_name};
use jaato_runtime::saved::SaveMode;
use jaato_runtime::session_loop::{Cancel, Session, TurnReport, UserPrompt};
use jaato_runtime::{ListedCommand, Runtime, visible};
use parking_lot::Mutex;
use serde_json::{Map, Value};

use self::slash::{Run, SlashCommand};
use self::typed_ahead::Meanwhile;
use crate::args::{FollowArgs, GlobalArgs, OutputForm, SessionArgs};
use crate::ask::Stage;
use crate::completion_words::LineEditorHelper;
use crate::conversation::SessionObservers;
use crate::exit::{CommandFailure, CommandResult, Exit};
use crate::lines::{Beside, HistoryFile, Line, Lines};
use crate::sessions::resume::{self, NextSession, SessionChange, SessionChoice};
use crate::signals::interrupt_on_signals;
use crate::view::View;
use crate::{attach, conversation, reload, report, start, terminal, worktree};

/// Limit on the turns in a row without a message from the user, because a plugin that wakes the
/// conversation repeatedly must not cause unlimited costs while the user is away.
const WOKEN_TURNS_MAX: u32 = 100;

/// The command that frees space in the conversation. An event shows its result.
const GC: &str = "gc";

/// The command that shows what fills the context, drawn with a bar.
const CONTEXT: &str = "context";

/// The help about keys, after jaato's own commands.
const KEYS_HELP: &str = "\
A line that begins with // is sent to the model, with one / less.
What you type while the model works goes with its next step; /help, /mode, /permissions and /tasks answer at once.
Alt-Enter, Ctrl-J, or a \\ before Enter make a new line; Up and Ctrl-R find what you typed before, unless a blank begins it.
Esc or Ctrl-C stops an answer; while it stops, a second Ctrl-C ends jaato. At the prompt Ctrl-C drops the line. Commands:";

/// The hint for a message that begins with a path.
const SLASH_HINT: &str =
    "`//` sends a line that begins with a slash to the model; Up brings the line back";

/// The arguments of `chat`.
#[derive(Debug, Args)]
pub struct ChatArgs {
    /// The first message; further ones are read line by line
    pub message: Vec<String>,

    #[command(flatten)]
    pub follow: FollowArgs,

    #[command(flatten)]
    pub session: SessionArgs,
}

/// The purpose of a line.
enum Wish<'a> {
    Nothing,
    Say(&'a str),
    /// A command of the conversation, and its arguments.
    Own(&'static SlashCommand, &'a str),
    /// The name of a plugin's command, and its arguments.
    Command(&'a str, &'a str),
}

/// Runs the conversation until the lines end. For a user at the terminal, the exit code is that of
/// the last line, as in a shell. If lines are piped in, no user sees a failure, so the worst line
/// counts.
pub async fn chat(global: GlobalArgs, args: ChatArgs) -> CommandResult {
    terminal::reserve();
    let ChatArgs { message, follow, session: given } = args;
    let (runtime, choice) = conversation::start_runtime(global, (&given, &follow), true).await?;
    runtime.watch_plugins().await;
    let over = Cancel::new();
    let turn = CurrentTurn::default();
    let current = turn.clone();
    interrupt_on_signals(over.clone(), move || current.stop());
    let mut exits = LineExits::default();
    let mut first = Some(message.join(" ")).filter(|message| !message.trim().is_empty());
    let mut change: Option<SessionChange> = None;
    let outcome = loop {
        let choice = change.as_ref().map_or(&choice, |change| &change.next);
        let (args, model) = match &change {
            Some(change) => change.next_settings(&given, &runtime),
            None => (given.clone(), None),
        };
        let opened =
            resume::open_saving(&runtime, choice, (&args, &follow.saving), model.as_deref());
        let saving = match opened {
            Ok(saving) => saving,
            Err(failure) => match change.and_then(SessionChange::previous) {
                // The conversation that ran continues.
                Some(back) => {
                    report::print_failure(&failure);
                    change = Some(back);
                    continue;
                }
                None => break Err(failure),
            },
        };
        let thoughts = follow.thoughts;
        let turn = turn.clone();
        let front = ChatFront { runtime: &runtime, args: &args, thoughts, over: &over, turn };
        match front.converse((choice, saving), first.take(), &mut exits).await {
            Ok(Some(next)) => change = Some(next),
            Ok(None) => break Ok(()),
            Err(failure) => break Err(failure),
        }
    };
    worktree::print_how_to_accept(&runtime);
    start::close_runtime(runtime).await;
    outcome.map(|()| if terminal::input_is_terminal() { exits.last } else { exits.worst() })
}

/// The state that the conversations of one chat share.
struct ChatFront<'a> {
    runtime: &'a Runtime,
    args: &'a SessionArgs,
    /// Whether the user sees the model's thoughts.
    thoughts: bool,
    over: &'a Cancel,
    turn: CurrentTurn,
}

impl ChatFront<'_> {
    /// Runs one session until it ends. Returns the change to the next one, if the user asked for
    /// another session.
    ///
    /// # Errors
    /// If the session cannot start, no more lines can be read, or an answer cannot be printed.
    async fn converse(
        &self,
        (choice, saving): (&SessionChoice, SaveMode),
        first: Option<String>,
        exits: &mut LineExits,
    ) -> Result<Option<SessionChange>, CommandFailure> {
        let Self { runtime, args, thoughts, over, turn } = self;
        let view = View::start(OutputForm::Text, (*over).clone());
        if *thoughts {
            view.show_thoughts();
        }
        let stage = Arc::<Stage>::default();
        stage.keep_lines();
        let watch = SessionObservers::at_terminal(&view, &stage);
        let mut session = conversation::start_session(runtime, args, saving, &view, watch)?;
        print_greeting(&session, choice);
        if !terminal::input_is_terminal() {
            // Piped lines arrive at once. A user continues to type while servers start.
            let cancel = turn.begin(over);
            conversation::await_tools(&mut session, args, &cancel).await;
            turn.end();
        }
        let history = || HistoryFile::of(&runtime.setup().folders);
        let words = LineEditorHelper::new(runtime.word_completer(&session));
        let escaped = turn.clone();
        let lines = Lines::new(words, history, Arc::new(move || escaped.stop()));
        if terminal::input_is_terminal() {
            session.allow_background_tasks();
        }
        let mut chat = Chat {
            runtime,
            args,
            meanwhile: Meanwhile::new(runtime, &session, (&view, &stage), (over, turn)),
            session,
            view: &view,
            stage: &stage,
            lines,
            over,
            turn: turn.clone(),
            attached: UserPrompt::default(),
            exits: std::mem::take(exits),
            is_quit: false,
            next: None,
        };
        let outcome = chat.talk(first).await;
        let Chat { session, mut lines, next, exits: ended, .. } = chat;
        *exits = ended;
        lines.end().await;
        conversation::end_tasks(&session, &view).await;
        session.wait_until_written().await;
        let shown = view.finish(over).await;
        runtime.close_session(session.id()).await;
        if next.is_none() && terminal::input_is_terminal() {
            resume::print_how_to_continue(&session);
        }
        shown?;
        outcome?;
        next.map(|next| SessionChange::prepare_next(session, next, runtime)).transpose()
    }
}

/// A running conversation.
pub struct Chat<'a> {
    runtime: &'a Runtime,
    args: &'a SessionArgs,
    session: Session,
    view: &'a Arc<View>,
    stage: &'a Arc<Stage>,
    lines: Lines,
    meanwhile: Meanwhile<'a>,
    over: &'a Cancel,
    turn: CurrentTurn,
    /// Files for the next message.
    attached: UserPrompt,
    exits: LineExits,
    is_quit: bool,
    /// The session that follows this one.
    next: Option<NextSession>,
}

impl Chat<'_> {
    /// Handles lines until they end.
    ///
    /// # Errors
    /// If no more lines can be read, or an answer cannot be printed.
    async fn talk(&mut self, mut first: Option<String>) -> Result<(), CommandFailure> {
        let (wake, mut woken_turns) = (self.session.wake_waiter(), 0);
        while !self.over.is_cancelled() && !self.is_quit {
            let waiting = match first.take() {
                Some(text) => Some(text),
                None => self.meanwhile.next()?,
            };
            let line = match waiting {
                Some(text) => Line::Text(text),
                None => {
                    let wake = Some(&wake).filter(|_| woken_turns < WOKEN_TURNS_MAX);
                    let (stage, view, over) = (self.stage, self.view, self.over);
                    self.lines.next(Beside { wake, stage, view, over }).await?
                }
            };
            match line {
                Line::Text(text) => {
                    woken_turns = 0;
                    self.take(&text).await?;
                }
                Line::Dropped(_) => {}
                Line::Woken => {
                    self.run_turn(async |session, cancel| session.run_woken_turn(cancel).await)
                        .await;
                    woken_turns += 1;
                    if woken_turns == WOKEN_TURNS_MAX {
                        self.view.settle().await;
                        report::print_problems(&[format!(
                            "{WOKEN_TURNS_MAX} turns ran without a message from you; more wait for your next line"
                        )]);
                    }
                }
                Line::End => break,
            }
        }
        Ok(())
    }

    /// Does what a line requests.
    async fn take(&mut self, line: &str) -> Result<(), CommandFailure> {
        match wish(line) {
            Wish::Nothing => {}
            Wish::Say(message) => self.say(message).await,
            Wish::Own(SlashCommand { run: Run::Help, .. }, _) => help(self.runtime),
            Wish::Own(SlashCommand { run: Run::AtOnce(run), .. }, words) => {
                let ran = run(&self.session.handle(), words).map_err(CommandFailure::from);
                self.count(ran);
            }
            Wish::Own(SlashCommand { run: Run::AfterTurn(run), .. }, words) => {
                run(self, words).await;
            }
            Wish::Command(name, words) => self.command(name, words).await?,
        }
        Ok(())
    }

    async fn say(&mut self, message: &str) {
        // If this message cannot be sent, the attachments are kept for the next one.
        let prompt = self.attached.clone().with_replaced_text(message);
        match attach::attach_files(self.runtime, &self.session, prompt, &[]).await {
            Ok(prompt) => {
                self.attached = UserPrompt::default();
                self.run_turn(async |session, cancel| session.run_turn(prompt, cancel).await).await;
            }
            Err(failure) => self.count(Err(failure)),
        }
    }

    async fn run_turn(&mut self, turn: impl AsyncFnOnce(&mut Session, &Cancel) -> TurnReport) {
        let Self { session, lines, meanwhile, .. } = self;
        let exit = meanwhile.turn(lines, async |cancel: &Cancel| turn(session, cancel).await).await;
        self.exits.turn(exit);
    }

    async fn again(&mut self) {
        let Self { session, lines, meanwhile, .. } = self;
        let again = async |cancel: &Cancel| session.repeat_last_turn(cancel).await;
        self.exits.again(meanwhile.turn(lines, again).await);
    }

    async fn attach(&mut self, files: &str) {
        if files.is_empty() {
            let failure = CommandFailure::new(Exit::Usage, "/attach needs a file");
            return self.count(Err(failure.hint(slash::hint("attach"))));
        }
        let (before, files) = (self.attached.clone(), attach::parse_file_list(files));
        let attached = attach::attach_files(self.runtime, &self.session, before, &files).await;
        let done = attached.map(|prompt| {
            self.attached = prompt;
            report::print_remark("your next message will include it");
            Exit::Done
        });
        self.count(done);
    }

    async fn model(&mut self, name: &str) {
        let Self { runtime, session, args, view, .. } = self;
        let changed = model::change(runtime, session, (args, view), name).await;
        self.count(changed);
    }

    async fn plugin(&mut self, words: &str) {
        let cancel = self.turn.begin(self.over);
        let done =
            reload::run_plugin_words(self.runtime, &mut self.session, self.view, words, &cancel)
                .await;
        self.view.settle().await;
        self.count(done);
        self.turn.end();
    }

    async fn quit(&mut self) {
        self.is_quit = true;
    }

    /// Ends this session and continues with another one.
    fn go_on_with(&mut self, next: Result<NextSession, CommandFailure>) {
        match next {
            Ok(next) => {
                self.next = Some(next);
                self.is_quit = true;
            }
            Err(failure) => self.count(Err(failure)),
        }
    }

    async fn resume(&mut self, id: &str) {
        let next = resume::session_to_resume(self.runtime, &self.session, id).await;
        self.go_on_with(next);
    }

    async fn rewind(&mut self, words: &str) {
        match words {
            "" => {
                let shown = resume::list_messages(self.runtime, &self.session);
                self.count(shown);
            }
            words => {
                let cancel = self.turn.begin(self.over);
                let Self { runtime, session, .. } = self;
                let next = NextSession::rewind(runtime, session, words, &cancel).await;
                self.view.settle().await;
                self.turn.end();
                self.go_on_with(next);
            }
        }
    }

    async fn fork(&mut self, words: &str) {
        let next = NextSession::fork(self.runtime, &self.session, words);
        self.go_on_with(next);
    }

    async fn export(&mut self, file: &str) {
        let exported = resume::export_current_session(self.runtime, &self.session, file);
        self.count(exported);
    }

    async fn rename(&mut self, name: &str) {
        let renamed = resume::rename_current_session(&self.session, name);
        self.count(renamed);
    }

    /// Runs a plugin's command.
    ///
    /// # Errors
    /// If the reader closed the output, so that the answer cannot be printed.
    async fn command(&mut self, name: &str, words: &str) -> Result<(), CommandFailure> {
        let cancel = self.turn.begin(self.over);
        let done =
            command(self.runtime, &mut self.session, self.view, (name, words), &cancel).await;
        self.turn.end();
        match done? {
            Done::Shown(exit) => self.exits.command(exit),
            Done::Says(text) => {
                report::print_remark(&format_text_size(name, &text));
                let prompt = std::mem::take(&mut self.attached).with_replaced_text(&text);
                self.run_turn(async |session, cancel| session.run_turn(prompt, cancel).await).await;
            }
        }
        Ok(())
    }

    /// Records how a command ended, and shows the error if it failed.
    fn count(&mut self, ended: Result<Exit, CommandFailure>) {
        self.exits.command(ended.unwrap_or_else(|failure| {
            report::print_failure(&failure);
            failure.exit
        }));
    }
}

/// The exit codes of a conversation's lines.
#[derive(Debug)]
struct LineExits {
    last: Exit,
    /// The exit code of the last message. A request that succeeds when it is sent again has not
    /// failed.
    turn: Exit,
    /// The worst exit code of all other lines.
    others: Exit,
}

impl Default for LineExits {
    fn default() -> Self {
        Self { last: Exit::Done, turn: Exit::Done, others: Exit::Done }
    }
}

impl LineExits {
    fn turn(&mut self, exit: Exit) {
        // A user who stops an answer and then continues did so on purpose, so this counts only at
        // the end.
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
        self.others = self.others.worse_of(exit);
        self.last = exit;
    }

    fn worst(&self) -> Exit {
        self.others.worse_of(self.turn)
    }
}

fn wish(line: &str) -> Wish<'_> {
    let line = line.trim();
    let Some(rest) = line.strip_prefix('/') else {
        return if line.is_empty() { Wish::Nothing } else { Wish::Say(line) };
    };
    if rest.starts_with('/') {
        return Wish::Say(rest);
    }
    let (name, words) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let words = words.trim();
    match slash::find(if name == "exit" { "quit" } else { name }) {
        Some(own) if words.is_empty() || !own.arguments.is_empty() => Wish::Own(own, words),
        Some(_) | None => Wish::Command(name, words),
    }
}

/// The result of a command.
enum Done {
    /// The answer was shown to the user.
    Shown(Exit),
    /// The command sends this text to the model as the user's message.
    Says(String),
}

/// Runs a command in the conversation and prints its answer or its error.
///
/// # Errors
/// If the reader closed the output, so that the answer cannot be printed.
async fn command(
    runtime: &Runtime,
    session: &mut Session,
    view: &View,
    (name, rest): (&str, &str),
    cancel: &Cancel,
) -> Result<Done, CommandFailure> {
    let words: Vec<String> = match rest.starts_with('{') {
        true => vec![rest.to_owned()],
        false => rest.split_whitespace().map(str::to_owned).collect(),
    };
    if runtime.registry().command(name).is_none() {
        // A plugin may have set the command for this session, or may be about to.
        session.renew_tools(cancel).await;
    }
    let answer = match runtime.parse_command_arguments(name, &words) {
        Ok(arguments) => runtime.run_command(session, name, arguments, cancel).await,
        Err(error) => Err(error),
    };
    view.settle().await;
    match answer {
        Ok(output) => match text_alone(&output.content) {
            Some(text) if is_prompt(runtime, name) => Ok(Done::Says(text.to_owned())),
            Some(text) => report::print_line(text).map(|()| Done::Shown(Exit::Done)),
            // The view has shown the result as a sentence.
            None if name == GC && words.is_empty() && view.is_seen() => Ok(Done::Shown(Exit::Done)),
            None if name == CONTEXT && terminal::output_is_terminal() => {
                context::draw(&output.content).map(|()| Done::Shown(Exit::Done))
            }
            None => report::print_json(&Value::Object(output.content)).map(Done::Shown),
        },
        Err(error) => {
            let mut failure = CommandFailure::from(error);
            let commands = runtime.list_commands();
            if !commands.iter().any(|command| command.spec.name == name) {
                failure.hint = Some(hint_for(&commands, name));
            }
            report::print_failure(&failure);
            Ok(Done::Shown(failure.exit))
        }
    }
}

/// Suggests a command for an unknown name.
fn hint_for(commands: &[ListedCommand], name: &str) -> String {
    if name.contains('/') {
        // The line was meant for the model, because it begins with a path.
        return SLASH_HINT.to_owned();
    }
    let plugins = commands.iter().map(|command| command.spec.name.as_str());
    match nearest_name(name, slash::COMMANDS.iter().map(|own| own.name).chain(plugins)) {
        Some(near) => format!("did you mean `/{}`? /help lists all", visible::visible_name(near)),
        None => "/help lists them".to_owned(),
    }
}

/// Returns true if a command's answer is sent as the user's next message.
fn is_prompt(runtime: &Runtime, name: &str) -> bool {
    runtime
        .list_commands()
        .iter()
        .any(|command| command.spec.name == name && command.spec.as_prompt)
}

/// Says how much text a command sends to the model.
fn format_text_size(name: &str, text: &str) -> String {
    let lines = text.lines().count();
    let lines = if lines == 1 { "1 line".to_owned() } else { format!("{lines} lines") };
    format!("/{} says {lines} to the model", visible::visible_name(name))
}

/// Returns the text of an answer that contains nothing else, so that the user sees text instead of
/// JSON.
fn text_alone(content: &Map<String, Value>) -> Option<&str> {
    content.get("result").filter(|_| content.len() == 1)?.as_str()
}

fn help(runtime: &Runtime) {
    let own = slash::COMMANDS.iter().map(|own| format!("/{:<22} {}\n", own.usage(), own.help));
    report::print_remark(&format!("{}{KEYS_HELP}", own.collect::<String>()));
    for command in runtime.list_commands() {
        // Jaato's own commands take precedence over a plugin's command with the same name.
        let is_own = slash::find(&command.spec.name).is_some();
        if command.status == CommandStatus::Enabled && !is_own {
            let (usage, description) = (command.usage_line(), &command.spec.description);
            let usage = visible::visible_name(&usage).into_owned();
            report::print_remark(&format!(
                "/{usage:<22} {}",
                report::indent_further_lines(description)
            ));
        }
    }
}

/// Shows the model and the tools, if a user types at the terminal.
fn print_greeting(session: &Session, choice: &SessionChoice) {
    if !terminal::input_is_terminal() {
        return;
    }
    let (active, all) =
        (session.toolbox().active_tools().count(), session.toolbox().tools().count());
    let mut tools = if active == 1 { "1 tool".to_owned() } else { format!("{active} tools") };
    if all > active {
        // The model finds the others by itself.
        tools += &format!(" of {all}");
    }
    let model = session.facts().model;
    let unasked = session.handle().rules().is_ok_and(|rules| rules.lock().allow_all);
    let unasked = if unasked { ", --yes" } else { "" };
    let model = visible::visible_name(&model);
    report::print_remark(&format!("{model}, {tools}{unasked}; /help lists what else there is"));
    if *choice != SessionChoice::New {
        resume::show_end(session);
    }
}

/// The cancel token of the running turn, for signal handlers.
#[derive(Clone, Default)]
struct CurrentTurn(Arc<Mutex<Option<Cancel>>>);

impl CurrentTurn {
    fn begin(&self, over: &Cancel) -> Cancel {
        let cancel = over.child_token();
        *self.lock() = Some(cancel.clone());
        cancel
    }

    fn end(&self) {
        *self.lock() = None;
    }

    /// Stops the turn. Returns false if no turn runs, or the running turn was stopped before.
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
        for (line, expected) in [
            ("  ", "nothing"),
            (" hello ", "say hello"),
            ("//usr is a folder", "say /usr is a folder"),
            ("/help", "own help "),
            ("/exit", "own quit "),
            ("/quit now", "command quit now"),
            ("/note two words", "command note two words"),
            ("/permissions  remove 1", "own permissions remove 1"),
            ("/gc", "command gc "),
        ] {
            let wish = match wish(line) {
                Wish::Nothing => "nothing".to_owned(),
                Wish::Say(text) => format!("say {text}"),
                Wish::Own(own, words) => format!("own {} {words}", own.name),
                Wish::Command(name, words) => format!("command {name} {words}"),
            };
            assert_eq!(wish, expected, "{line}");
        }
    }

    #[test]
    fn an_answer_that_is_a_text_is_shown_as_one() {
        let text = |output: Output| text_alone(&output.content).map(str::to_owned);
        assert_eq!(text(Output::text("1. milk\n2. bread")).as_deref(), Some("1. milk\n2. bread"));
        assert_eq!(text(Output::json(json!(["milk"]))), None);
        assert_eq!(text(Output::json(json!({ "result": "milk", "left": 1 }))), None);
    }
}
