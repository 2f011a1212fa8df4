//! Analyses shell command lines as far as rules need it: which programs run, with which words.
//!
//! A line is as dangerous as its most dangerous part. Anything that cannot be understood is a
//! [`Doubt`], and a line with a doubt is never plain.

mod cover;
mod hosts;
mod names;
mod nested;
mod plain;
mod programs;
#[cfg(test)]
mod rows;
mod script;
mod suggested_pattern;
mod words;

use script::ScriptAnalysis;
pub(crate) use suggested_pattern::suggested_words;

pub(crate) use hosts::{
    NamedHost, UNCLEAR_HOST, canonical_host, is_ambiguous_host, operand_host, url_host,
};
pub(crate) use names::{ANYTHING, NameReach, ShellFileName};

use crate::{CommandPattern, WorkspaceTrust};

/// The command line of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandLine {
    /// A line for a shell.
    Shell(String),
    /// A program with its words, without a shell.
    Words(Vec<String>),
    /// Text for a program that may or may not run it as a command.
    Unknown(String),
}

/// The effects of a command line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ShellAnalysis {
    /// Every simple command, including nested ones.
    pub commands: Vec<SimpleCommand>,
    /// The reasons why the line is not plain.
    pub doubts: Vec<Doubt>,
    /// Files that redirections name.
    files: Vec<ShellWord>,
    /// Texts next to the commands.
    texts: Vec<String>,
}

/// One program with its words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimpleCommand {
    /// The program, then its words.
    pub words: Vec<ShellWord>,
    /// The folders in which it may run, if a `cd` before it changes them. An empty one is the
    /// folder of the call.
    pub folders: Vec<String>,
}

/// One word of a command.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ShellWord {
    /// The text for the program, as far as it is known.
    pub text: String,
    /// How much is known about it.
    pub kind: ShellWordKind,
    /// The source of a word that is not literal. Empty for others.
    pub written: String,
}

impl ShellWord {
    fn literal(text: String) -> Self {
        Self { text, kind: ShellWordKind::Literal, written: String::new() }
    }

    /// Returns the word as users read it.
    fn display_text(&self) -> String {
        let is_plain = |letter: char| letter.is_alphanumeric() || "_-./:@%+,=^~".contains(letter);
        match self.kind {
            _ if !self.written.is_empty() => self.written.clone(),
            ShellWordKind::Literal if self.text.is_empty() || !self.text.chars().all(is_plain) => {
                format!("'{}'", self.text.replace('\'', r"'\''"))
            }
            ShellWordKind::Literal | ShellWordKind::Glob | ShellWordKind::Dynamic => {
                self.text.clone()
            }
        }
    }
}

/// How much is known about a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ShellWordKind {
    /// The program gets exactly this text.
    Literal,
    /// The shell expands it to file names.
    Glob,
    /// It is known only at run time.
    Dynamic,
}

/// A reason why a line is not plain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Doubt {
    /// A description for users.
    pub what: String,
    /// The cause, for a warning.
    pub cause: DoubtCause,
    /// Its consequence.
    pub kind: DoubtKind,
    /// The parts of the line that it concerns, as they are written. Empty for the whole line.
    pub pieces: Vec<String>,
}

/// The consequence of a doubt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DoubtKind {
    /// Any program may run.
    Hidden,
    /// Words are not known before it runs.
    Words,
    /// It does more than run a program, such as writing a file or setting a variable.
    Effect,
    /// Its commands are all known, but combined in a way that is not plain.
    Shape,
}

/// The cause of a doubt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DoubtCause {
    /// An invisible character.
    InvisibleLetter,
    /// A character that may look like another one.
    UnusualLetter,
    /// A shell that runs a file or its input.
    Shell,
    /// A program that runs code from its arguments.
    Code,
    /// A variable that makes programs run others.
    Variable,
    /// A program that runs another one.
    OtherProgram,
    /// Deleted files.
    Deletes,
    /// Input for a program.
    Input,
    /// A value that is known only at run time.
    Value,
    /// A background job.
    Background,
    /// Written files.
    Writes,
    /// A limit of the reader, so that the rest is unknown.
    Bound,
    /// Anything else.
    Other,
}

/// The text of a doubt, and its cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct DoubtReason {
    what: &'static str,
    cause: DoubtCause,
}

impl DoubtReason {
    const fn new(cause: DoubtCause, what: &'static str) -> Self {
        Self { what, cause }
    }
}

