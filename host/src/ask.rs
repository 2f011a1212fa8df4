//! Asks the person at the terminal whether a call may run, and for what only a program may see.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use futures_util::future::BoxFuture;
use jaato_runtime::session_loop::{
    AlwaysScope, Answer, Asker, Cancel, FormQuestion, Question, SecretAnswer, SecretQuestion,
};
use jaato_runtime::types::ask::FormAnswer;
use jaato_runtime::types::file_change::FileChange;
use jaato_runtime::types::hooks::Preview;
use jaato_runtime::visible;
use parking_lot::Mutex as SyncMutex;
use serde_json::Value;
use tokio::sync::{Mutex, MutexGuard, watch};

use crate::diff::{self, Tense};
use crate::form;
use crate::hidden::{self, Hidden};
use crate::terminal::{self, Before, Manner, NAME_COLUMNS, Reply, Text, exact_line};
use crate::view::View;

/// Why nobody can be asked once nothing is shown any more.
const VIEW_ENDED: &str = "the view has ended";

/// Why nobody can be asked where questions cannot be seen.
const NOTHING_SHOWN: &str = "standard error is no terminal";

/// Columns of what a program asks for.
const PROMPT_COLUMNS: usize = 400;

/// Whose the terminal is at this moment: a question's, or that of who types the next message.
#[derive(Default)]
pub struct Stage {
    taken: Mutex<()>,
    /// Whether the next message is being typed.
    is_typed: watch::Sender<bool>,
    /// Questions that wait for the terminal.
    waiting: watch::Sender<usize>,
    /// Lines that were typed before a question was seen: they belong to the next message.
    typed_early: SyncMutex<Vec<String>>,
    /// There is a next message.
    has_lines: AtomicBool,
}

/// The terminal, for who types the next message.
pub struct ForLines<'a> {
    stage: &'a Stage,
    _taken: MutexGuard<'a, ()>,
}

/// A question that waits for the terminal, counted until it is dropped.
struct Waiting<'a>(&'a Stage);

impl<'a> Waiting<'a> {
    fn begin(stage: &'a Stage) -> Self {
        stage.waiting.send_modify(|waiting| *waiting += 1);
        Self(stage)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.send_modify(|waiting| *waiting -= 1);
    }
}

impl Stage {
    /// Takes the terminal for the next message, once no question has it; none when it is over
    /// before.
    pub async fn for_lines(&self, over: &Cancel) -> Option<ForLines<'_>> {
        let _taken = tokio::select! {
            taken = self.taken.lock() => taken,
            () = over.cancelled() => return None,
        };
        Some(ForLines { stage: self, _taken })
    }

    /// Says that messages are read, so that what was typed before a question is kept for the next
    /// one.
    pub fn keep_lines(&self) {
        self.has_lines.store(true, Relaxed);
    }

    fn before(&self) -> Before<'_> {
        // Lines that are piped in are typed by nobody, and what is typed beside them is no message.
        let are_typed = self.has_lines.load(Relaxed) && terminal::input_is_terminal();
        if are_typed { Before::Kept(&self.typed_early) } else { Before::Dropped }
    }

    /// Takes the terminal for a question. An idle prompt gives way to it; a message that is being
    /// typed is waited for.
    async fn for_question(&self) -> MutexGuard<'_, ()> {
        let _waiting = Waiting::begin(self);
        self.taken.lock().await
    }

    /// Takes the terminal for a question that comes while calls run; none while the next message is
    /// typed, as nobody knows how long that takes.
    async fn for_urgent_question(&self) -> Option<MutexGuard<'_, ()>> {
        let mut is_typed = self.is_typed.subscribe();
        tokio::select! {
            biased;
            // Its sender is here: it cannot fail.
            _ = is_typed.wait_for(|is_typed| *is_typed) => None,
            taken = self.for_question() => Some(taken),
        }
    }
}

