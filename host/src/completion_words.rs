//! Words for Tab completion in a conversation: command names after `/`, their words, and file
//! paths.

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use jaato_runtime::types::hooks::WordChoice;
use jaato_runtime::{WordCompleter, visible};
use rustyline::completion::{Completer, Pair};
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::hint::Hinter;
use rustyline::validate::Validator;
use rustyline::{CompletionType, Context, Helper};
use tokio::runtime::Handle;

use crate::chat::slash::COMMANDS;
use crate::terminal::{self, exact_line};

/// The maximum number of files that are offered at once, because no one reads more.
const FILES_MAX: usize = 100;

/// The columns of a word with its description.
const DISPLAY_COLUMNS: usize = 76;

/// The columns of the prompt.
const PROMPT_COLUMNS: usize = 2;

/// Clears the row that is two rows above the cursor.
const EMPTY_ROW_ABOVE: &str = "\u{1b}7\u{1b}[2A\u{1b}[2K\u{1b}8";

/// Completes words for the line editor, which asks on its own thread.
#[derive(Clone)]
pub struct LineEditorHelper {
    completer: WordCompleter,
    runtime: Handle,
    drawing: Arc<EditorDrawState>,
}

/// How the editor draws its line.
#[derive(Default)]
struct EditorDrawState {
    /// Whether it is about to draw because of a key.
    is_by_key: AtomicBool,
    /// Whether it draws for the last time.
    is_last: AtomicBool,
    /// Whether there is a row above the line.
    has_row: AtomicBool,
    /// How many words of a list it has not drawn yet.
    undrawn: AtomicUsize,
    /// Whether the line above such a list is one row.
    is_one_row: AtomicBool,
}

impl LineEditorHelper {
    /// Creates it, on the runtime of the caller.
    pub fn new(completer: WordCompleter) -> Self {
        Self { completer, runtime: Handle::current(), drawing: Arc::default() }
    }

    fn complete_words(&self, typed: &TextBeforeCursor<'_>) -> Vec<WordChoice> {
        match typed {
            TextBeforeCursor::Name(begun) => {
                let own = COMMANDS.iter().filter(|own| own.name.starts_with(begun));
                let own = own.map(|own| WordChoice::new(own.name, own.help));
                let mut choices: Vec<_> = own.chain(self.completer.complete_names(begun)).collect();
                // jaato's own words come first, even if plugins use the same names.
                choices.sort_by(|a, b| a.text.cmp(&b.text));
                choices.dedup_by(|later, first| later.text == first.text);
                choices
            }
            TextBeforeCursor::Word { command, words, begun } => {
                self.runtime.block_on(self.completer.complete_words(command, words, begun))
            }
        }
    }
}

/// The text before the cursor.
#[derive(Debug, PartialEq, Eq)]
enum TextBeforeCursor<'a> {
    /// The beginning of a command's name.
    Name(&'a str),
    /// The beginning of a word after a name.
    Word { command: &'a str, words: Vec<String>, begun: &'a str },
}

impl TextBeforeCursor<'_> {
    fn partial_word(&self) -> &str {
        match self {
            Self::Name(begun) | Self::Word { begun, .. } => begun,
        }
    }
}

/// Parses the input. Returns `None` if no word can be offered: for a message, or for arguments as
/// JSON.
fn parse_input(line: &str) -> Option<TextBeforeCursor<'_>> {
    let rest = line.strip_prefix('/').filter(|rest| !rest.starts_with('/'))?;
    let Some((command, rest)) = rest.split_once(char::is_whitespace) else {
        return Some(TextBeforeCursor::Name(rest));
    };
    if rest.trim_start().starts_with('{') {
        return None;
    }
    let begun = rest.rsplit(char::is_whitespace).next().unwrap_or_default();
    let whole = &rest[..rest.len() - begun.len()];
    let words = whole.split_whitespace().map(str::to_owned).collect();
    Some(TextBeforeCursor::Word { command, words, begun })
}