impl From<&'static str> for DoubtReason {
    fn from(what: &'static str) -> Self {
        Self::new(DoubtCause::Other, what)
    }
}

/// The maximum number of parts of a line that one doubt names, because a prompt must be readable.
const PIECES_MAX: usize = 8;

/// Replaces the parts beyond that.
const MORE_PIECES: &str = "…";

impl Doubt {
    /// Creates a doubt about the whole line, until it names parts.
    fn for_line(reason: impl Into<DoubtReason>, kind: DoubtKind) -> Self {
        let DoubtReason { what, cause } = reason.into();
        Self { what: what.to_owned(), cause, kind, pieces: Vec::new() }
    }

    /// Adds a part that it concerns.
    fn add_piece(&mut self, piece: &str) {
        if self.pieces.iter().any(|it| it == piece) {
            return;
        }
        match self.pieces.len() {
            ..PIECES_MAX => self.pieces.push(piece.to_owned()),
            PIECES_MAX => self.pieces.push(MORE_PIECES.to_owned()),
            _ => {}
        }
    }

    /// Describes the doubt, with the parts that it concerns.
    pub fn description(&self) -> String {
        match self.pieces.as_slice() {
            [] => self.what.clone(),
            pieces => format!("{}: {}", self.what, pieces.join(", ")),
        }
    }
}

impl ShellAnalysis {
    /// Returns true if the whole line is understood, and runs nothing except its commands.
    pub fn is_plain(&self) -> bool {
        self.doubts.is_empty() && !self.commands.is_empty()
    }

    /// Returns the risks of a line apart from its commands, as text for the user. The shape of the
    /// line is not a risk, because all commands are listed.
    pub fn risks(&self) -> Vec<String> {
        let risks = self.doubts.iter().filter(|doubt| doubt.kind != DoubtKind::Shape);
        risks.map(Doubt::description).collect()
    }

    /// Returns true if a doubt has this cause.
    pub fn has_cause(&self, cause: DoubtCause) -> bool {
        self.doubts.iter().any(|doubt| doubt.cause == cause)
    }

    /// Returns the first reason why any program may run.
    pub(crate) fn hidden_program_doubt(&self) -> Option<&Doubt> {
        self.doubts.iter().find(|doubt| doubt.kind == DoubtKind::Hidden)
    }

    /// Returns the first reason why a word is unknown.
    pub(crate) fn unclear_words(&self) -> Option<&Doubt> {
        let is_unclear = |kind| match kind {
            DoubtKind::Hidden | DoubtKind::Words => true,
            DoubtKind::Effect | DoubtKind::Shape => false,
        };
        self.doubts.iter().find(|doubt| is_unclear(doubt.kind))
    }
}

impl SimpleCommand {
    /// Returns the command as one line, for users. Words that are not literal are shown as written.
    pub fn command_text(&self) -> String {
        self.words.iter().map(ShellWord::display_text).collect::<Vec<_>>().join(" ")
    }

    /// Returns true if it may run in another folder than the call.
    pub(crate) fn may_run_elsewhere(&self) -> bool {
        self.folders.iter().any(|folder| !folder.is_empty())
    }

    /// Returns the program's last name.
    pub(crate) fn program_name(&self) -> &str {
        let program = self.words.first().map_or("", |word| word.text.as_str());
        program.rsplit('/').next().unwrap_or_default()
    }
}

/// Prefixes a relative name with each folder.
fn prefix_folders(folders: &[String], text: &str) -> Vec<String> {
    if folders.is_empty() || text.starts_with(['/', '~']) {
        return vec![text.to_owned()];
    }
    let place = |folder: &String| match folder.as_str() {
        "" => text.to_owned(),
        folder => format!("{folder}/{text}"),
    };
    folders.iter().map(place).collect()
}

/// The reason for text that may not be a command line at all.
const UNKNOWN_READER: &str = "cannot determine which program reads this text";

/// Analyses a command line.
pub fn analyse_line(line: &CommandLine) -> ShellAnalysis {
    let mut reading = ScriptAnalysis::default();
    let mut doubts = Vec::new();
    match line {
        CommandLine::Words(words) => {
            reading.add_words(words.iter().map(|text| ShellWord::literal(text.clone())).collect());
        }
        CommandLine::Shell(text) => {
            reading.read_script(text);
            doubts.extend(strict_parse_doubts(text, &reading));
        }
        CommandLine::Unknown(text) => {
            reading.read_script(text);
            doubts.push(Doubt::for_line(UNKNOWN_READER, DoubtKind::Hidden));
        }
    }
    doubts.extend(reading.doubts);
    let ScriptAnalysis { commands, files, texts, .. } = reading;
    ShellAnalysis { commands, doubts, files, texts }
}

