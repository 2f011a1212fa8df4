//! Parses any script with the parser of a complete shell, and collects the commands that it runs.
//!
//! Broad: a command counts anywhere in the script. Limited: its author may have written the script
//! to keep the reader busy.

use std::panic::{AssertUnwindSafe, catch_unwind};

use brush_parser::ast::{
    AndOr, AssignmentName, AssignmentValue, Command, CommandPrefixOrSuffixItem as Item,
    CompoundCommand, CompoundList, IoFileRedirectKind, IoFileRedirectTarget, IoRedirect,
    RedirectList, SimpleCommand as Parsed, SubshellCommand, Word as ParsedWord,
};
use brush_parser::{Parser, ParserOptions, SourceInfo};

use super::nested::{self, NestedCommands, VARIABLE};
use super::programs;
use super::words::parse_written_word;
use super::{Doubt, DoubtCause, DoubtKind, DoubtReason, ShellWord, ShellWordKind, SimpleCommand};

/// The longest script that is parsed.
pub(super) const SCRIPT_BYTES_MAX: usize = 32 * 1024;

/// How deep scripts and commands may be nested.
const DEPTH_MAX: usize = 8;

/// The deepest nesting of brackets, because the parser backtracks at some of them.
const BRACKETS_MAX: usize = 12;

/// The maximum number of folders in which commands may run.
const FOLDERS_MAX: usize = 8;

/// The maximum number of commands and doubts that are collected.
const COLLECTED_MAX: usize = 512;

/// The reason for here-documents and the like.
const INPUT: DoubtReason = DoubtReason::new(DoubtCause::Input, "input text for a program");

/// The collected commands and doubts.
#[derive(Debug, Default)]
pub(super) struct ScriptAnalysis {
    pub(super) commands: Vec<SimpleCommand>,
    pub(super) doubts: Vec<Doubt>,
    /// Files in redirections, one for each folder in which they may be.
    pub(super) files: Vec<ShellWord>,
    /// Texts apart from the commands: values of variables, and programs' input.
    pub(super) texts: Vec<String>,
    /// The commands that are not nested, in order. A strict reader must find the same ones.
    pub(super) outermost: Vec<Vec<ShellWord>>,
    /// The folders in which the commands may run. An empty one is the folder of the call.
    folders: Vec<String>,
    /// The folders after a successful `cd`.
    moved: Option<Vec<String>>,
    bytes_read: usize,
    depth: usize,
}

impl ScriptAnalysis {
    /// Reads a script. `depth` is the number of scripts around it.
    pub(super) fn read_script(&mut self, text: &str) {
        self.bytes_read += text.len();
        if self.bytes_read > SCRIPT_BYTES_MAX || self.depth > DEPTH_MAX {
            return self.record_unread_rest("it is too long or too deeply nested to read");
        }
        if nesting_depth(text) > BRACKETS_MAX {
            return self.record_unread_rest("its brackets are too deeply nested to read");
        }
        let options = ParserOptions::default();
        let mut parser = Parser::new(text.as_bytes(), &options, &SourceInfo::default());
        // A parser failure of any kind means that the script is not understood.
        let parsed = catch_unwind(AssertUnwindSafe(|| parser.parse_program()));
        let Ok(Ok(program)) = parsed else {
            return self.add_doubt(DoubtKind::Hidden, "jaato cannot parse it as a command line");
        };
        self.depth += 1;
        program.complete_commands.iter().for_each(|list| self.read_list(list));
        self.depth -= 1;
    }

    /// Adds a program with its words, without a shell.
    pub(super) fn add_words(&mut self, words: Vec<ShellWord>) {
        self.outermost.push(words.clone());
        self.add_command(words);
    }

    fn add_doubt(&mut self, kind: DoubtKind, reason: impl Into<DoubtReason>) {
        let DoubtReason { what, cause } = reason.into();
        self.add_doubt_about(kind, (cause, what.to_owned()), None);
    }

    fn add_doubt_about(
        &mut self,
        kind: DoubtKind,
        (cause, what): (DoubtCause, String),
        piece: Option<&str>,
    ) {
        let is_same = |doubt: &Doubt| doubt.kind == kind && doubt.what == what;
        match self.doubts.iter().position(is_same) {
            Some(at) => piece.into_iter().for_each(|piece| self.doubts[at].add_piece(piece)),
            // Only texts of effects name parts of the line, so there are few of the others.
            None if kind != DoubtKind::Effect || self.doubts.len() < COLLECTED_MAX => {
                let pieces = piece.map(str::to_owned).into_iter().collect();
                self.doubts.push(Doubt { what, cause, kind, pieces });
            }
            None => {}
        }
    }

