//! The files that a command line may name.
//!
//! Broad, for rules that deny and ask. A part of a word counts as well, because programs split
//! words in their own ways: `-I/path`, `if=/path`, `@file`, `host:path`.

use std::collections::BTreeSet;

use super::programs::{self, ProgramRow};
use super::{ShellAnalysis, ShellWord, ShellWordKind, SimpleCommand};

/// The longest part of a word that is checked as a name.
const NAME_BYTES_MAX: usize = 4096;

/// The maximum number of names that are taken from a line. A line with more may name anything.
const NAMES_MAX: usize = 4096;

/// The placeholder for names that are too many or too long to check.
pub(crate) const ANYTHING: &str = "/*";

/// A part of a command line that may name a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ShellFileName {
    /// The name, relative to the folder of the call.
    pub(crate) text: String,
    /// How the line reaches it.
    pub(crate) reach: NameReach,
}

/// How a line reaches a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum NameReach {
    /// A program gets exactly this word.
    Word,
    /// A program gets exactly this word, and descends into it if it is a folder.
    Folder,
    /// A pattern that expands to file names.
    Pattern,
    /// A part of a word, or a word in another folder.
    Piece,
    /// A folder that the program reads, although no word names it.
    Below,
}

impl ShellAnalysis {
    /// Returns the files that the line may name, without duplicates.
    pub(crate) fn named_files(&self) -> Vec<ShellFileName> {
        let mut names = FileNameCollector::default();
        self.commands.iter().for_each(|command| names.add_command(command));
        self.files
            .iter()
            .for_each(|file| names.add_word(&file.text, file.kind, NameReach::Word, &[]));
        self.texts.iter().for_each(|text| names.add_pieces(text, &[]));
        names.found.sort();
        names.found.dedup();
        names.found
    }

    /// Returns the first reason why the line may name a file that it does not contain as text.
    pub(crate) fn unclear_name_reason(&self) -> Option<&str> {
        let doubt = self.unclear_words().map(|doubt| doubt.what.as_str());
        doubt.or_else(|| self.commands.iter().find_map(unclear_name_reason)).or_else(|| {
            // The command after it may follow the link.
            let makes_link = self.commands.len() > 1 && self.commands.iter().any(creates_link);
            makes_link.then_some("it makes a link")
        })
    }
}

fn creates_link(command: &SimpleCommand) -> bool {
    let is_symbolic = |word: &ShellWord| word.text.starts_with('-') && word.text.contains('s');
    command.program_name() == "ln" && command.words.iter().any(is_symbolic)
}

/// Returns why a command may name a file that is not one of its words.
fn unclear_name_reason(command: &SimpleCommand) -> Option<&'static str> {
    let (known, name) = (programs::wrapper_table(), command.program_name());
    let reads_names = command.words.iter().enumerate().skip(1).any(|(at, word)| {
        // `tar cfT`: the first word of `tar` needs no dash.
        let is_bundle = at == 1 && name == "tar" && !word.text.starts_with('-');
        known.reads_names_from_file(name, &word.text)
            || is_bundle && known.reads_names_from_file(name, &format!("-{}", word.text))
    });
    if reads_names {
        return Some("it reads file names from a file");
    }
    if known.follows_links(name, command.words.get(1..).unwrap_or_default()) {
        return Some("it follows links in folders");
    }
    let is_dynamic = command.words.iter().any(|word| word.kind == ShellWordKind::Dynamic);
    if is_dynamic {
        return Some("file names are known only at run time");
    }
    let is_own = |word: &ShellWord| {
        let mut parts = word.text.split('/');
        let has = |part: &str| word.text.split('/').any(|it| it == part);
        parts.any(|part| part == "proc")
            && ["cwd", "root", "fd", "task", "map_files", "exe"].into_iter().any(has)
    };
    let names_process = command.words.iter().any(is_own);
    names_process.then_some("it names files through a process that has them open")
}

impl SimpleCommand {
    /// Returns the words of the command that may name files, for allow rules. Leaves out words that
    /// are certainly text.
    pub(crate) fn file_names(&self) -> Vec<ShellFileName> {
        let mut names = FileNameCollector { is_strict: true, ..FileNameCollector::default() };
        let words = self.words.get(1..).unwrap_or_default();
        let reach = name_reach(self);
        let mut take =
            |word: &ShellWord| names.add_word(&word.text, word.kind, reach, &self.folders);
        match find_program_row(self) {
            Some((row, count)) => {
                row.file_words(words.get(count..).unwrap_or_default()).for_each(take);
            }
            None => words.iter().for_each(&mut take),
        }
        names.found
    }
}

/// Finds the row of a program or of its subcommand, and how many words the subcommand has.
fn find_program_row(command: &SimpleCommand) -> Option<(&'static ProgramRow, usize)> {
    let program = programs::find_program(command.program_name())?;
    // A subcommand has at most two words.
    let words = command.words.iter().skip(1).take(2);
    let words: Vec<&str> = words.map(|word| word.text.as_str()).collect();
    program.find_subcommand(&words).or(Some((program, 0)))
}

#[derive(Debug, Default)]
struct FileNameCollector {
    found: Vec<ShellFileName>,
    /// Whether only words and the values of options count, without other parts of words.
    is_strict: bool,
}

