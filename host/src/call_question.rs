//! The question whether a call may run, as a person at the terminal sees and answers it.

use std::io;
use std::sync::Arc;

use jaato_runtime::session_loop::{Answer, Question, Reading, Scope};
use jaato_runtime::types::file_change::{FileChange, FileChangeKind};
use jaato_runtime::types::hooks::Preview;
use jaato_runtime::visible;
use serde_json::Value;

use crate::diff::{self, Tense};
use crate::terminal::{
    self, Before, CTRL_C, Look, Manner, NAME_COLUMNS, OpenQuestion, Reply, exact_line,
};
use crate::words;

/// What can be answered where there is no room for more.
const SHORT_PROMPT: &str = "run it? [y]es, [e]dit, [n]o, or say what to do instead:";

/// What is said to who asks what can be answered.
const ANSWERS_WITH_SCOPES: &str = "y runs this call; t, a and p also later calls like it, in this turn, in \
    this session or for good; e changes its arguments; n denies it, never denies the tool; other \
    words deny it and are told to the model";

/// The same where an answer holds for the call alone.
const ANSWERS: &str = "y runs this call; e changes its arguments; n denies it, never denies the tool; other words \
    deny it and are told to the model";

/// What is said to who wants more than there is room to show.
const NO_ROOM_FOR_SCOPES: &str =
    "there is no room to show for which calls that holds: make the terminal larger, or y or n";

/// Longest argument that stands beside the changes it makes, in bytes.
const ARGUMENT_BYTES_MAX: usize = 60;

/// Columns of a terminal from which on there is room for all words of a question.
const WIDE_COLUMNS_MIN: usize = 60;

/// How much can be answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// All.
    Full,
    /// What is about this call alone, on a terminal without room for more.
    Short,
}

/// What a line at the question says.
#[derive(Debug, Clone, PartialEq)]
enum Said {
    Answer(Answer),
    /// The person wants other arguments.
    Edit,
}

/// Asks until there is an answer. Dropping the future takes the question back.
///
/// # Errors
/// When the terminal is gone.
pub async fn ask(
    open: Arc<OpenQuestion>,
    question: &Question<'_>,
    mut before: Before<'_>,
) -> io::Result<Reply<Answer>> {
    let patterns = question.patterns.len();
    loop {
        let (asked, form) = match question_of(question, Form::Full) {
            full if full.fits() => (full, Form::Full),
            // What it is about comes before all that could be answered.
            _ => (question_of(question, Form::Short), Form::Short),
        };
        let read = |line: &str| read_answer(line, patterns, form);
        let said = terminal::ask(Arc::clone(&open), asked, before, read).await?;
        match said {
            Reply::Answer(Said::Answer(answer)) => return Ok(Reply::Answer(answer)),
            // The terminal has become smaller: there is room for less.
            Reply::Nobody(_)
                if form == Form::Full
                    && !question_of(question, Form::Full).finds_room()
                    && question_of(question, Form::Short).finds_room() => {}
            Reply::Nobody(reason) => return Ok(Reply::Nobody(reason)),
            Reply::Answer(Said::Edit) => {}
        }
        // What is typed between two questions was meant for the call, and not for the next message.
        before = Before::Dropped;
        match edited(&open, question).await? {
            Reply::Answer(Some(arguments)) => {
                return Ok(Reply::Answer(Answer::Edit { arguments }));
            }
            Reply::Answer(None) => {}
            Reply::Nobody(reason) => return Ok(Reply::Nobody(reason)),
        }
    }
}

/// Asks for other arguments; none where the person leaves them as they are.
async fn edited(
    open: &Arc<OpenQuestion>,
    question: &Question<'_>,
) -> io::Result<Reply<Option<Value>>> {
    let arguments = &question.call.arguments;
    let asked = terminal::Question {
        head: format!("other arguments for {}", name_of(question)),
        values: values_of(arguments),
        why: String::new(),
        choices: Vec::new(),
        prompt: "NAME = VALUE changes one, a JSON object all of them; an empty line leaves them:"
            .to_owned(),
        manner: Manner::Words,
    };
    terminal::ask(Arc::clone(open), asked, Before::Dropped, |line| read_edit(arguments, line)).await
}

