//! Known programs: the tables of `data/programs.toml` and `data/commands.toml`.

use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::{ShellWord, ShellWordKind};

static PROGRAMS: LazyLock<ProgramTable> =
    LazyLock::new(|| parse_table(include_str!("../../data/programs.toml")));

static COMMANDS: LazyLock<WrapperTable> =
    LazyLock::new(|| parse_table(include_str!("../../data/commands.toml")));

static BY_NAME: LazyLock<HashMap<&'static str, &'static ProgramRow>> = LazyLock::new(|| {
    let rows = PROGRAMS.program.iter();
    rows.flat_map(|row| row.names.0.iter().map(move |name| (name.as_str(), row))).collect()
});

fn parse_table<T: DeserializeOwned>(text: &str) -> T {
    toml::from_str(text).unwrap_or_else(|error| unreachable!("a test reads the file: {error}"))
}

/// Finds a program by its last name.
pub(super) fn find_program(name: &str) -> Option<&'static ProgramRow> {
    BY_NAME.get(name).copied()
}

#[cfg(test)]
pub(super) fn program_rows() -> impl Iterator<Item = &'static ProgramRow> {
    PROGRAMS.program.iter()
}

#[cfg(test)]
impl ProgramRow {
    pub(super) fn program_names(&self) -> impl Iterator<Item = &str> {
        self.names.iter()
    }

    pub(super) fn long_options(&self) -> impl Iterator<Item = &str> {
        self.long.iter()
    }

    pub(super) fn short_options(&self) -> &str {
        &self.short
    }

    pub(super) fn is_lookup(&self) -> bool {
        self.read == Some(ReadOnlyForm::Lookup)
    }
}

#[cfg(test)]
impl WrapperTable {
    pub(super) fn code_rows(&self) -> impl Iterator<Item = (&str, &str)> {
        self.runs_code.iter().flat_map(|row| {
            row.names.iter().flat_map(|name| row.when.iter().map(move |when| (name, when.as_str())))
        })
    }

    pub(super) fn wrapper_rows(&self) -> impl Iterator<Item = (&str, usize)> {
        self.wrapper.iter().flat_map(|row| row.names.iter().map(|name| (name, row.words)))
    }

    pub(super) fn dangerous_variables(&self) -> impl Iterator<Item = &str> {
        self.variables.names.iter().chain(self.variables.parts.iter())
    }
}

/// Returns the table of commands that run others.
pub(super) fn wrapper_table() -> &'static WrapperTable {
    &COMMANDS
}

/// Words in one text, separated by white space.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(from = "String")]
pub(super) struct WordList(Vec<String>);

impl From<String> for WordList {
    fn from(text: String) -> Self {
        Self(text.split_whitespace().map(str::to_owned).collect())
    }
}

impl WordList {
    pub(super) fn has_word(&self, word: &str) -> bool {
        self.0.iter().any(|known| known == word)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ProgramTable {
    program: Vec<ProgramRow>,
}

/// How a program treats its words.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum WordTreatment {
    /// It does its own job with the files and things that its words name.
    #[default]
    Plain,
    /// The same, but it also runs code from the folder in which it works, such as hooks.
    #[serde(rename = "workspace")]
    RunsWorkspace,
    /// Its words are a program, or name a file with one.
    Interprets,
}

/// Which operands a program takes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum OperandRule {
    #[default]
    Any,
    None,
    One,
    Format,
    Letters,
    Code,
}

/// The form in which a program only reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ReadOnlyForm {
    Yes,
    Listing,
    Print,
    Dashed,
    Lookup,
}

/// The facts about a program, or about one of its subcommands: a row of the file, which explains
/// each field.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ProgramRow {
    names: WordList,
    #[serde(default, rename = "kind")]
    pub(super) nature: WordTreatment,
    #[serde(default)]
    short: String,
    #[serde(default)]
    long: WordList,
    #[serde(default)]
    dashed: WordList,
    #[serde(default)]
    operands: OperandRule,
    #[serde(default)]
    letters: String,
    pub(super) read: Option<ReadOnlyForm>,
    #[serde(default)]
    lists: WordList,
    #[serde(default)]
    unless: WordList,
    #[serde(default)]
    text: usize,
    #[serde(default)]
    text_unless: WordList,
    #[serde(default)]
    globs: bool,
    #[serde(default)]
    alone: bool,
    #[serde(default)]
    prints: bool,
    #[serde(default)]
    below: WordList,
    #[serde(default, rename = "sub")]
    pub(super) subcommands: Vec<ProgramRow>,
}

