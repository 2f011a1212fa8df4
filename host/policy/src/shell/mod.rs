//! Understands shell command lines as far as rules need it: which programs run, with which words.
//!
//! A line is as dangerous as its most dangerous part. What cannot be understood is a [`Doubt`], and
//! a line with one is never plain.

mod cover;
mod nested;
mod plain;
mod programs;
mod script;
mod words;

use script::Reading;

use crate::{CommandPattern, WorkspaceTrust};

/// The command line of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandLine {
    /// A shell reads it.
    Shell(String),
    /// A program with its words; no shell reads them.
    Words(Vec<String>),
    /// Text for a program that may run it as a command, or may not.
    Unknown(String),
}

/// What a command line does.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Analysis {
    /// Every simple command, those inside of others too.
    pub commands: Vec<SimpleCommand>,
    /// What keeps the line from being plain.
    pub doubts: Vec<Doubt>,
    /// Files that redirections name.
    files: Vec<Word>,
}

/// One program with its words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimpleCommand {
    /// The program, then its words.
    pub words: Vec<Word>,
    /// Where it runs, if a `cd` before it says so.
    pub folder: Option<String>,
}

/// One word of a command.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Word {
    /// What the program gets, as far as it is known.
    pub text: String,
    /// How much is known of it.
    pub kind: WordKind,
    /// How a word is written of which nobody knows what it stands for; empty for others.
    pub written: String,
}

impl Word {
    fn literal(text: String) -> Self {
        Self { text, kind: WordKind::Literal, written: String::new() }
    }

    /// The word as people read it.
    fn shown(&self) -> String {
        match self.kind {
            _ if !self.written.is_empty() => self.written.clone(),
            WordKind::Literal
                if self.text.is_empty() || self.text.contains(char::is_whitespace) =>
            {
                format!("'{}'", self.text.replace('\'', r"'\''"))
            }
            WordKind::Literal | WordKind::Glob | WordKind::Dynamic => self.text.clone(),
        }
    }
}

/// How much is known of a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum WordKind {
    /// The program gets exactly this.
    Literal,
    /// The shell makes names of files of it.
    Glob,
    /// Nobody knows before it runs.
    Dynamic,
}

/// Something in a line that keeps it from being plain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Doubt {
    /// What it is, for people.
    pub what: String,
    /// What follows from it.
    pub kind: DoubtKind,
    /// The pieces of the line that it is about, as they are written; none for the whole line.
    pub pieces: Vec<String>,
}

/// What follows from a doubt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DoubtKind {
    /// Any program may run.
    Hidden,
    /// Words are not known before it runs.
    Words,
    /// It does more than run a program: it writes a file, sets a variable.
    Effect,
    /// Its commands, all of which are found, are put together in a way that is not plain.
    Shape,
}

impl Doubt {
    /// Says what it is, with the pieces that it is about.
    pub fn told(&self) -> String {
        match self.pieces.as_slice() {
            [] => self.what.clone(),
            pieces => format!("{}: {}", self.what, pieces.join(", ")),
        }
    }
}

impl Analysis {
    /// Tells whether all of the line is understood, and runs nothing but its commands.
    pub fn is_plain(&self) -> bool {
        self.doubts.is_empty() && !self.commands.is_empty()
    }

    /// Returns the first reason why any program may run.
    pub(crate) fn hidden(&self) -> Option<&Doubt> {
        self.doubts.iter().find(|doubt| doubt.kind == DoubtKind::Hidden)
    }

    /// Returns the first reason why a word is not known.
    pub(crate) fn unclear_words(&self) -> Option<&Doubt> {
        let is_unclear = |kind| match kind {
            DoubtKind::Hidden | DoubtKind::Words => true,
            DoubtKind::Effect | DoubtKind::Shape => false,
        };
        self.doubts.iter().find(|doubt| is_unclear(doubt.kind))
    }

    /// Returns what words may name: each word, and what stands behind the `=` of options.
    pub(crate) fn values(&self) -> Vec<String> {
        let of_commands = self.commands.iter().flat_map(|command| {
            command.words.iter().flat_map(|word| {
                let value = word.text.split_once('=').map(|(_, value)| value);
                [Some(word.text.as_str()), value]
                    .into_iter()
                    .flatten()
                    .map(|text| command.placed(text))
            })
        });
        of_commands.chain(self.files.iter().map(|file| file.text.clone())).collect()
    }

    /// Tells whether a command of the line works on whole folders.
    pub(crate) fn takes_folders(&self) -> bool {
        const LOOK_AT_NAMES: [&str; 8] = ["cd", "ls", "pwd", "echo", "stat", "test", "[", "mkdir"];
        let mut programs = self.commands.iter().filter_map(|command| command.words.first());
        programs.any(|program| !LOOK_AT_NAMES.contains(&program.text.as_str()))
    }
}

impl SimpleCommand {
    /// The command as one line, for people: words that are not literal as they are written.
    pub fn text(&self) -> String {
        self.words.iter().map(Word::shown).collect::<Vec<_>>().join(" ")
    }

    fn placed(&self, text: &str) -> String {
        match &self.folder {
            Some(folder) if !text.starts_with(['/', '~']) => format!("{folder}/{text}"),
            _ => text.to_owned(),
        }
    }
}

/// Reads a command line.
pub fn analyse(line: &CommandLine) -> Analysis {
    let mut reading = Reading::default();
    let mut doubts = Vec::new();
    match line {
        CommandLine::Words(words) => {
            reading.words(words.iter().map(|text| Word::literal(text.clone())).collect());
        }
        CommandLine::Shell(text) => {
            reading.script(text);
            doubts.extend(strict_doubt(text, &reading));
        }
        CommandLine::Unknown(text) => {
            reading.script(text);
            let what = "nobody knows what reads this text".to_owned();
            doubts.push(Doubt { what, kind: DoubtKind::Hidden, pieces: Vec::new() });
        }
    }
    doubts.extend(reading.doubts);
    Analysis { commands: reading.commands, doubts, files: reading.files }
}

/// Reads the line a second time, by rules that every shell shares. Two readers that were written
/// apart must find the same words: where they do not, nobody knows which of them the shell is.
fn strict_doubt(text: &str, reading: &Reading) -> Option<Doubt> {
    if text.trim().is_empty() {
        return None;
    }
    let commands = match plain::read(text) {
        Ok(commands) => commands,
        Err(plain::NotPlain { what, kind, at }) => {
            let piece = text.get(at).map(|piece| piece.trim().to_owned());
            let pieces = piece.into_iter().filter(|piece| !piece.is_empty()).collect();
            return Some(Doubt { what: what.to_owned(), kind, pieces });
        }
    };
    let agree = commands.len() == reading.outermost.len()
        && commands.iter().zip(&reading.outermost).all(|(one, other)| {
            let mut words = one.iter().zip(other);
            one.len() == other.len() && words.all(|(one, other)| one == other)
        });
    let what = "shells may read this in different ways".to_owned();
    (!agree).then_some(Doubt { what, kind: DoubtKind::Hidden, pieces: Vec::new() })
}

/// Tells whether a pattern of a rule that allows covers a simple command of a plain line.
pub(crate) fn covers(
    pattern: &CommandPattern,
    command: &SimpleCommand,
    workspace: WorkspaceTrust,
) -> bool {
    cover::covers(pattern, command, workspace)
}