impl ForLines<'_> {
    /// Takes the lines that were typed before a question was seen.
    pub fn typed_early(&self) -> Vec<String> {
        let mut lines = self.stage.typed_early.lock();
        std::mem::take(&mut *lines)
    }

    /// Says that the message is being typed from here on.
    pub fn begin_typing(&self) {
        self.stage.is_typed.send_replace(true);
    }

    /// Becomes ready when a question waits for the terminal.
    pub async fn wanted(&self) {
        let mut waiting = self.stage.waiting.subscribe();
        // Its sender is here: it cannot fail.
        let _ = waiting.wait_for(|waiting| *waiting > 0).await;
    }
}

impl Drop for ForLines<'_> {
    fn drop(&mut self) {
        self.stage.is_typed.send_replace(false);
    }
}

/// Asks on standard error, where that is a terminal, and reads what is typed at the keyboard.
pub struct TerminalAsker {
    view: Arc<View>,
    stage: Arc<Stage>,
}

impl TerminalAsker {
    /// Makes one.
    pub fn new(view: Arc<View>, stage: Arc<Stage>) -> Self {
        Self { view, stage }
    }

    fn nobody_there(&self) -> Option<&'static str> {
        let nobody_reads = || (!terminal::errors_are_terminal()).then_some(NOTHING_SHOWN);
        terminal::nobody_types().or_else(nobody_reads)
    }
}

impl Asker for TerminalAsker {
    fn nobody(&self) -> Option<String> {
        self.nobody_there().map(str::to_owned)
    }

    fn ask<'a>(&'a self, question: Question<'a>) -> BoxFuture<'a, Answer> {
        let question = question_of(&question);
        Box::pin(async move {
            let _taken = self.stage.for_question().await;
            let Some(open) = self.view.open_question().await else {
                return Answer::Nobody { reason: VIEW_ENDED.to_owned() };
            };
            let read = |line: &str| read_answer(line).ok_or_else(String::new);
            match terminal::ask(Arc::new(open), question, self.stage.before(), read).await {
                Ok(Reply::Answer(answer)) => answer,
                Ok(Reply::Nobody(reason)) => Answer::Nobody { reason },
                Err(error) => Answer::Nobody { reason: error.to_string() },
            }
        })
    }

    fn secret<'a>(&'a self, question: SecretQuestion<'a>) -> BoxFuture<'a, SecretAnswer> {
        let nobody = |reason: &str| SecretAnswer::Nobody { reason: reason.to_owned() };
        Box::pin(async move {
            if let Some(reason) = self.nobody_there() {
                return nobody(reason);
            }
            let Some(_taken) = self.stage.for_urgent_question().await else {
                return nobody("the next message is being typed at the terminal");
            };
            let Some(open) = self.view.open_question().await else {
                return nobody(VIEW_ENDED);
            };
            match hidden::ask(&open, &secret_text(&question)).await {
                Ok(Hidden::Typed(secret)) => SecretAnswer::Typed(secret),
                Ok(Hidden::Declined) => SecretAnswer::Declined,
                Err(error) => nobody(&error.to_string()),
            }
        })
    }

    fn form<'a>(&'a self, question: FormQuestion<'a>) -> BoxFuture<'a, FormAnswer> {
        Box::pin(async move {
            let _taken = self.stage.for_question().await;
            let Some(open) = self.view.open_question().await else {
                return FormAnswer::nobody(VIEW_ENDED);
            };
            let answered = form::ask(Arc::new(open), &question, self.stage.before()).await;
            answered.unwrap_or_else(|error| FormAnswer::nobody(error.to_string()))
        })
    }
}

/// Says who asks before it says what: the program's own words may say anything.
fn secret_text(question: &SecretQuestion<'_>) -> Text {
    let SecretQuestion { plugin, name, command, prompt } = question;
    let [name, command, prompt] = [name, command, prompt].map(|it| exact_line(it, PROMPT_COLUMNS));
    Text::new().plain(&format!(
        "{} of {plugin} runs `{command}`, which asks for what nobody else may see.\n\
         What you type now goes to that program alone and is not shown; Ctrl-C declines.\n\
         {} ",
        name,
        prompt.trim_end()
    ))
}