/// Analyses the line a second time, by rules that every shell shares. Two independent readers must
/// find the same words. If they do not, it is unknown which one the shell agrees with.
fn strict_parse_doubts(text: &str, reading: &ScriptAnalysis) -> Vec<Doubt> {
    if text.trim().is_empty() {
        return Vec::new();
    }
    let commands = match plain::parse_line(text) {
        Ok(commands) => commands,
        Err(not_plain) => return parse_error_doubts(text, not_plain, reading),
    };
    let is_same =
        |(one, other): (&ShellWord, &ShellWord)| one.text == other.text && one.kind == other.kind;
    let agree = commands.len() == reading.outermost.len()
        && commands
            .iter()
            .zip(&reading.outermost)
            .all(|(one, other)| one.len() == other.len() && one.iter().zip(other).all(is_same));
    if agree {
        return Vec::new();
    }
    vec![Doubt::for_line("shells may interpret this differently", DoubtKind::Hidden)]
}

/// Creates doubts of the point where the strict reader stopped, and of later points where it would
/// have stopped.
fn parse_error_doubts(
    text: &str,
    not_plain: plain::PlainParseError,
    reading: &ScriptAnalysis,
) -> Vec<Doubt> {
    let plain::PlainParseError { reason, kind, at } = not_plain;
    let piece = text.get(at).map(|piece| piece.trim().to_owned());
    let pieces = piece.into_iter().filter(|piece| !piece.is_empty()).collect();
    // If the other reader does not know it either, no list of commands shows it.
    let is_told = reading.doubts.iter().any(|doubt| doubt.kind != DoubtKind::Effect);
    let kind = if kind == DoubtKind::Shape && !is_told { DoubtKind::Effect } else { kind };
    let mut doubts = vec![Doubt { pieces, ..Doubt::for_line(reason, kind) }];
    let mut odd = Doubt::for_line(plain::GRAMMAR, DoubtKind::Effect);
    let mut unusual = Doubt::for_line(plain::UNUSUAL, DoubtKind::Effect);
    for command in &reading.commands {
        for (at, word) in command.words.iter().enumerate() {
            let is_program = at == 0;
            if is_program && plain::is_unsupported_keyword(&word.text) {
                odd.add_piece(&word.display_text());
            }
            if is_program && !word.text.is_ascii() || has_mixed_scripts(&word.text) {
                unusual.add_piece(&word.display_text());
            }
        }
    }
    let more = [odd, unusual].into_iter();
    doubts.extend(more.filter(|doubt| !doubt.pieces.is_empty() && doubt.what != reason.what));
    if reason != plain::UNSEEN && text.chars().any(plain::is_invisible_letter) {
        doubts.push(Doubt::for_line(plain::UNSEEN, DoubtKind::Effect));
    }
    doubts
}

/// Returns true if a word mixes Latin letters with letters that look similar.
fn has_mixed_scripts(word: &str) -> bool {
    let looks_alike = |letter: char| matches!(letter, '\u{370}'..='\u{52f}');
    word.contains(looks_alike) && word.contains(|letter: char| letter.is_ascii_alphabetic())
}

/// Returns true if a subcommand does the same as one that a rule names.
pub(crate) fn is_same_subcommand(program: &str, wanted: &str, word: &str) -> bool {
    programs::wrapper_table().is_same_subcommand(program, wanted, word)
}

/// Returns true if an allow rule's pattern covers a simple command of a plain line.
pub(crate) fn covers_command(
    pattern: &CommandPattern,
    command: &SimpleCommand,
    workspace: WorkspaceTrust,
) -> bool {
    cover::pattern_covers_words(pattern, command, workspace)
}

/// Returns true if the workspace's trust is enough for the code that a command runs.
pub(crate) fn is_trusted_command(command: &SimpleCommand, workspace: WorkspaceTrust) -> bool {
    cover::is_trusted_command(command, workspace)
}

#[cfg(test)]
mod tests {
    use super::plain::{UNSEEN, UNUSUAL};
    use super::*;