impl ProgramRow {
    /// Finds a subcommand at the start of the words. Also returns how many words it has.
    pub(super) fn find_subcommand(&self, words: &[&str]) -> Option<(&Self, usize)> {
        let named = |count: usize| {
            let name = words.get(..count)?.join("+");
            self.subcommands.iter().find(|row| row.names.has_word(&name)).map(|row| (row, count))
        };
        named(2).or_else(|| named(1))
    }

    /// Returns true if a word is not an option, or a harmless one.
    pub(super) fn accepts_word(&self, word: &str) -> bool {
        if self.dashed.has_word(word) || self.prints && word.starts_with("--") {
            return word != "--";
        }
        if let Some(long) = word.strip_prefix("--") {
            let (name, value) = match long.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (long, None),
            };
            return self.long.iter().any(|known| match (known.strip_suffix('='), value) {
                (Some(known), _) => known == name,
                (None, None) => known == name,
                (None, Some(_)) => false,
            });
        }
        let Some(letters) = word.strip_prefix('-').filter(|letters| !letters.is_empty()) else {
            return true;
        };
        let valued = |letter: char| self.short.contains(&format!("{letter}:"));
        if self.alone && letters.chars().count() > 1 && !letters.starts_with(valued) {
            return false;
        }
        for letter in letters.chars() {
            let Some(place) = self.short.find(letter).filter(|_| letter != ':') else {
                return false;
            };
            if self.short[place + letter.len_utf8()..].starts_with(':') {
                return true;
            }
        }
        true
    }

    /// Returns true if the program takes these words as operands.
    pub(super) fn accepts_operands(&self, words: &[ShellWord]) -> bool {
        let operands = || self.operands(words).into_iter();
        match self.operands {
            OperandRule::Any => true,
            // A pattern may expand to several words: the value of an option and an operand.
            OperandRule::None | OperandRule::One | OperandRule::Format | OperandRule::Letters
                if words.iter().any(|word| word.kind != ShellWordKind::Literal) =>
            {
                false
            }
            OperandRule::None => operands().next().is_none(),
            OperandRule::One => operands().count() <= 1,
            OperandRule::Format => operands().all(|word| word.text.starts_with('+')),
            OperandRule::Letters => {
                operands().all(|word| word.text.chars().all(|letter| self.letters.contains(letter)))
            }
            OperandRule::Code => words.iter().all(is_plain_code),
        }
    }

    /// Returns the words that are neither options nor their values.
    fn operands<'a>(&self, words: &'a [ShellWord]) -> Vec<&'a ShellWord> {
        self.options_and_operands(words).1
    }

    /// Splits the words into options and operands, without the values of options.
    fn options_and_operands<'a>(
        &self,
        words: &'a [ShellWord],
    ) -> (Vec<&'a ShellWord>, Vec<&'a ShellWord>) {
        let (mut options, mut operands) = (Vec::new(), Vec::new());
        let (mut is_value, mut ends_options) = (false, false);
        for word in words {
            if std::mem::take(&mut is_value) {
                continue;
            }
            match word.text.as_str() {
                "--" if !ends_options => ends_options = true,
                "-" => operands.push(word),
                text if text.starts_with('-') && !ends_options => {
                    is_value = self.needs_value(text);
                    options.push(word);
                }
                _ => operands.push(word),
            }
        }
        (options, operands)
    }

    /// Returns true if the value of an option is the next word.
    fn needs_value(&self, option: &str) -> bool {
        if let Some(long) = option.strip_prefix("--") {
            let is_it = |known: &str| known.strip_suffix('=') == Some(long);
            return self.long.iter().any(is_it) && !self.long.has_word(long);
        }
        if self.dashed.has_word(option) {
            return false;
        }
        let letters = option.strip_prefix('-').unwrap_or_default();
        let mut left = letters.chars();
        while let Some(letter) = left.next() {
            let place = self.short.find(letter).filter(|_| letter != ':');
            if place.is_some_and(|place| self.short[place + letter.len_utf8()..].starts_with(':')) {
                return left.as_str().is_empty();
            }
        }
        false
    }

    /// Returns true if a word is a harmless option with a single dash.
    pub(super) fn is_harmless_short_option(&self, word: &str) -> bool {
        is_number(word) || self.dashed.has_word(word)
    }

    /// Returns true if the program only reads the things that its words name. `words` are those
    /// after the subcommand.
    pub(super) fn is_read_only(&self, words: &[ShellWord]) -> bool {
        let Some(read) = self.read else { return false };
        let are_known = words.iter().all(|word| match (read, word.kind) {
            (_, ShellWordKind::Dynamic) => false,
            // A file may have the name of an option.
            (_, ShellWordKind::Glob) => {
                self.globs && !word.text.starts_with('-')
                    || !word.text.starts_with(['-', '*', '?', '[', '+'])
            }
            (ReadOnlyForm::Dashed, ShellWordKind::Literal) => {
                !word.text.starts_with(['-', '(', ')', '!'])
                    || self.is_harmless_short_option(&word.text)
                    || matches!(word.text.as_str(), "(" | ")" | "!")
            }
            (_, ShellWordKind::Literal) => self.accepts_word(&word.text) || word.text == "--",
        });
        let is_refused =
            |word: &ShellWord| self.unless.iter().any(|piece| word.text.contains(piece));
        let (options, operands) = self.options_and_operands(words);
        let lists = || options.iter().any(|word| self.lists.has_word(&word.text));
        let is_form = match read {
            ReadOnlyForm::Yes | ReadOnlyForm::Dashed => true,
            ReadOnlyForm::Listing => operands.is_empty() || lists(),
            ReadOnlyForm::Lookup => words.first().is_some_and(|word| word.text.starts_with('-')),
            ReadOnlyForm::Print => operands.first().is_some_and(|script| is_printing(&script.text)),
        };
        are_known && is_form && !words.iter().any(is_refused) && self.accepts_operands(words)
    }

    /// Returns the words of a command that may name files, without its text.
    pub(super) fn file_words<'a>(
        &self,
        words: &'a [ShellWord],
    ) -> impl Iterator<Item = &'a ShellWord> {
        let has_text = !words.iter().any(|word| {
            let name = word.text.split('=').next().unwrap_or_default();
            self.text_unless.has_word(name) || is_cluster_with(&word.text, &self.text_unless)
        });
        let count = if has_text { self.text } else { 0 };
        let texts: Vec<&ShellWord> = self.operands(words).into_iter().take(count).collect();
        words.iter().filter(move |word| !texts.iter().any(|text| std::ptr::eq(*text, *word)))
    }

    /// Returns true if no word names a file or folder, as far as the options are known.
    pub(super) fn names_no_file(&self, words: &[ShellWord]) -> bool {
        if self.read == Some(ReadOnlyForm::Dashed) {
            // The folders come before the first test.
            let mut words = words.iter().map(|word| word.text.as_str());
            let first = words.find(|word| !matches!(*word, "-L" | "-H" | "-P"));
            return first.is_none_or(|word| word.starts_with(['-', '(', '!']));
        }
        let are_known = words
            .iter()
            .all(|word| self.accepts_word(&word.text) || self.is_harmless_short_option(&word.text));
        let operands = self.operands(words);
        !are_known
            || !self
                .file_words(words)
                .any(|word| operands.iter().any(|operand| std::ptr::eq(*operand, word)))
    }

    /// Returns true if the program reads the folders below, although no word names them.
    pub(super) fn reads_subfolders(&self, words: &[ShellWord]) -> bool {
        self.below.has_word("always")
            || words.iter().any(|word| {
                self.below.has_word(&word.text) || is_cluster_with(&word.text, &self.below)
            })
    }
}