fn question_of(question: &Question<'_>) -> terminal::Question {
    let name = exact_line(&visible::name(question.call.name.as_str()), NAME_COLUMNS);
    let always = question.always.map(|scope| always_for(scope, &name));
    let always = always.unwrap_or_default();
    let mut values = values_of(&question.call.arguments);
    if let Some(preview) = &question.preview {
        if !preview.changes.is_empty() {
            // The changes say the same, as they come to be.
            values = values.into_iter().map(terminal::Value::briefly).collect();
        }
        values.extend(preview_of(preview, question.tool.plugin.as_str()));
    }
    let by = question.by.map(|plugin| format!(", called by {plugin},")).unwrap_or_default();
    let agent = question.agent.map(|agent| format!("[{agent}] ")).unwrap_or_default();
    terminal::Question {
        head: format!("{agent}{name} of {}{by} wants to run with", question.tool.plugin),
        values,
        why: format!("({})", question.why),
        prompt: format!("run it? [y]es, {always}[n]o, or say what to do instead:"),
        manner: Manner::Letters,
    }
}

fn always_for(scope: AlwaysScope, name: &str) -> String {
    match scope {
        AlwaysScope::ThisCall => "[a]lways in this session for exactly this call, ".to_owned(),
        AlwaysScope::EveryCall => format!("[a]lways in this session for every call of {name}, "),
    }
}

/// Returns what a plugin says that its call would change, each named after who says so.
fn preview_of(preview: &Preview, plugin: &str) -> Vec<terminal::Value> {
    let said = |what: &str, text: &str| {
        let name = Some(format!("{what}, says {plugin}"));
        (!text.trim().is_empty()).then(|| terminal::Value::new(name, text.to_owned()))
    };
    let changes = &preview.changes;
    let summary = if changes.len() > 1 { diff::summary(changes) } else { String::new() };
    let before = [
        said("effect", &preview.text),
        said("command", &preview.command),
        said("changes", &summary),
    ];
    let drawn = changes.iter().map(|change| {
        let heading = diff::heading(change, Tense::ToCome);
        let (lines, core) = (diff::lines(change), diff::core(change));
        terminal::Value::of_lines(format!("{heading}, says {plugin}"), lines, core)
    });
    // Those with a diff are named above it.
    let is_of = |change: &FileChange, file: &String| {
        change.path == *file || change.moved_from.as_ref() == Some(file)
    };
    let files = preview.files.iter().filter(|file| !changes.iter().any(|it| is_of(it, file)));
    let files = files.map(String::as_str).collect::<Vec<_>>().join("\n");
    let after = [said("changes", &preview.diff), said("files", &files)];
    before.into_iter().flatten().chain(drawn).chain(after.into_iter().flatten()).collect()
}