    #[track_caller]
    fn check_analysis(line: &str, commands: &[&str], risks: &[&str]) {
        let analysis = analyse_line(&CommandLine::Shell(line.to_owned()));
        let read: Vec<String> = analysis.commands.iter().map(SimpleCommand::command_text).collect();
        assert_eq!(read, commands, "{line}");
        assert_eq!(analysis.risks(), risks, "{line}");
    }

    #[test]
    fn commands_and_risks_are_shown_as_written_in_the_line() {
        check_analysis("git commit -m 'two words'", &["git commit -m 'two words'"], &[]);
        check_analysis("printf \"a;b\" ''", &["printf 'a;b' ''"], &[]);
        check_analysis("echo '$HOME' it\\'s", &["echo '$HOME' 'it'\\''s'"], &[]);
        check_analysis("ls \"a b\"*", &["ls \"a b\"*"], &[]);
        let unknown = "known only at run time: ";
        check_analysis(
            "for i in 1 2; do echo a$i \"$HOME\"; done",
            &["echo a$i \"$HOME\""],
            &[&format!("{unknown}a$i, \"$HOME\"")],
        );
        check_analysis(
            "rm \"$(cat list)\"",
            &["cat list", "rm \"$(cat list)\""],
            &[&format!("{unknown}\"$(cat list)\"")],
        );
        check_analysis(
            "echo > $HOME/.bashrc",
            &["echo"],
            &[
                &format!("{unknown}$HOME/.bashrc"),
                "it writes the file `$HOME/.bashrc`",
                "the name of a file is known only at run time",
            ],
        );
    }

    #[test]
    fn compound_commands_are_no_risk_if_fully_parsed() {
        check_analysis("if true; then ls; else pwd; fi", &["true", "ls", "pwd"], &[]);
        check_analysis("(cd src && ls)", &["cd src", "ls"], &[]);
        check_analysis("while true; do ls; done", &["true", "ls"], &[]);
    }

    #[test]
    fn risk_found_by_only_one_parser_is_reported() {
        // Zsh runs the content of these brackets.
        let inside = "this runs commands inside other commands: (";
        check_analysis("ls *(e:'rm x':)", &["ls *(e:'rm x':)"], &[inside]);
        let grammar = "this is part of the shell's grammar: repeat";
        check_analysis("repeat 3 rm x", &["repeat 3 rm x"], &[grammar]);
        check_analysis("(true); repeat 3 rm x", &["true", "repeat 3 rm x"], &[grammar]);
        let unknown = "known only at run time: $HOME";
        check_analysis("ls *(e:'rm x':) $HOME", &["ls *(e:'rm x':) $HOME"], &[inside, unknown]);
    }

    #[test]
    fn lookalike_and_invisible_letters_are_reported_everywhere() {
        let unusual = UNUSUAL.what;
        check_analysis(
            "(true); rm\u{430} x",
            &["true", "rm\u{430} x"],
            &[&format!("{unusual}: rm\u{430}")],
        );
        check_analysis("(true); echo 'a\u{200b}b'", &["true", "echo 'a\u{200b}b'"], &[UNSEEN.what]);
        let writes = "it writes the file `out`";
        let program = format!("{unusual}: rm\u{430}");
        check_analysis(
            "ls 9> out; rm\u{430} x",
            &["ls", "rm\u{430} x"],
            &["this redirects an unusual file descriptor: 9", &program, writes],
        );
        let url = "curl g\u{43e}ogle.com";
        check_analysis(
            &format!("(true); {url}"),
            &["true", url],
            &[&format!("{unusual}: g\u{43e}ogle.com")],
        );
        check_analysis("(true); cat M\u{fc}ller.txt", &["true", "cat M\u{fc}ller.txt"], &[]);
    }

    #[test]
    fn omitted_unknown_words_are_marked_with_an_ellipsis() {
        let words = |count: usize| (0..count).map(|at| format!(" $a{at}")).collect::<String>();
        let told =
            |count| analyse_line(&CommandLine::Shell(format!("echo{}", words(count)))).risks();
        assert!(told(PIECES_MAX)[0].ends_with("$a6, $a7"), "{:?}", told(PIECES_MAX));
        for more in [1, 20] {
            let told = told(PIECES_MAX + more);
            assert!(told[0].ends_with("$a7, …"), "{told:?}");
        }
    }
}
