//! Commands within the words of programs that run them: `env ls`, `sh -c 'ls'`, `find -exec`.

use super::plain::WRITES;
use super::programs::{self, CommandWrapper};
use super::{DoubtCause, DoubtReason, ShellWord, ShellWordKind};

/// The commands that a command runs in addition to itself.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct NestedCommands {
    /// Commands, each a program with its words.
    pub(super) commands: Vec<Vec<ShellWord>>,
    /// Scripts for a shell.
    pub(super) scripts: Vec<String>,
    /// Why it may run anything.
    pub(super) hidden: Option<DoubtReason>,
    /// An effect other than running a program.
    pub(super) effect: Option<DoubtReason>,
}

impl NestedCommands {
    fn with_doubt(why: impl Into<DoubtReason>) -> Self {
        Self { hidden: Some(why.into()), ..Self::default() }
    }

    fn with_effect(what: impl Into<DoubtReason>) -> Self {
        Self { effect: Some(what.into()), ..Self::default() }
    }
}

/// The reason for programs that run others.
const RUNS_ANOTHER: DoubtReason =
    DoubtReason::new(DoubtCause::OtherProgram, "this runs another program");

/// The reason for a wrapper before an unknown program.
const UNKNOWN_PROGRAM: &str = "the program that this runs is known only at run time";

/// The reason for variables such as `LD_PRELOAD`.
pub(super) const VARIABLE: DoubtReason =
    DoubtReason::new(DoubtCause::Variable, "this variable makes programs run other programs");

/// Returns true if a program runs the command after its own options, and nothing else.
pub(super) fn is_wrapper(name: &str) -> bool {
    programs::wrapper_table().find_wrapper(name).is_some()
}

/// Finds the commands that a simple command runs in addition to itself.
pub(super) fn nested_commands(words: &[ShellWord]) -> NestedCommands {
    let Some((program, rest)) = words.split_first() else { return NestedCommands::default() };
    // `time -f %e rm x`: an option here belongs to a program whose name was parsed as a keyword.
    if program.kind != ShellWordKind::Literal || program.text.starts_with('-') {
        return NestedCommands::with_doubt("the program is known only at run time");
    }
    let name = program.text.rsplit('/').next().unwrap_or_default();
    // On some systems, program names are not case-sensitive.
    let name = name.to_ascii_lowercase();
    let name = name.as_str();
    let known = programs::wrapper_table();
    if name == "command" && rest.first().is_some_and(|word| is_lookup_option(&word.text)) {
        return NestedCommands::default();
    }
    if let Some(wrapper) = known.find_wrapper(name) {
        return wrapper.commands_in_words(name, rest);
    }
    if known.evaluates.has_word(name) && rest.iter().any(|word| is_evaluated_word(name, word)) {
        return NestedCommands::with_doubt("the shell evaluates a word of this when it runs");
    }
    match name {
        _ if known.shells.has_word(name) => nested_in_shell(rest),
        "eval" => nested_in_eval(rest),
        "find" => nested_in_find(rest),
        "cd" => nested_in_cd(rest),
        _ if known.changes_meaning.has_word(name) => {
            NestedCommands::with_doubt("the words after this may have another meaning")
        }
        _ if known.runs_others.has_word(name) => {
            let what = "this runs another program in a way that jaato does not understand";
            NestedCommands::with_doubt(DoubtReason::new(DoubtCause::OtherProgram, what))
        }
        _ => nested_in_options(name, rest),
    }
}

impl CommandWrapper {
    fn commands_in_words(&self, name: &str, words: &[ShellWord]) -> NestedCommands {
        let (mut words, mut replaced) = (words, None);
        loop {
            let Some((first, rest)) = words.split_first() else {
                // Without a command they print something, or run their input.
                return NestedCommands::with_effect(RUNS_ANOTHER);
            };
            if first.kind != ShellWordKind::Literal {
                return NestedCommands::with_doubt(UNKNOWN_PROGRAM);
            }
            let text = first.text.as_str();
            if text == "--" {
                words = rest;
                break;
            }
            let Some(takes) = self.parse_option(text) else {
                if text.starts_with('-') && text.len() > 1 {
                    let what = "an unknown option runs another program";
                    return NestedCommands::with_doubt(DoubtReason::new(
                        DoubtCause::OtherProgram,
                        what,
                    ));
                }
                break;
            };
            let (values, others) = rest.split_at(usize::from(takes).min(rest.len()));
            if !are_literal(values) {
                // It may expand to several words, and the second one would be the program.
                return NestedCommands::with_doubt(UNKNOWN_PROGRAM);
            }
            if name == "xargs" {
                replaced = xargs_placeholder(text, values).or(replaced);
            }
            words = others;
        }
        let takes_variables = matches!(name, "env" | "sudo" | "doas");
        if takes_variables && words.first().is_some_and(is_variable) {
            return self.nested_in_env(name, words);
        }
        let (between, command) = words.split_at(self.words.min(words.len()));
        if command.is_empty() {
            return NestedCommands::with_effect(RUNS_ANOTHER);
        }
        if !are_literal(between) {
            return NestedCommands::with_doubt(UNKNOWN_PROGRAM);
        }
        let mut inside = self.wrapped_command(name, command);
        if let Some(replaced) = replaced {
            let words = inside.commands.iter_mut().flatten();
            words
                .filter(|word| word.text.contains(&replaced))
                .for_each(|word| word.kind = ShellWordKind::Dynamic);
        }
        inside
    }

