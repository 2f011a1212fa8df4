//! Understands shell command lines as far as rules need it: which programs run, with which words.
//!
//! A line is as dangerous as its most dangerous part. What cannot be understood is a [`Doubt`], and
//! a line with one is never plain.

use std::ops::Range;

use crate::{Call, CommandLine, CommandPattern, Pattern, WorkspaceTrust};

/// What a command line does.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Analysis {
    /// Every simple command, those inside of others too.
    pub commands: Vec<SimpleCommand>,
    /// What keeps the line from being plain, in the order of the line.
    pub doubts: Vec<Doubt>,
}

/// One program with its words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimpleCommand {
    /// The program, then its words.
    pub words: Vec<Word>,
}

/// One word of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// What the program gets, or for a word that is not literal how it is written.
    pub text: String,
    /// How much is known of it.
    pub kind: WordKind,
}

/// How much is known of a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
    /// The bytes of the line that it is about; empty for the whole line.
    pub at: Range<usize>,
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
        self.doubts.iter().find(|doubt| doubt.kind != DoubtKind::Effect)
    }

    /// Returns what words may name: each word, and what stands behind the `=` of options.
    pub(crate) fn values(&self) -> Vec<String> {
        Vec::new()
    }

    /// Tells whether a command of the line works on whole folders.
    pub(crate) fn takes_folders(&self) -> bool {
        true
    }
}

impl SimpleCommand {
    /// The command as one line.
    pub fn text(&self) -> String {
        let words: Vec<&str> = self.words.iter().map(|word| word.text.as_str()).collect();
        words.join(" ")
    }
}

/// Reads a command line.
pub fn analyse(line: &CommandLine) -> Analysis {
    let _ = line;
    let what = "the command line is not understood".to_owned();
    let doubt = Doubt { what, kind: DoubtKind::Hidden, at: 0..0 };
    Analysis { commands: Vec::new(), doubts: vec![doubt] }
}

/// Tells whether a pattern of a rule that allows covers a simple command.
pub(crate) fn covers(
    pattern: &CommandPattern,
    command: &SimpleCommand,
    workspace: WorkspaceTrust,
) -> bool {
    let _ = (pattern, command, workspace);
    false
}

/// Tells whether a call runs one simple command that begins with these words, and nothing else.
pub(crate) fn runs_only(call: &Call<'_>, program: &str, words: &[String]) -> bool {
    let Some(line) = call.command_line() else { return false };
    let analysis = analyse(&line);
    let pattern = CommandPattern {
        program: program.to_owned(),
        words: words.to_vec(),
        rest: crate::RestOfCommand::SafeOptions,
    };
    match analysis.commands.as_slice() {
        [command] if analysis.is_plain() => covers(&pattern, command, call.workspace),
        _ => false,
    }
}

/// Returns the patterns that a person may be offered for the command line of a call, from narrow to
/// wide.
pub(crate) fn proposals(call: &Call<'_>) -> Vec<Pattern> {
    let Some(line) = call.command_line() else { return Vec::new() };
    let analysis = analyse(&line);
    let [command] = analysis.commands.as_slice() else { return Vec::new() };
    let words: Vec<String> = command.words.iter().map(|word| word.text.clone()).collect();
    let Some((program, words)) = words.split_first() else { return Vec::new() };
    let operands = words.iter().take_while(|word| !word.starts_with('-')).count();
    let lengths = [operands.min(2), operands.min(1), 0];
    let mut proposals: Vec<Pattern> = lengths
        .into_iter()
        .map(|length| Pattern::Command {
            program: program.clone(),
            words: words[..length].to_vec(),
        })
        .collect();
    proposals.dedup();
    proposals
}