    /// Records that a limit ends the reading.
    fn record_unread_rest(&mut self, what: &'static str) {
        self.add_doubt(DoubtKind::Hidden, DoubtReason::new(DoubtCause::Bound, what));
    }

    fn read_list(&mut self, list: &CompoundList) {
        for item in &list.0 {
            let (and_or, separator) = (&item.0, &item.1);
            if matches!(separator, brush_parser::ast::SeparatorOperator::Async) {
                let what = "it runs something in the background";
                self.add_doubt(DoubtKind::Effect, DoubtReason::new(DoubtCause::Background, what));
            }
            let before = self.folders.clone();
            self.moved = None;
            self.read_pipeline(&and_or.first);
            for next in &and_or.additional {
                match next {
                    AndOr::And(pipeline) => {
                        if let Some(folders) = self.moved.take() {
                            self.folders = folders;
                        }
                        self.read_pipeline(pipeline);
                    }
                    AndOr::Or(pipeline) => {
                        self.moved = None;
                        self.read_pipeline(pipeline);
                    }
                }
            }
            // A `cd` may have failed.
            before.into_iter().for_each(|folder| self.add_possible_folder(folder));
        }
    }

    fn read_pipeline(&mut self, pipeline: &brush_parser::ast::Pipeline) {
        for command in &pipeline.seq {
            match command {
                Command::Simple(simple) => self.read_simple_command(simple),
                Command::Compound(compound, redirects) => {
                    self.read_compound(compound);
                    self.read_redirect_list(redirects.as_ref());
                }
                Command::Function(function) => {
                    self.add_doubt(DoubtKind::Hidden, "it defines a function");
                    self.read_compound(&function.body.0);
                    self.read_redirect_list(function.body.1.as_ref());
                }
                Command::ExtendedTest(test) => {
                    // Some tests compute, and computations may run commands.
                    self.add_doubt(DoubtKind::Hidden, "a test in double brackets may run commands");
                    self.read_unused_word(&test.to_string());
                }
            }
        }
    }

    fn read_compound(&mut self, compound: &CompoundCommand) {
        match compound {
            CompoundCommand::Arithmetic(_) | CompoundCommand::ArithmeticForClause(_) => {
                self.add_doubt(DoubtKind::Hidden, "an arithmetic expression may run commands");
                if let CompoundCommand::ArithmeticForClause(clause) = compound {
                    self.read_list(&clause.body.list);
                }
                let _ = self.read_word(&compound.to_string());
            }
            CompoundCommand::BraceGroup(group) => {
                self.read_block("commands in braces", &[&group.list])
            }
            CompoundCommand::Subshell(SubshellCommand { list, .. }) => {
                let folders = self.folders.clone();
                self.read_block("a subshell", &[list]);
                self.folders = folders;
            }
            CompoundCommand::ForClause(clause) => {
                clause.values.iter().flatten().for_each(|word| self.read_unused_word(&word.value));
                if programs::wrapper_table().is_dangerous_variable(&clause.variable_name) {
                    self.add_doubt(DoubtKind::Hidden, VARIABLE);
                }
                self.read_loop(&[&clause.body.list]);
            }
            CompoundCommand::CaseClause(clause) => {
                self.read_unused_word(&clause.value.value);
                for case in &clause.cases {
                    case.patterns.iter().for_each(|word| _ = self.read_word(&word.value));
                    self.read_block("a condition", case.cmd.as_ref().as_slice());
                }
            }
            CompoundCommand::IfClause(clause) => {
                self.read_block("a condition", &[&clause.condition, &clause.then]);
                for other in clause.elses.iter().flatten() {
                    other.condition.iter().for_each(|condition| self.read_list(condition));
                    self.read_list(&other.body);
                }
            }
            CompoundCommand::WhileClause(clause) | CompoundCommand::UntilClause(clause) => {
                self.read_loop(&[&clause.0, &clause.1.list]);
            }
        }
    }