impl FileNameCollector {
    fn add_command(&mut self, command: &SimpleCommand) {
        let known = programs::wrapper_table();
        let words = command.words.get(1..).unwrap_or_default();
        if let Some(program) = command.words.first() {
            self.add_word(&program.text, program.kind, NameReach::Word, &command.folders);
        }
        let reach = name_reach(command);
        let folders = &command.folders;
        words.iter().for_each(|word| self.add_word(&word.text, word.kind, reach, folders));
        if known.glued_names.has_word(command.program_name()) {
            for word in words {
                let commands = word.text.match_indices(['r', 'R', 'w', 'W']);
                commands.for_each(|(at, _)| self.add_piece(&word.text[at + 1..], folders));
            }
        }
        let of_options = words.iter().enumerate().filter_map(|(at, word)| {
            let (option, glued) = word.text.split_once('=').unwrap_or((&word.text, ""));
            if known.folder_options.has_word(option) {
                return if glued.is_empty() {
                    Some(words.get(at + 1)?.text.as_str())
                } else {
                    Some(glued)
                };
            }
            word.text.strip_prefix("-C").filter(|folder| !folder.is_empty())
        });
        let of_options: BTreeSet<&str> = of_options.collect();
        for folder in of_options {
            if self.found.len() > NAMES_MAX {
                break;
            }
            let folders = super::prefix_folders(&command.folders, folder);
            words.iter().for_each(|word| self.add_pieces(&word.text, &folders));
        }
        let reads_below = find_program_row(command).is_some_and(|(row, count)| {
            let words = &words[count.min(words.len())..];
            row.reads_subfolders(words) && row.names_no_file(words)
        });
        if reads_below {
            super::prefix_folders(&command.folders, ".")
                .into_iter()
                .for_each(|text| self.add_name(text, NameReach::Below));
        }
    }

    fn add_word(&mut self, text: &str, kind: ShellWordKind, reach: NameReach, folders: &[String]) {
        let values = text.match_indices('=').map(|(at, _)| &text[at + 1..]);
        for name in std::iter::once(text).chain(values) {
            let may_be_pattern = name.contains(['*', '?', '[', '{', '(']);
            let reach = match kind {
                ShellWordKind::Glob if may_be_pattern => NameReach::Pattern,
                ShellWordKind::Literal | ShellWordKind::Glob | ShellWordKind::Dynamic => reach,
            };
            for (at, place) in super::prefix_folders(folders, name).into_iter().enumerate() {
                // Only one of the folders is right, and the initial one is the least likely.
                let is_start = folders.len() > 1 && folders[at.min(folders.len() - 1)].is_empty();
                self.add_name(
                    place,
                    if is_start && reach != NameReach::Pattern { NameReach::Piece } else { reach },
                );
            }
        }
        self.add_pieces(text, folders);
    }

    /// Adds the parts of a text that a program may treat as names.
    fn add_pieces(&mut self, text: &str, folders: &[String]) {
        if text.contains(is_name_separator) && !self.is_strict {
            let pieces = text.split(is_name_separator).filter(|piece| !piece.is_empty());
            pieces.for_each(|piece| self.add_piece(piece, folders));
        }
        // `-I/path`, and `-xzf/path`.
        let glued =
            text.strip_prefix('-').filter(|rest| !rest.starts_with('-')).unwrap_or_default();
        let letters = glued.chars().take_while(char::is_ascii_alphanumeric).count().min(8);
        (1..=letters).for_each(|count| self.add_piece(&glued[count..], folders));
        if self.is_strict {
            return;
        }
        // `1r/path` in a script.
        text.find('/').into_iter().for_each(|at| self.add_piece(&text[at..], folders));
        if let Some(at) = text.to_ascii_lowercase().find("file:") {
            let path = text[at + "file:".len()..].trim_start_matches('/');
            self.add_piece(&format!("/{path}"), folders);
            // A host may come first.
            let below_host = path.split_once('/').map(|(_, path)| format!("/{path}"));
            below_host.into_iter().for_each(|path| self.add_piece(&path, folders));
        }
        self.add_piece(text, folders);
    }

    fn add_piece(&mut self, piece: &str, folders: &[String]) {
        // The parts of a long text are checked individually.
        let is_text = || piece.contains(is_name_separator);
        if piece.is_empty() || piece.len() > NAME_BYTES_MAX && is_text() {
            return;
        }
        let is_pattern = piece.contains(['*', '?', '[', '{', '%']);
        let reach = if is_pattern { NameReach::Pattern } else { NameReach::Piece };
        super::prefix_folders(folders, piece)
            .into_iter()
            .for_each(|place| self.add_name(place, reach));
    }

    fn add_name(&mut self, text: String, reach: NameReach) {
        match self.found.len() {
            ..NAMES_MAX if text.len() <= NAME_BYTES_MAX => {
                self.found.push(ShellFileName { text, reach })
            }
            // A name beyond the limit may be anything.
            ..=NAMES_MAX => {
                let text = ANYTHING.to_owned();
                self.found.push(ShellFileName { text, reach: NameReach::Pattern });
            }
            _ => {}
        }
    }
}

/// Returns true if a letter may separate names in a text.
fn is_name_separator(letter: char) -> bool {
    letter.is_whitespace() || "'\"(){}<>;,:=@|&`".contains(letter)
}

/// Returns how a program reaches its words. A program that does not descend into folders may do so
/// with an option.
fn name_reach(command: &SimpleCommand) -> NameReach {
    let words = command.words.get(1..).unwrap_or_default();
    let is_recursive =
        || find_program_row(command).is_some_and(|(row, _)| row.reads_subfolders(words));
    let stays = programs::wrapper_table().stays_outside.has_word(command.program_name());
    if stays && !is_recursive() { NameReach::Word } else { NameReach::Folder }
}