/// Finds the path that is typed at the end of a line: a word that contains a `/`, or that follows
/// an `@`.
fn path_at_end(line: &str) -> Option<&str> {
    let word = line.rsplit(char::is_whitespace).next()?;
    if word.len() == line.len() && line.starts_with('/') {
        // One slash begins a command. Of two slashes, the model gets one.
        return word.strip_prefix('/').filter(|path| path.starts_with('/'));
    }
    let word = word.trim_start_matches(['(', '"', '\'']);
    match word.strip_prefix('@') {
        Some(path) => Some(path),
        None => Some(word).filter(|word| word.contains('/')),
    }
}

/// Lists the files whose paths begin this way. A name with a blank is a word only between quotes,
/// which `@` accepts.
fn list_matching_files(begun: &str, is_mention: bool) -> Vec<Pair> {
    let (folder, name) = begun.split_at(begun.rfind('/').map_or(0, |at| at + 1));
    let at_home = folder.strip_prefix("~/").and_then(|rest| {
        let home = std::env::home_dir()?;
        Some(home.join(rest))
    });
    let place = match folder {
        "" => PathBuf::from("."),
        folder => at_home.unwrap_or_else(|| folder.into()),
    };
    // A folder that cannot be read offers nothing.
    let Ok(entries) = std::fs::read_dir(place) else { return Vec::new() };
    let mut found = Vec::new();
    for entry in entries.flatten() {
        let Ok(file) = entry.file_name().into_string() else { continue };
        let is_hidden = file.starts_with('.') && !name.starts_with('.');
        let end = if entry.path().is_dir() { "/" } else { " " };
        let can_be_quoted = is_mention && end == " " && !file.contains('"');
        let is_word = !file.contains(char::is_control)
            && (can_be_quoted || !file.contains(char::is_whitespace));
        if file.starts_with(name) && is_word && !is_hidden {
            found.push((file, end));
        }
    }
    found.sort();
    found.truncate(FILES_MAX);
    let pair = |(file, end): (String, &str)| {
        let quote = if file.contains(char::is_whitespace) { "\"" } else { "" };
        let replacement = format!("{quote}{folder}{file}{quote}{end}");
        Pair { display: format!("{}{}", visible::visible_name(&file), end.trim_end()), replacement }
    };
    found.into_iter().map(pair).collect()
}

impl Completer for LineEditorHelper {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        pos: usize,
        _ctx: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        let columns = console::measure_text_width(line) + PROMPT_COLUMNS;
        let is_one_row = !line.contains('\n') && columns < terminal::size().1;
        self.drawing.is_one_row.store(is_one_row, Relaxed);
        let line = line.get(..pos).unwrap_or_default();
        if let Some(path) = path_at_end(line) {
            let start = pos - path.len();
            let files = list_matching_files(path, line[..start].ends_with('@'));
            self.drawing.undrawn.store(files.len(), Relaxed);
            return Ok((start, files));
        }
        let Some(typed) = parse_input(line) else { return Ok((pos, Vec::new())) };
        let pairs = self.complete_words(&typed).into_iter().map(|choice| Pair {
            display: display_choice(&choice),
            replacement: format!("{} ", choice.text),
        });
        let pairs: Vec<_> = pairs.collect();
        self.drawing.undrawn.store(pairs.len(), Relaxed);
        Ok((pos - typed.partial_word().len(), pairs))
    }
}

fn display_choice(choice: &WordChoice) -> String {
    let text = visible::visible_name(&choice.text);
    if choice.description.is_empty() {
        return text.into();
    }
    let line = format!("{text}  {}", visible::visible_name(&choice.description));
    exact_line(&line, DISPLAY_COLUMNS)
}

impl Hinter for LineEditorHelper {
    type Hint = String;
}