    fn read_block(&mut self, what: &'static str, lists: &[&CompoundList]) {
        self.add_doubt(DoubtKind::Shape, what);
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            self.record_unread_rest("it is too deeply nested to read");
        } else {
            lists.iter().for_each(|list| self.read_list(list));
        }
        self.depth -= 1;
    }

    /// Reads a loop. After a `cd` in it, the next iteration runs elsewhere.
    fn read_loop(&mut self, lists: &[&CompoundList]) {
        let before = self.folders.len();
        self.read_block("a loop", lists);
        if self.folders.len() > before {
            self.add_doubt(DoubtKind::Words, "a loop may run in a different folder each time");
        }
    }

    fn read_simple_command(&mut self, command: &Parsed) {
        let prefix = command.prefix.iter().flat_map(|prefix| &prefix.0);
        let suffix = command.suffix.iter().flat_map(|suffix| &suffix.0);
        prefix.for_each(|item| match item {
            Item::AssignmentWord(assignment, _) => {
                let name = match &assignment.name {
                    AssignmentName::VariableName(name) => name.as_str(),
                    AssignmentName::ArrayElementName(name, index) => {
                        let _ = self.read_word(index);
                        self.add_doubt(
                            DoubtKind::Hidden,
                            "an arithmetic expression may run commands",
                        );
                        name.as_str()
                    }
                };
                if programs::wrapper_table().is_dangerous_variable(name) {
                    self.add_doubt(DoubtKind::Hidden, VARIABLE);
                } else {
                    self.add_doubt(DoubtKind::Effect, "it sets a variable");
                }
                match &assignment.value {
                    AssignmentValue::Scalar(word) => self.read_unused_word(&word.value),
                    AssignmentValue::Array(items) => items.iter().for_each(|(index, word)| {
                        index
                            .iter()
                            .chain([word])
                            .for_each(|word| self.read_unused_word(&word.value));
                    }),
                }
            }
            other => self.read_prefix_or_suffix(other),
        });
        let mut words: Vec<ShellWord> = Vec::new();
        words.extend(command.word_or_name.as_ref().map(|word| self.read_word(&word.value)));
        for item in suffix {
            match item {
                Item::Word(word) | Item::AssignmentWord(_, word) => {
                    words.push(self.read_word(&word.value));
                }
                other @ (Item::IoRedirect(_) | Item::ProcessSubstitution(..)) => {
                    self.read_prefix_or_suffix(other)
                }
            }
        }
        if words.is_empty() {
            return;
        }
        if self.depth == 1 {
            self.outermost.push(words.clone());
        }
        self.add_command(words);
    }

    fn read_prefix_or_suffix(&mut self, item: &Item) {
        match item {
            Item::IoRedirect(redirect) => self.read_redirect(redirect),
            Item::ProcessSubstitution(_, subshell) => {
                self.read_block("a command inside another command", &[&subshell.list]);
            }
            Item::Word(word) | Item::AssignmentWord(_, word) => _ = self.read_word(&word.value),
        }
    }

    fn read_redirect_list(&mut self, list: Option<&RedirectList>) {
        list.iter().flat_map(|list| &list.0).for_each(|redirect| self.read_redirect(redirect));
    }

    fn read_redirect(&mut self, redirect: &IoRedirect) {
        match redirect {
            IoRedirect::File(_, kind, target) => {
                let writes = match kind {
                    IoFileRedirectKind::Read
                    | IoFileRedirectKind::DuplicateInput
                    | IoFileRedirectKind::DuplicateOutput => false,
                    IoFileRedirectKind::Write
                    | IoFileRedirectKind::Append
                    | IoFileRedirectKind::ReadAndWrite
                    | IoFileRedirectKind::Clobber => true,
                };
                match target {
                    IoFileRedirectTarget::Fd(_) => {}
                    IoFileRedirectTarget::ProcessSubstitution(_, subshell) => {
                        self.read_block("a command inside another command", &[&subshell.list]);
                    }
                    IoFileRedirectTarget::Filename(word) => self.read_file_word(word, writes),
                    IoFileRedirectTarget::Duplicate(word) => {
                        let is_channel = word.value.bytes().all(|byte| byte.is_ascii_digit());
                        if !is_channel {
                            self.read_file_word(word, true);
                        }
                    }
                }
            }
            IoRedirect::OutputAndError(word, _) => self.read_file_word(word, true),
            IoRedirect::HereDocument(_, document) => {
                self.add_doubt(DoubtKind::Effect, INPUT);
                if document.requires_expansion {
                    self.read_unused_word(&document.doc.value.replace(['\'', '"'], " "));
                } else {
                    self.texts.push(document.doc.value.clone());
                }
            }
            IoRedirect::HereString(_, word) => {
                self.add_doubt(DoubtKind::Effect, INPUT);
                self.read_unused_word(&word.value);
            }
        }
    }

    fn read_file_word(&mut self, word: &ParsedWord, writes: bool) {
        let word = self.read_word(&word.value);
        if word.text == "/dev/null" && word.kind == ShellWordKind::Literal {
            return;
        }
        let (cause, verb) =
            if writes { (DoubtCause::Writes, "writes") } else { (DoubtCause::Other, "reads") };
        let what = format!("it {verb} the file `{}`", word.display_text());
        self.add_doubt_about(DoubtKind::Effect, (cause, what), None);
        if word.kind == ShellWordKind::Dynamic {
            self.add_doubt(DoubtKind::Words, "the name of a file is known only at run time");
        }
        let places = super::prefix_folders(&self.folders, &word.text).into_iter();
        self.files.extend(places.map(|text| ShellWord { text, ..word.clone() }));
    }

    /// Reads a word that no program gets, and the scripts inside it.
    fn read_unused_word(&mut self, written: &str) {
        let word = self.read_word(written);
        self.texts.push(word.text);
    }

    /// Reads a word, and the scripts inside it.
    fn read_word(&mut self, written: &str) -> ShellWord {
        let mut taken = parse_written_word(written);
        for script in std::mem::take(&mut taken.scripts) {
            self.add_doubt(DoubtKind::Shape, "it runs commands inside other commands");
            self.read_script(&script);
        }
        if taken.is_evaluated {
            self.add_doubt(DoubtKind::Hidden, "the shell evaluates text when it runs");
        }
        let mut word = taken.into_shell_word();
        if word.kind != ShellWordKind::Literal {
            word.written = written.to_owned();
        }
        if word.kind == ShellWordKind::Dynamic {
            let reason = (DoubtCause::Value, "known only at run time".to_owned());
            self.add_doubt_about(DoubtKind::Words, reason, Some(written));
        }
        word
    }

    fn add_command(&mut self, words: Vec<ShellWord>) {
        if self.commands.len() == COLLECTED_MAX {
            return self.record_unread_rest("it has too many commands to read");
        }
        let inside = nested::nested_commands(&words);
        self.commands.push(SimpleCommand { words: words.clone(), folders: self.folders.clone() });
        let NestedCommands { commands, scripts, hidden, effect } = inside;
        hidden.into_iter().for_each(|reason| self.add_doubt(DoubtKind::Hidden, reason));
        effect.into_iter().for_each(|reason| self.add_doubt(DoubtKind::Effect, reason));
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            if !(commands.is_empty() && scripts.is_empty()) {
                self.record_unread_rest("it is too deeply nested to read");
            }
        } else {
            for command in commands.into_iter().filter(|command| !command.is_empty()) {
                self.add_command(command);
            }
            scripts.iter().for_each(|script| self.read_script(script));
        }
        self.depth -= 1;
        self.moved = None;
        if words[0].text == "cd" {
            self.change_folder(&words[1..]);
        }
    }

    /// Reads the words of `cd`, which goes home without one. `nested` reports unknown ones.
    fn change_folder(&mut self, words: &[ShellWord]) {
        let mut targets =
            words.iter().filter(|word| !matches!(word.text.as_str(), "-L" | "-P" | "--"));
        let target = targets.next().map_or("~", |word| word.text.as_str());
        let mut folders = super::prefix_folders(&self.folders, target);
        // The shell removes `..` before it follows links, or after that with `-P`.
        let shortened: Vec<String> =
            folders.iter().map(|folder| resolve_parent_parts(folder)).collect();
        for folder in shortened {
            if !folders.contains(&folder) {
                folders.push(folder);
            }
        }
        self.moved = Some(folders.clone());
        folders.into_iter().for_each(|folder| self.add_possible_folder(folder));
    }

    fn add_possible_folder(&mut self, folder: String) {
        if self.folders.is_empty() {
            self.folders.push(String::new());
        }
        if self.folders.len() >= FOLDERS_MAX {
            let reason = DoubtReason::new(DoubtCause::Bound, "it runs in too many folders");
            self.add_doubt(DoubtKind::Words, reason);
        } else if !self.folders.contains(&folder) {
            self.folders.push(folder);
        }
    }
}