    fn wrapped_command(&self, name: &str, command: &[ShellWord]) -> NestedCommands {
        let mut command = command.to_vec();
        if name == "watch" {
            if !are_literal(&command) {
                // A shell reads the file names that result from it.
                return NestedCommands::with_doubt(
                    "the command that `watch` runs is known only at run time",
                );
            }
            let words: Vec<&str> = command.iter().map(|word| word.text.as_str()).collect();
            return NestedCommands { scripts: vec![words.join(" ")], ..NestedCommands::default() };
        }
        if name == "xargs" {
            let text = "(what xargs reads)".to_owned();
            command.push(ShellWord { kind: ShellWordKind::Dynamic, ..ShellWord::literal(text) });
        }
        NestedCommands { commands: vec![command], ..NestedCommands::default() }
    }

    /// Handles `env NAME=value …`. The meaning of the variables for the program is unknown.
    fn nested_in_env(&self, name: &str, words: &[ShellWord]) -> NestedCommands {
        let skipped = words.iter().take_while(|word| is_variable(word)).count();
        let dangerous = words[..skipped].iter().any(|word| {
            let name = word.text.split('=').next().unwrap_or_default();
            programs::wrapper_table().is_dangerous_variable(name)
        });
        let mut inside = match words.get(skipped..) {
            Some(command) if !command.is_empty() => self.wrapped_command(name, command),
            _ => NestedCommands::default(),
        };
        if dangerous {
            inside.hidden = Some(VARIABLE);
        } else {
            inside.effect = Some("this sets a variable".into());
        }
        inside
    }

    /// Parses an option. Returns whether it takes the next word, or `None` if it is not a known
    /// option.
    fn parse_option(&self, text: &str) -> Option<bool> {
        if let Some(long) = text.strip_prefix("--") {
            // A value in the next word would shift the command, so only `=` is accepted.
            let written = match long.split_once('=') {
                Some((name, _)) => format!("{name}="),
                None => long.to_owned(),
            };
            return self.long.has_word(&written).then_some(false);
        }
        let letters = text.strip_prefix('-').filter(|letters| !letters.is_empty())?;
        let mut letters = letters.chars();
        while let Some(letter) = letters.next() {
            if self.short_value.contains(letter) {
                return Some(letters.as_str().is_empty());
            }
            if !self.short.contains(letter) {
                return None;
            }
        }
        Some(false)
    }
}

/// Returns the text that `xargs` replaces with its input, if this option sets one.
fn xargs_placeholder(option: &str, values: &[ShellWord]) -> Option<String> {
    let text = match option.strip_prefix("--") {
        Some(long) => long.strip_prefix("replace")?.trim_start_matches('='),
        None => option.split_once('I')?.1,
    };
    let value = values.first().map_or(text, |value| value.text.as_str());
    Some(if value.is_empty() { "{}".to_owned() } else { value.to_owned() })
}

fn are_literal(words: &[ShellWord]) -> bool {
    words.iter().all(|word| word.kind == ShellWordKind::Literal)
}

/// Returns true if a word before a command sets a variable.
fn is_variable(word: &ShellWord) -> bool {
    word.text.contains('=') && !word.text.starts_with('-')
}

fn nested_in_shell(words: &[ShellWord]) -> NestedCommands {
    if matches!(words, [word] if word.text == "--version") {
        return NestedCommands::default();
    }
    let what = "starts a shell that runs a file or its input";
    let reads = NestedCommands::with_doubt(DoubtReason::new(DoubtCause::Shell, what));
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if word.kind != ShellWordKind::Literal {
            return reads;
        }
        let Some(letters) = word.text.strip_prefix(['-', '+']) else { return reads };
        if letters.starts_with('-') || letters.contains('o') || letters.contains('O') {
            return reads;
        }
        if letters.contains('c') {
            return match words.next() {
                Some(script)
                    if script.kind == ShellWordKind::Literal
                        && !script.text.starts_with(['-', '+']) =>
                {
                    NestedCommands {
                        scripts: vec![script.text.clone()],
                        ..NestedCommands::default()
                    }
                }
                _ => {
                    NestedCommands::with_doubt("the script of this shell is known only at run time")
                }
            };
        }
    }
    reads
}

fn nested_in_eval(words: &[ShellWord]) -> NestedCommands {
    if !are_literal(words) {
        return NestedCommands::with_doubt("the text that `eval` runs is known only at run time");
    }
    let mut words: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
    if words.first() == Some(&"--") {
        words.remove(0);
    }
    NestedCommands { scripts: vec![words.join(" ")], ..NestedCommands::default() }
}

