//! Decides whether an allow rule covers a simple command. Strict.

use super::nested;
use super::programs::{self, ProgramRow, WordTreatment};
use super::suggested_pattern::{is_unittest_word, names_unittest};
use super::{ShellWord, ShellWordKind, SimpleCommand};
use crate::{CommandPattern, RestOfCommand, WorkspaceTrust};

/// Returns true if a pattern covers a command of a plain line.
pub(super) fn pattern_covers_words(
    pattern: &CommandPattern,
    command: &SimpleCommand,
    workspace: WorkspaceTrust,
) -> bool {
    let Some((program, words)) = command.words.split_first() else { return false };
    if program.kind != ShellWordKind::Literal || program.text != pattern.program {
        return false;
    }
    let Some(named) = words.get(..pattern.words.len()) else { return false };
    let is_named = |(word, wanted): (&ShellWord, &String)| {
        word.kind == ShellWordKind::Literal && word.text == *wanted
    };
    if !named.iter().zip(&pattern.words).all(is_named) {
        return false;
    }
    let rest = &words[named.len()..];
    if rest.is_empty() && pattern.rest == RestOfCommand::Nothing {
        return is_trusted_command(command, workspace);
    }
    match pattern.rest {
        RestOfCommand::Nothing => false,
        RestOfCommand::AnyOptions => is_trusted_command(command, workspace),
        RestOfCommand::SafeOptions => {
            is_rest_harmless(program, pattern, rest) && is_trusted_command(command, workspace)
        }
        RestOfCommand::Reading => {
            // An interpreter that only reads does not run any of its words.
            let interprets = programs::find_program(&program.text)
                .is_some_and(|known| known.nature == WordTreatment::Interprets);
            // Links in a folder may lead anywhere, because the author of the folder made them.
            let follows = programs::wrapper_table().follows_links(command.program_name(), words);
            is_read_only_command(command, words)
                && (interprets || is_trusted_command(command, workspace))
                && (!follows || workspace == WorkspaceTrust::Trusted)
        }
    }
}

/// Returns true if a command only reads, and in a form that `data/programs.toml` lists.
fn is_read_only_command(command: &SimpleCommand, words: &[ShellWord]) -> bool {
    // The command after it needs a rule of its own.
    if nested::is_wrapper(command.program_name()) && command.program_name() != "command" {
        return true;
    }
    let Some(known) = programs::find_program(command.program_name()) else { return false };
    if known.subcommands.is_empty() {
        return known.is_read_only(words);
    }
    let options = words.iter().take_while(|word| word.text.starts_with('-')).count();
    let (options, words) = words.split_at(options);
    let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
    let are_literal =
        options.iter().chain(words.iter().take(2)).all(|word| word.kind != ShellWordKind::Dynamic);
    let subcommand = known.find_subcommand(&texts).filter(|_| are_literal);
    let is_known =
        |word: &ShellWord| word.kind == ShellWordKind::Literal && known.accepts_word(&word.text);
    options.iter().all(is_known)
        && match subcommand {
            Some((row, count)) => {
                words[..count].iter().all(|word| word.kind == ShellWordKind::Literal)
                    && row.is_read_only(&words[count..])
            }
            None => words.is_empty() && known.is_read_only(options),
        }
}

/// Returns true if the folder in which a command works has no untrusted code that the command could
/// run.
pub(super) fn is_trusted_command(command: &SimpleCommand, workspace: WorkspaceTrust) -> bool {
    let Some((program, words)) = command.words.split_first() else { return true };
    let is_elsewhere = command.may_run_elsewhere()
        || program.text == "git" && words.iter().any(|word| word.text == "-C");
    // A program in the workspace is the workspace's code.
    let is_of_workspace = program.text.contains('/') && !is_system_program(&program.text);
    let name = program.text.rsplit('/').next().unwrap_or_default();
    let runs_workspace = match programs::find_program(name) {
        Some(known) => known.nature != WordTreatment::Plain,
        // It is unknown what an unknown program reads.
        None => false,
    };
    match workspace {
        WorkspaceTrust::Trusted => !((runs_workspace || is_of_workspace) && is_elsewhere),
        WorkspaceTrust::Untrusted => !runs_workspace && !is_of_workspace,
    }
}

fn is_system_program(program: &str) -> bool {
    let folders =
        ["/bin/", "/sbin/", "/usr/bin/", "/usr/sbin/", "/usr/local/bin/", "/opt/homebrew/bin/"];
    folders
        .iter()
        .any(|folder| program.strip_prefix(folder).is_some_and(|name| !name.contains('/')))
}