/// Returns true if a word contains one of these options among its short options.
fn is_cluster_with(word: &str, options: &WordList) -> bool {
    let Some(letters) = word.strip_prefix('-').filter(|rest| !rest.starts_with('-')) else {
        return false;
    };
    let mut short = options.iter().filter_map(|option| option.strip_prefix('-'));
    short.any(|option| option.len() == 1 && letters.contains(option))
}

fn is_number(word: &str) -> bool {
    let digits = word.trim_start_matches(['-', '+']);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns true if a program that runs its words, or files that they name, can do no harm with a
/// word: plain letters, and no path that leaves the folder.
fn is_plain_code(word: &ShellWord) -> bool {
    let text = word.text.as_str();
    let is_plain = |letter: char| {
        letter.is_alphanumeric()
            || "-_.:/@+,%=[]".contains(letter)
            || word.kind == ShellWordKind::Glob && "*?".contains(letter)
    };
    let value = text.split_once('=').map_or(text, |(_, value)| value);
    text.chars().all(is_plain)
        && (text.starts_with('-') || !text.contains('='))
        && [text, value].iter().all(|path| {
            !path.starts_with(['/', '~']) && !path.split('/').any(|part| part.starts_with(".."))
        })
}

/// Returns true if a `sed` script only prints lines: addresses with `p`, `d`, `q` and `=`, and `s`
/// with flags that neither write nor run.
fn is_printing(script: &str) -> bool {
    !script.contains('\n')
        && script.split(';').all(|command| {
            let command = command.trim();
            if let Some(rest) = command.strip_prefix("s/") {
                let parts: Vec<&str> = rest.split('/').collect();
                let are_plain = |text: &&str| !text.ends_with('\\') && !text.contains('[');
                return matches!(parts.as_slice(), [from, to, flags]
                if [from, to].into_iter().all(are_plain)
                    && flags.bytes().all(|flag| b"gpiI0123456789".contains(&flag)));
            }
            let Some(addresses) = command.strip_suffix(['p', 'd', 'q', '=']) else { return false };
            let mut parts = addresses.splitn(2, ',');
            parts.all(|address| {
                let address = address.trim().trim_end_matches('!');
                let is_line =
                    address.bytes().all(|byte| byte.is_ascii_digit() || b"$~+".contains(&byte));
                let inside = address.strip_prefix('/').and_then(|rest| rest.strip_suffix('/'));
                is_line || inside.is_some_and(|inside| !inside.contains(['/', '\\']))
            })
        })
}

/// How commands run other commands.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WrapperTable {
    pub(super) shells: WordList,
    pub(super) changes_meaning: WordList,
    pub(super) evaluates: WordList,
    pub(super) runs_others: WordList,
    pub(super) interpreters: WordList,
    pub(super) stays_outside: WordList,
    pub(super) network: WordList,
    pub(super) folder_options: WordList,
    pub(super) glued_names: WordList,
    response_files: WordList,
    follows_links: BTreeMap<String, WordList>,
    names_in_file: BTreeMap<String, WordList>,
    same: BTreeMap<String, BTreeMap<String, WordList>>,
    variables: ShellVariableTable,
    wrapper: Vec<CommandWrapper>,
    runs_code: Vec<CodeRunningWords>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ShellVariableTable {
    names: WordList,
    parts: WordList,
}

/// A program that runs the command after its own options.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CommandWrapper {
    names: WordList,
    #[serde(default)]
    pub(super) short_value: String,
    #[serde(default)]
    pub(super) short: String,
    #[serde(default)]
    pub(super) long: WordList,
    #[serde(default)]
    pub(super) words: usize,
}