/// Reads other arguments: one by its name, or all of them.
fn read_edit(arguments: &Value, line: &str) -> Result<Option<Value>, String> {
    if line.ends_with(CTRL_C) {
        return Ok(None);
    }
    if line.starts_with('{') {
        let read = serde_json::from_str::<Value>(line);
        return read.map(Some).map_err(|error| format!("that is no JSON object: {error}"));
    }
    if line.is_empty() {
        return Ok(None);
    }
    let Some((name, text)) = line.split_once('=') else {
        let names = arguments.as_object().into_iter().flatten().map(|(name, _)| name.as_str());
        let name = exact_line(&visible::name(names.take(1).next().unwrap_or("name")), NAME_COLUMNS);
        return Err(format!("write `{name} = ` and what it is to be; an empty line leaves all"));
    };
    let (name, text) = (name.trim(), text.trim());
    let mut edited = arguments.clone();
    let Some(fields) = edited.as_object_mut() else {
        return Err("these arguments have no names: write all of them as JSON".to_owned());
    };
    // Text stays text, whatever it looks like.
    let value = match fields.get(name) {
        Some(Value::String(_)) => Value::from(text),
        _ => serde_json::from_str(text).unwrap_or_else(|_| Value::from(text)),
    };
    fields.insert(name.to_owned(), value);
    Ok(Some(edited))
}

fn name_of(question: &Question<'_>) -> String {
    exact_line(&visible::name(question.call.name.as_str()), NAME_COLUMNS)
}

fn question_of(question: &Question<'_>, form: Form) -> terminal::Question {
    let name = name_of(question);
    let arguments = &question.call.arguments;
    let mut values = match &question.preview {
        // The changes say the same, as they come to be. A stranger may lie about them.
        Some(preview) if question.tool.shipped && shows_all(preview) => {
            match without_texts(arguments) {
                Value::Object(left) if left.is_empty() => Vec::new(),
                left => values_of(&left),
            }
        }
        Some(preview) if !preview.changes.is_empty() => {
            values_of(arguments).into_iter().map(terminal::Value::briefly).collect()
        }
        Some(_) | None => values_of(arguments),
    };
    if let Some(preview) = &question.preview {
        values.extend(preview_of(preview, question.tool.plugin.as_str()));
    }
    values.extend(reading_of(&question.reading));
    let by = question.by.map(|plugin| format!(", called by {plugin},")).unwrap_or_default();
    let agent = question.agent.map(|agent| format!("[{agent}] ")).unwrap_or_default();
    let place = question.environment.as_deref().map(|place| exact_line(place, NAME_COLUMNS));
    let place = place.map(|place| format!("; the session works in {place}")).unwrap_or_default();
    let times = match question.times {
        0 | 1 => String::new(),
        times => format!(" {times} times, each"),
    };
    let edited = if question.was_edited { ", as you changed it" } else { "" };
    let choices = match question.patterns.as_slice() {
        // One alone is the call itself, which the prompt says.
        [] | [_] => Vec::new(),
        several => several.to_vec(),
    };
    terminal::Question {
        head: format!(
            "{agent}{name} of {}{by} wants to run{times}{edited} with",
            question.tool.plugin
        ),
        values,
        why: match form {
            Form::Short if question.environment.is_none() => String::new(),
            Form::Full | Form::Short => format!("({}{place})", question.why),
        },
        prompt: match form {
            Form::Full => prompt_of(question.patterns.len(), &name, terminal::size().1),
            Form::Short => SHORT_PROMPT.to_owned(),
        },
        choices: if form == Form::Full { choices } else { Vec::new() },
        manner: Manner::Letters,
    }
}

/// Says what can be answered, and what of it holds for which later calls.
fn prompt_of(patterns: usize, name: &str, columns: usize) -> String {
    if columns < WIDE_COLUMNS_MIN {
        let like = if patterns == 0 { "" } else { "[t]urn, [a]lways, [p]ermanently, " };
        return format!("run it? [y]es, {like}[e]dit, [n]o, or say what to do instead:");
    }
    let like = match patterns {
        0 => "",
        1 => "[t]his turn, [a]lways in this session or [p]ermanently for exactly this, ",
        _ => "[t]his turn, [a]lways in this session, [p]ermanently (as in 1; a2: as in 2), ",
    };
    format!("run it? [y]es, {like}[e]dit, [n]o, never {name}, or say what to do instead:")
}

