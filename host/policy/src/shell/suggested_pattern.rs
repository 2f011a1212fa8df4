//! Chooses the words of a command that make a useful pattern for later ones: `cargo test`, not
//! `cargo` and not `cargo test -q --workspace`.

use super::programs::{self, WordTreatment};
use super::{ShellWord, ShellWordKind, SimpleCommand};

/// Subcommands that run a project script by its name, so the name belongs to the pattern.
const RUN_SCRIPTS: [&str; 3] = ["run", "run-script", "exec"];

/// Programs that do the same with every file: they read it.
const READ: [&str; 14] = [
    "ls", "cat", "echo", "head", "tail", "wc", "grep", "egrep", "fgrep", "rg", "stat", "file",
    "du", "tree",
];

/// Options of `python3 -m unittest` that load no code from elsewhere.
const UNITTEST_OPTIONS: [&str; 12] = [
    "-v",
    "-q",
    "-f",
    "-b",
    "-c",
    "--verbose",
    "--quiet",
    "--failfast",
    "--buffer",
    "--catch",
    "--locals",
    "-vv",
];

/// Returns true if a pattern names Python's own module for tests.
pub(super) fn names_unittest(program: &str, words: &[String]) -> bool {
    program.starts_with("python")
        && matches!(words, [flag, module] if flag == "-m" && module == "unittest")
}

/// Returns true if a word after `python3 -m unittest` is a harmless option or names tests of the
/// folder.
pub(super) fn is_unittest_word(word: &ShellWord) -> bool {
    let is_name = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '.');
    word.kind == ShellWordKind::Literal
        && (UNITTEST_OPTIONS.contains(&word.text.as_str())
            || (!word.text.starts_with('.') && word.text.chars().all(is_name)))
}

/// Returns the program and the words after it that an answer may cover. Returns `None` if only
/// exactly this command can be allowed.
pub(crate) fn suggested_words(command: &SimpleCommand) -> Option<(String, Vec<String>)> {
    let (program, words) = command.words.split_first()?;
    let is_literal = |kind| kind == ShellWordKind::Literal;
    if !is_literal(program.kind) {
        return None;
    }
    let text = |count: usize| {
        let taken = words.get(..count)?;
        let literal = taken.iter().all(|word| is_literal(word.kind) && !word.text.is_empty());
        literal.then(|| taken.iter().map(|word| word.text.clone()).collect::<Vec<_>>())
    };
    let is_operand = |at: usize| words.get(at).is_some_and(|word| !word.text.starts_with('-'));
    let name = program.text.rsplit('/').next().unwrap_or_default();
    let known = programs::find_program(name)?;
    let words = match (known.nature, known.subcommands.is_empty()) {
        (WordTreatment::Interprets, _) if words.first().is_some_and(|word| word.text == "-m") => {
            // The effect of another module's options is unknown.
            let module = text(2)?;
            if names_unittest(name, &module) { module } else { text(words.len())? }
        }
        (WordTreatment::Interprets, _) if is_operand(0) => text(1)?,
        (WordTreatment::Interprets, _) => return None,
        (WordTreatment::Plain | WordTreatment::RunsWorkspace, false) if is_operand(0) => {
            let runs_script =
                words.first().is_some_and(|word| RUN_SCRIPTS.contains(&word.text.as_str()));
            text(if runs_script && is_operand(1) { 2 } else { 1 })?
        }
        (WordTreatment::Plain | WordTreatment::RunsWorkspace, false) => return None,
        (WordTreatment::RunsWorkspace, true) if is_operand(0) => text(1)?,
        (WordTreatment::RunsWorkspace, true) => Vec::new(),
        (WordTreatment::Plain, true) if READ.contains(&name) => Vec::new(),
        // It does something different with other files.
        (WordTreatment::Plain, true) => return None,
    };
    Some((program.text.clone(), words))
}