/// Words that make programs run commands.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CodeRunningWords {
    names: WordList,
    when: Vec<String>,
}

impl WrapperTable {
    pub(super) fn find_wrapper(&self, name: &str) -> Option<&CommandWrapper> {
        self.wrapper.iter().find(|row| row.names.has_word(name))
    }

    /// Returns true if words of a program make it run commands.
    pub(super) fn runs_code(&self, name: &str, words: &[ShellWord]) -> bool {
        let is_there = |wanted: &str| {
            let (alone, with_value) =
                (crate::Glob::new(wanted), crate::Glob::new(format!("{wanted}=*")));
            words.iter().any(|word| {
                let text = word.text.as_str();
                let small = text.to_ascii_lowercase();
                alone.matches(text) || with_value.matches(text) || alone.matches(&small)
            })
        };
        let mut rows = self.runs_code.iter().filter(|row| row.names.has_word(name));
        rows.any(|row| row.when.iter().any(|all| all.split_whitespace().all(is_there)))
    }

    /// Returns true if a program reads file or host names from a file that this word names.
    pub(super) fn reads_names_from_file(&self, name: &str, word: &str) -> bool {
        let option = word.split('=').next().unwrap_or_default();
        let rows = self.names_in_file.get(name).into_iter().chain(self.names_in_file.get("all"));
        let mut options = rows.flat_map(WordList::iter);
        word.starts_with('@') && self.response_files.has_word(name)
            || options.any(|known| match known.strip_prefix('-').filter(|rest| rest.len() == 1) {
                Some(letter) => {
                    word.starts_with('-') && !word.starts_with("--") && word.contains(letter)
                }
                None => known == option,
            })
    }

    /// Returns true if a program follows links in the folders that it reads.
    pub(super) fn follows_links(&self, name: &str, words: &[ShellWord]) -> bool {
        let options = self.follows_links.get(name);
        options.is_some_and(|options| {
            words
                .iter()
                .any(|word| options.has_word(&word.text) || is_cluster_with(&word.text, options))
        })
    }

    /// Returns true if a variable makes programs run others, or changes which ones run.
    pub(super) fn is_dangerous_variable(&self, name: &str) -> bool {
        let name = name.trim_end_matches('+').to_ascii_uppercase();
        let ShellVariableTable { names, parts } = &self.variables;
        names.has_word(&name) || parts.iter().any(|part| name.contains(part))
    }

    /// Returns true if a subcommand does the same as one that a rule names.
    pub(super) fn is_same_subcommand(&self, program: &str, wanted: &str, word: &str) -> bool {
        let same = self.same.get(program).and_then(|names| names.get(wanted));
        same.is_some_and(|names| names.has_word(word))
    }
}