/// Returns what the rules read in a call: the commands of a line and what may hide more of them,
/// the hosts.
fn reading_of(reading: &Reading) -> Vec<terminal::Value> {
    let Reading { commands, risks, hosts } = reading;
    let mut values = Vec::new();
    // One command that is all of the line stands above.
    if commands.len() > 1 || (!commands.is_empty() && !risks.is_empty()) {
        values.push(terminal::Value::new(Some("runs".to_owned()), commands.join("\n")));
    }
    if !risks.is_empty() {
        let lines: Vec<_> = risks.iter().map(|risk| (Look::Yellow, risk.clone())).collect();
        values.push(terminal::Value::of_lines("mind".to_owned(), lines, Vec::new()));
    }
    if !hosts.is_empty() {
        let name = if hosts.len() == 1 { "host" } else { "hosts" };
        values.push(terminal::Value::new(Some(name.to_owned()), hosts.join("\n")));
    }
    values
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

/// Tells whether a preview shows each change whole: no text of the arguments says more.
fn shows_all(preview: &Preview) -> bool {
    let is_whole = |change: &FileChange| {
        let has_lines = !change.hunks.is_empty() || change.kind == FileChangeKind::Moved;
        !change.is_cut && has_lines
    };
    !preview.changes.is_empty() && preview.changes.iter().all(is_whole)
}

/// Leaves out the texts that a change is made of.
fn without_texts(arguments: &Value) -> Value {
    let is_short = |value: &Value| match value {
        Value::String(text) => text.len() <= ARGUMENT_BYTES_MAX && !text.contains('\n'),
        Value::Array(_) | Value::Object(_) => false,
        Value::Null | Value::Bool(_) | Value::Number(_) => true,
    };
    let Some(named) = arguments.as_object() else { return arguments.clone() };
    let short = named.iter().filter(|(_, value)| is_short(value));
    Value::Object(short.map(|(name, value)| (name.clone(), value.clone())).collect())
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

/// Reads an answer; an empty line is none, because silence is not consent. The number of a pattern
/// stands behind a letter: `a2`, `always 2`.
fn read_answer(line: &str, patterns: usize, form: Form) -> Result<Said, String> {
    let has_scopes = form == Form::Full && patterns > 0;
    let answers = if has_scopes { ANSWERS_WITH_SCOPES } else { ANSWERS };
    let lower = line.to_ascii_lowercase();
    let (word, number) = with_number(&lower);
    let pattern = match number {
        None => None,
        Some(number) if (1..=patterns).contains(&number) => Some(number - 1),
        Some(_) if patterns == 0 => return Err("each such call is asked: y or n".to_owned()),
        Some(number) => return Err(format!("there is no {number}: 1 to {patterns}")),
    };
    let allow = |scope| match patterns {
        0 => Answer::AllowOnce,
        _ => Answer::AllowLike { scope, pattern: pattern.unwrap_or(0) },
    };
    Ok(Said::Answer(match word {
        "" if number.is_none() => return Err(String::new()),
        "?" | "h" | "help" => return Err(answers.to_owned()),
        command if is_command(command) => {
            return Err(format!("`{command}` waits: a question is open. {answers}"));
        }
        "t" | "turn" | "a" | "always" | "p" | "permanently"
            if form == Form::Short && patterns > 0 =>
        {
            return Err(NO_ROOM_FOR_SCOPES.to_owned());
        }
        "y" | "yes" | "once" if number.is_none() => Answer::AllowOnce,
        "t" | "turn" => allow(Scope::Turn),
        "a" | "always" => allow(Scope::Session),
        "p" | "permanently" => allow(Scope::Always),
        "n" | "no" if number.is_none() => Answer::Deny { comment: None },
        "never" => Answer::DenyLike { scope: Scope::Session, pattern, comment: None },
        "e" | "edit" if number.is_none() => return Ok(Said::Edit),
        _ => Answer::Deny { comment: Some(line.to_owned()) },
    }))
}

/// Tells whether a line is a command of a conversation, which is not meant for the model.
fn is_command(line: &str) -> bool {
    let word = line.split_whitespace().next().and_then(|word| word.strip_prefix('/'));
    word.is_some_and(|word| words::OWN.iter().any(|(own, _)| *own == word))
}

/// Splits a number off the end of a word that takes one.
fn with_number(line: &str) -> (&str, Option<usize>) {
    let word = line.trim_end_matches(|sign: char| sign.is_ascii_digit());
    let takes_one =
        matches!(word.trim(), "t" | "turn" | "a" | "always" | "p" | "permanently" | "never");
    match line[word.len()..].parse() {
        Ok(number) if takes_one => (word.trim(), Some(number)),
        _ => (line, None),
    }
}

#[cfg(test)]
mod tests {
    use jaato_runtime::types::file_change::{FileHunk, HunkLine, HunkLineKind};
    use serde_json::json;

    use super::*;

    fn read_answer(line: &str, patterns: usize) -> Result<Said, String> {
        super::read_answer(line, patterns, Form::Full)
    }

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
    fn an_empty_line_decides_nothing_and_a_sentence_is_a_refusal_with_a_comment() {
        let read = |line: &str| read_answer(line, 3);
        let said = |answer| Ok(Said::Answer(answer));
        assert_eq!(read(""), Err(String::new()));
        assert_eq!(read("Y"), said(Answer::AllowOnce));
        assert_eq!(read("no"), said(Answer::Deny { comment: None }));
        for words in ["use cargo instead", "no, because of 2", "a cat", "y2", "2"] {
            let comment = Some(words.to_owned());
            assert_eq!(read(words), said(Answer::Deny { comment }), "{words}");
        }
        assert_eq!(read("e"), Ok(Said::Edit));
    }

    #[test]
    fn a_number_says_for_which_later_calls_an_answer_holds() {
        let like = |scope, pattern| Ok(Said::Answer(Answer::AllowLike { scope, pattern }));
        for asks in ["?", "help", "/help", "/mode read-only", "/quit"] {
            let told = |patterns, form| super::read_answer(asks, patterns, form).unwrap_err();
            assert!(told(3, Form::Full).contains(ANSWERS_WITH_SCOPES), "{asks}");
            for (patterns, form) in [(0, Form::Full), (3, Form::Short)] {
                assert!(told(patterns, form).contains(ANSWERS), "{asks}");
            }
        }
        for scope in ["t", "a2", "permanently"] {
            let told = super::read_answer(scope, 3, Form::Short);
            assert_eq!(told, Err(NO_ROOM_FOR_SCOPES.to_owned()));
        }
        let path = "/tmp is the wrong place";
        let denied = Answer::Deny { comment: Some(path.to_owned()) };
        assert_eq!(read_answer(path, 3), Ok(Said::Answer(denied)));
        assert_eq!(read_answer("a", 3), like(Scope::Session, 0));
        assert_eq!(read_answer("a2", 3), like(Scope::Session, 1));
        assert_eq!(read_answer("Always 3", 3), like(Scope::Session, 2));
        assert_eq!(read_answer("t1", 3), like(Scope::Turn, 0));
        assert_eq!(read_answer("p2", 3), like(Scope::Always, 1));
        assert_eq!(read_answer("a4", 3), Err("there is no 4: 1 to 3".to_owned()));
        assert_eq!(read_answer("a0", 3), Err("there is no 0: 1 to 3".to_owned()));
        let never = |pattern| {
            Ok(Said::Answer(Answer::DenyLike { scope: Scope::Session, pattern, comment: None }))
        };
        assert_eq!(read_answer("never", 3), never(None));
        assert_eq!(read_answer("never 2", 3), never(Some(1)));
        // Where each such call is asked, nothing holds for later ones.
        assert_eq!(read_answer("a", 0), Ok(Said::Answer(Answer::AllowOnce)));
        assert!(read_answer("a1", 0).is_err());
    }

    #[test]
    fn one_argument_is_changed_by_its_name_or_all_of_them_as_json() {
        let arguments = json!({ "command": "ls", "n": 1 });
        let read = |line: &str| read_edit(&arguments, line);
        assert_eq!(
            read("command = echo a=b 1"),
            Ok(Some(json!({ "command": "echo a=b 1", "n": 1 })))
        );
        assert_eq!(read("n = 2"), Ok(Some(json!({ "command": "ls", "n": 2 }))));
        assert_eq!(read("command=7"), Ok(Some(json!({ "command": "7", "n": 1 }))));
        assert_eq!(read("new = [1]"), Ok(Some(json!({ "command": "ls", "n": 1, "new": [1] }))));
        assert_eq!(read(r#"{"n": 3}"#), Ok(Some(json!({ "n": 3 }))));
        assert!(read("{").unwrap_err().starts_with("that is no JSON object"));
        assert!(read("what?").unwrap_err().starts_with("write `command = `"));
        assert_eq!(read(""), Ok(None));
        assert_eq!(read(&format!("command = x{CTRL_C}")), Ok(None));
        assert!(read_edit(&json!(1), "a = 2").is_err());
    }

    #[test]
    fn what_a_command_line_may_hide_is_marked() {
        let shown = |reading: Reading| {
            let values = reading_of(&reading).into_iter();
            values.map(|value| value.shown()).collect::<Vec<_>>()
        };
        let one = vec!["ls".to_owned()];
        assert_eq!(shown(Reading { commands: one.clone(), ..Reading::default() }), []);
        let risks = vec!["writes a file: > out".to_owned()];
        let pair = |name: &str, text: &str| (name.to_owned(), text.to_owned());
        assert_eq!(
            shown(Reading { commands: one, risks, ..Reading::default() }),
            [pair("runs", "ls"), pair("mind", "writes a file: > out")]
        );
        let hosts = vec!["a.example".to_owned()];
        assert_eq!(shown(Reading { hosts, ..Reading::default() }), [pair("host", "a.example")]);
    }
}