/// Returns true if the words after those of a rule do no more than the program's own job.
fn is_rest_harmless(program: &ShellWord, pattern: &CommandPattern, rest: &[ShellWord]) -> bool {
    let name = program.text.rsplit('/').next().unwrap_or_default();
    if nested::is_wrapper(name) {
        // The line is plain, so the wrapped command is known and needs its own rule.
        return true;
    }
    // `ext::`, with which git runs any program.
    if name == "git" && rest.iter().any(|word| word.text.contains("::")) {
        return false;
    }
    let Some(known) = programs::find_program(name) else {
        // Options of an unknown program may do anything.
        return rest.iter().all(is_operand);
    };
    if known.nature == WordTreatment::Interprets {
        // The rule must name the script. The other words belong to that script.
        let names_script = pattern.words.first().is_some_and(|word| !word.starts_with('-'));
        let takes_script = runs_named_script(name);
        let rest_is_scripts = takes_script && rest.iter().all(is_operand);
        let tests = names_unittest(name, &pattern.words) && rest.iter().all(is_unittest_word);
        return names_script && (rest.is_empty() || rest_is_scripts)
            || is_whole_command(pattern, rest)
            || tests;
    }
    if !known.accepts_operands(rest) {
        return false;
    }
    match known.subcommands.as_slice() {
        [] if HARMLESS.contains(&name) => rest.iter().all(|word| {
            word.kind == ShellWordKind::Glob || known.accepts_word(&word.text) || word.text == "--"
        }),
        [] => takes_only_harmless_words(known, rest, known.nature == WordTreatment::Plain),
        _ => {
            let ends_options = name == "git";
            let words = pattern.words.iter().skip_while(|word| word.starts_with('-'));
            let words: Vec<&str> = words.map(String::as_str).collect();
            match (words.as_slice(), known.find_subcommand(&words)) {
                ([], _) => covers_subcommand(known, rest, ends_options),
                (_, Some((known, _))) => takes_only_harmless_words(known, rest, ends_options),
                // An unknown program may do anything with its words, such as running them.
                (_, None) => rest.is_empty(),
            }
        }
    }
}

/// Returns true if a rule names all words of a command, options included, as the user wrote them.
fn is_whole_command(pattern: &CommandPattern, rest: &[ShellWord]) -> bool {
    rest.is_empty() && !pattern.words.is_empty()
}

/// Covers `git *`: options of the program, a known subcommand, and its options.
fn covers_subcommand(program: &ProgramRow, rest: &[ShellWord], ends_options: bool) -> bool {
    let is_option = |word: &&ShellWord| word.text.starts_with('-');
    let options = rest.iter().take_while(is_option).count();
    if !takes_only_harmless_words(program, &rest[..options], false) {
        return false;
    }
    let Some((subcommand, rest)) = rest[options..].split_first() else { return true };
    let is_literal = subcommand.kind == ShellWordKind::Literal;
    let known = program.find_subcommand(&[&subcommand.text]).filter(|_| is_literal);
    known.is_some_and(|(known, _)| takes_only_harmless_words(known, rest, ends_options))
}

/// Programs without options that run or write anything, so a file with the name of an option is no
/// danger.
const HARMLESS: [&str; 12] =
    ["ls", "cat", "head", "tail", "wc", "echo", "stat", "du", "grep", "egrep", "fgrep", "basename"];

/// Returns true for a program whose first word is a script, and whose other words belong to the
/// script.
fn runs_named_script(name: &str) -> bool {
    const NAMES: [&str; 16] = [
        "python", "python2", "python3", "pypy", "pypy3", "perl", "ruby", "node", "nodejs", "php",
        "lua", "luajit", "Rscript", "bash", "sh", "zsh",
    ];
    NAMES.contains(&name)
}

/// Returns true if a program takes only harmless words. After `--`, some programs pass the words to
/// another program. For those, `--` does not end the options here.
fn takes_only_harmless_words(
    program: &ProgramRow,
    words: &[ShellWord],
    ends_options: bool,
) -> bool {
    let mut are_operands = false;
    words.iter().all(|word| {
        if are_operands {
            return word.kind != ShellWordKind::Dynamic;
        }
        if word.text == "--" && word.kind == ShellWordKind::Literal {
            are_operands = ends_options;
            return are_operands;
        }
        match word.kind {
            ShellWordKind::Literal => program.accepts_word(&word.text),
            // A file may have the name of an option, which is too risky for most programs.
            ShellWordKind::Glob => is_operand(word),
            ShellWordKind::Dynamic => false,
        }
    })
}

/// Returns true if a word cannot be an option, regardless of the existing files.
fn is_operand(word: &ShellWord) -> bool {
    match word.kind {
        ShellWordKind::Literal => !word.text.starts_with(['-', '+']) || word.text == "-",
        ShellWordKind::Glob => !word.text.starts_with(['-', '+', '*', '?', '[']),
        ShellWordKind::Dynamic => false,
    }
}