/// Removes each `..` together with the name before it.
fn resolve_parent_parts(folder: &str) -> String {
    if !folder.split('/').any(|part| part == "..") {
        return folder.to_owned();
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in folder.split('/') {
        match (part, parts.last()) {
            (".", _) | ("", Some(_)) => {}
            ("..", Some(last)) if !matches!(*last, "" | ".." | "~") => _ = parts.pop(),
            _ => parts.push(part),
        }
    }
    if parts == [""] { "/".to_owned() } else { parts.join("/") }
}

/// Returns the deepest nesting of brackets and grammar words, quoted or not.
fn nesting_depth(text: &str) -> usize {
    let (mut brackets, mut grammar, mut deepest) = (0_usize, 0_usize, 0);
    let mut word = String::new();
    for letter in text.chars().chain([' ']) {
        if letter.is_ascii_alphabetic() {
            word.push(letter);
            continue;
        }
        match word.as_str() {
            "if" | "for" | "while" | "until" | "case" | "select" => grammar += 1,
            "fi" | "done" | "esac" => grammar = grammar.saturating_sub(1),
            _ => {}
        }
        word.clear();
        match letter {
            '(' | '{' => brackets += 1,
            ')' | '}' => brackets = brackets.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(brackets + grammar);
    }
    deepest
}