/// Fills the row above a draft. Also observes how the editor draws, to know what is on the screen.
impl Highlighter for LineEditorHelper {
    fn highlight_prompt<'b, 's: 'b, 'p: 'b>(
        &'s self,
        prompt: &'p str,
        is_own: bool,
    ) -> Cow<'b, str> {
        // Unless a key is the reason, the line is redrawn below the text that was shown above it.
        match self.drawing.is_by_key.swap(false, Relaxed) {
            true => terminal::line_is_drawn(),
            false => terminal::is_shown_above(),
        }
        let line = prompt.strip_prefix('\n').filter(|_| is_own);
        self.drawing.has_row.store(line.is_some(), Relaxed);
        match line {
            // After a line was sent, the row stays empty.
            Some(line) if !self.drawing.is_last.load(Relaxed) => {
                Cow::Owned(format!("{}\n{line}", terminal::work_row()))
            }
            _ => Cow::Borrowed(prompt),
        }
    }

    /// Makes the editor redraw the whole line at every key, so that the reason of each drawing is
    /// known.
    fn highlight_char(&self, _line: &str, _pos: usize, kind: CmdKind) -> bool {
        self.drawing.is_by_key.store(true, Relaxed);
        self.drawing.is_last.store(kind == CmdKind::ForcedRefresh, Relaxed);
        true
    }

    /// Clears the row above the line when a list of words begins below. Ends the list with an empty
    /// row, which the editor takes for that row and erases.
    fn highlight_candidate<'c>(&self, word: &'c str, _kind: CompletionType) -> Cow<'c, str> {
        let drawing = &self.drawing;
        if !drawing.has_row.load(Relaxed) {
            return Cow::Borrowed(word);
        }
        let begin = if drawing.is_one_row.swap(false, Relaxed) { EMPTY_ROW_ABOVE } else { "" };
        let end = if drawing.undrawn.fetch_sub(1, Relaxed) == 1 { "\n" } else { "" };
        Cow::Owned(format!("{begin}{word}{end}"))
    }
}

impl Validator for LineEditorHelper {}

impl Helper for LineEditorHelper {}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_parsed_input(line: &str, expected: Option<(&str, &[&str], &str)>) {
        let found = parse_input(line);
        let expected = expected.map(|(command, words, begun)| {
            let words = words.iter().map(|word| (*word).to_owned()).collect();
            TextBeforeCursor::Word { command, words, begun }
        });
        assert_eq!(found, expected, "{line}");
    }

    #[test]
    fn messages_and_json_arguments_have_no_completions() {
        for line in ["", "hello", "//usr", "/note {\"a\": "] {
            check_parsed_input(line, None);
        }
    }

    #[test]
    fn completion_uses_the_last_word_after_a_command_name() {
        assert_eq!(parse_input("/no"), Some(TextBeforeCursor::Name("no")));
        check_parsed_input("/note ", Some(("note", &[], "")));
        check_parsed_input("/note a  b", Some(("note", &["a"], "b")));
        check_parsed_input("/note a b ", Some(("note", &["a", "b"], "")));
    }

    #[test]
    fn word_with_a_slash_or_after_an_at_sign_is_a_path() {
        for (line, found) in [
            ("look at ./no", Some("./no")),
            ("see (@src/ma", Some("src/ma")),
            ("@", Some("")),
            ("//etc/ho", Some("/etc/ho")),
            ("/attach a/b", Some("a/b")),
            ("/etc/ho", None),
            ("/no", None),
            ("hello", None),
        ] {
            assert_eq!(path_at_end(line), found, "{line}");
        }
    }

    #[test]
    fn file_completion_skips_hidden_files_and_quotes_names_with_blanks() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["notes.txt", "no blanks", ".hidden"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        std::fs::create_dir(folder.path().join("novels")).unwrap();
        let begun = format!("{}/", folder.path().display());
        let offered_as = |name: &str, is_mention| -> Vec<String> {
            let files = list_matching_files(&format!("{begun}{name}"), is_mention);
            files.into_iter().map(|pair| pair.replacement).collect()
        };
        let offered = |name| offered_as(name, false);
        assert_eq!(offered_as("no ", true), [format!("\"{begun}no blanks\" ")]);
        assert_eq!(offered("no"), [format!("{begun}notes.txt "), format!("{begun}novels/")]);
        assert_eq!(offered(".h"), [format!("{begun}.hidden ")]);
        assert_eq!(offered("nothing"), Vec::<String>::new());
    }

    #[test]
    fn completion_text_is_sanitized_and_limited_in_width() {
        let choice = WordChoice::new("milk", format!("\u{1b}[2J{}", "x".repeat(100)));
        let shown = display_choice(&choice);
        assert!(!shown.contains('\u{1b}') && shown.chars().count() == DISPLAY_COLUMNS, "{shown}");
    }
}