fn nested_in_find(words: &[ShellWord]) -> NestedCommands {
    let looks = programs::find_program("find");
    let mut inside = NestedCommands::default();
    let mut at = 0;
    while let Some(word) = words.get(at) {
        at += 1;
        if word.kind == ShellWordKind::Dynamic {
            return NestedCommands::with_doubt("a word of `find` is known only at run time");
        }
        match word.text.as_str() {
            "-exec" | "-execdir" | "-ok" | "-okdir" => {
                let command = exec_command_words(&words[at..]);
                at += command.len() + 1;
                inside.commands.push(command.iter().cloned().map(mark_found_file).collect());
            }
            "-delete" => {
                inside.effect = Some(DoubtReason::new(DoubtCause::Deletes, "this deletes files"));
            }
            "-fprint" | "-fprint0" | "-fprintf" | "-fls" => {
                inside.effect = Some(WRITES);
            }
            text if text.starts_with('-')
                && !looks.is_some_and(|row| row.is_harmless_short_option(text)) =>
            {
                inside.hidden = Some("an unknown test of `find`".into());
            }
            _ => {}
        }
    }
    inside
}

/// Returns the words of `-exec`. They end at `;`, or at `+` after `{}`. Anywhere else `+` is a
/// word.
fn exec_command_words(words: &[ShellWord]) -> &[ShellWord] {
    let mut last = "";
    let end = words.iter().position(|word| {
        let is_end = word.text == ";" || word.text == "+" && last == "{}";
        last = word.text.as_str();
        is_end
    });
    &words[..end.unwrap_or(words.len())]
}

/// Marks the place of a found file, whose name is unknown. It begins like the folder in which it is
/// found, so it is not an option.
fn mark_found_file(word: ShellWord) -> ShellWord {
    let kind = match word.text.as_str() {
        "{}" => ShellWordKind::Glob,
        text if text.contains("{}") => ShellWordKind::Dynamic,
        _ => word.kind,
    };
    ShellWord { kind, ..word }
}

fn nested_in_cd(words: &[ShellWord]) -> NestedCommands {
    match words {
        [] => NestedCommands::default(),
        [option] if matches!(option.text.as_str(), "-L" | "-P" | "--") => NestedCommands::default(),
        [target]
            if target.kind == ShellWordKind::Literal && !target.text.starts_with(['-', '+']) =>
        {
            NestedCommands::default()
        }
        _ => {
            NestedCommands::with_doubt("the folder of the next commands is known only at run time")
        }
    }
}

/// Finds options with which otherwise allowed programs run commands, for deny rules. Allow rules
/// use lists of harmless options instead.
fn nested_in_options(name: &str, words: &[ShellWord]) -> NestedCommands {
    let known = programs::wrapper_table();
    let runs = match name {
        "sed" | "gsed" => words.iter().any(|word| sed_runs_commands(&word.text)),
        _ if known.interpreters.has_word(name) => has_interpreter_code(words),
        _ => known.runs_code(name, words),
    };
    match runs {
        true => NestedCommands::with_doubt(DoubtReason::new(
            DoubtCause::Code,
            "this runs code from its arguments",
        )),
        false => NestedCommands::default(),
    }
}

/// Returns true if `command` with this option only looks up a program.
fn is_lookup_option(option: &str) -> bool {
    matches!(option, "-v" | "-V" | "-pv" | "-pV")
}

/// Returns true if a shell builtin evaluates a word: names of variables may contain subscripts, and
/// these may contain commands.
fn is_evaluated_word(name: &str, word: &ShellWord) -> bool {
    let text = word.text.as_str();
    let names_variable = match name {
        "printf" | "test" | "[" => ["-v", "-R"].iter().any(|option| text.starts_with(option)),
        "wait" => text.starts_with("-p"),
        _ => false,
    };
    names_variable
        || text.contains("$(")
        || text.contains('`')
        || text.contains('[') && text.contains('$')
}

/// Returns true if an interpreter takes code from its words or its input.
fn has_interpreter_code(words: &[ShellWord]) -> bool {
    for word in words {
        let text = word.text.as_str();
        let Some(letters) = text.strip_prefix('-').filter(|letters| !letters.is_empty()) else {
            return text == "-";
        };
        let is_code = match letters.strip_prefix('-') {
            Some(long) => ["eval", "print", "run", "exec"].iter().any(|it| long.starts_with(it)),
            None => letters.contains(['c', 'e', 'E', 'p', 'n', 'r', 'R', 'B']),
        };
        if is_code {
            return true;
        }
        if letters.starts_with(['-', 'V', 'v', 'h']) && words.len() == 1 {
            // It prints its version, or its usage.
            return false;
        }
    }
    true
}

/// Returns true if a `sed` script may run commands: `e`, alone or as a flag of `s`.
fn sed_runs_commands(text: &str) -> bool {
    if text.starts_with("--") {
        return text.starts_with("--expression") || text.starts_with("--file");
    }
    let mut before = ' ';
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        let may_begin = before.is_ascii_digit() || " \t\n$/;{}!~|,#gpiImMwW".contains(before);
        let may_end = letters.peek().is_none_or(|next| " \t\n;}gpiImMwW0123456789".contains(*next));
        if letter == 'e' && may_begin && may_end && !text.starts_with('-') {
            return true;
        }
        before = letter;
    }
    false
}