/// Returns arguments as a person reads them: a text as it is and not as JSON has it.
fn values_of(arguments: &Value) -> Vec<terminal::Value> {
    let Some(arguments) = arguments.as_object().filter(|arguments| !arguments.is_empty()) else {
        return vec![terminal::Value::new(None, arguments.to_string())];
    };
    let value_of = |(name, value): (&String, &Value)| {
        let text = value.as_str().map_or_else(|| format!("{value:#}"), str::to_owned);
        terminal::Value::new(Some(name.clone()), text)
    };
    arguments.iter().map(value_of).collect()
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
    use jaato_runtime::types::file_change::{FileHunk, HunkLine, HunkLineKind};
    use serde_json::json;

    use super::*;

    #[test]
    fn arguments_are_shown_as_a_person_reads_them() {
        let shown = |arguments: &Value| {
            let values = values_of(arguments).into_iter();
            values.map(|value| value.shown()).collect::<Vec<_>>()
        };
        let arguments = json!({ "command": "echo \"a\"", "text": "one\ntwo", "n": [1] });
        let expected = [("command", "echo \"a\""), ("text", "one\ntwo"), ("n", "[\n  1\n]")];
        assert_eq!(
            shown(&arguments),
            expected.map(|(name, text)| (name.to_owned(), text.to_owned()))
        );
        for other in [json!({}), json!("x")] {
            assert_eq!(shown(&other), [(String::new(), other.to_string())]);
        }
    }

    #[test]
    fn what_a_call_would_change_is_shown_with_who_says_so() {
        let preview = Preview { files: vec!["a".into(), "b".into()], ..Preview::diff("-x\n+y") };
        let shown = preview_of(&preview, "tool-x").into_iter();
        let shown: Vec<_> = shown.map(|value| value.shown()).collect();
        let expected = [("changes, says tool-x", "-x\n+y"), ("files, says tool-x", "a\nb")];
        assert_eq!(shown, expected.map(|(name, text)| (name.to_owned(), text.to_owned())));
    }

    #[test]
    fn each_file_that_would_change_has_a_heading_and_its_lines() {
        let line =
            |kind, text: &str| HunkLine { kind, text: text.to_owned(), ..HunkLine::default() };
        let lines = vec![line(HunkLineKind::Removed, "x"), line(HunkLineKind::Added, "y")];
        let change = |path: &str, lines: Vec<HunkLine>| FileChange {
            path: path.to_owned(),
            hunks: vec![FileHunk { old_start: 1, new_start: 1, lines }],
            lines_added: 1,
            lines_removed: 1,
            ..FileChange::default()
        };
        let changes = vec![change("a", lines.clone()), change("b", lines)];
        let files = vec!["a".to_owned(), "c".to_owned()];
        let preview = Preview { files, changes, ..Preview::default() };
        let shown: Vec<_> = preview_of(&preview, "p").iter().map(terminal::Value::shown).collect();
        let expected = [
            ("changes, says p", "2 files (+2 -2)"),
            ("changes a (+1 -1), says p", "1 - x\n1 + y"),
            ("changes b (+1 -1), says p", "1 - x\n1 + y"),
            ("files, says p", "c"),
        ];
        assert_eq!(shown, expected.map(|(name, text)| (name.to_owned(), text.to_owned())));
    }

    #[test]
    fn what_always_will_hold_for_is_said() {
        let every = "[a]lways in this session for every call of note, ";
        let this = "[a]lways in this session for exactly this call, ";
        assert_eq!(always_for(AlwaysScope::ThisCall, "note"), this);
        assert_eq!(always_for(AlwaysScope::EveryCall, "note"), every);
    }

    #[tokio::test]
    async fn a_secret_waits_for_another_question_and_not_for_the_next_message() {
        let (stage, over) = (Stage::default(), Cancel::new());
        let lines = stage.for_lines(&over).await.unwrap();
        lines.begin_typing();
        assert!(stage.for_urgent_question().await.is_none());
        drop(lines);
        let question = stage.for_urgent_question().await;
        assert!(question.is_some());
        // The next message waits for the question, as long as there is to be one.
        over.cancel();
        assert!(stage.for_lines(&over).await.is_none());
        drop(question);
        assert!(stage.for_urgent_question().await.is_some());
    }

    #[tokio::test]
    async fn a_prompt_without_a_key_gives_way_to_a_question() {
        let (stage, over) = (Arc::new(Stage::default()), Cancel::new());
        let lines = stage.for_lines(&over).await.unwrap();
        let asks = Arc::clone(&stage);
        let asking = tokio::spawn(async move { asks.for_urgent_question().await.is_some() });
        lines.wanted().await;
        drop(lines);
        assert!(asking.await.unwrap());
        // It is not wanted any more.
        assert_eq!(*stage.waiting.borrow(), 0);
    }

    #[test]
    fn a_question_for_a_secret_says_who_asks_and_cannot_pass_for_another() {
        let plugin = PluginName::from("tool-x");
        let prompt = "password:\u{1b}[2J\nrun it? ";
        let question = SecretQuestion { plugin: &plugin, name: "session_0", command: "su", prompt };
        let text = secret_text(&question).styled(console::Style::new);
        assert!(text.starts_with("session_0 of tool-x runs `su`, which asks"), "{text}");
        assert!(text.ends_with("\npassword:<U+001B>[2J run it? "), "{text}");
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
