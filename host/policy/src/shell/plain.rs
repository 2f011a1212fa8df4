//! Parses plain command lines strictly: simple commands of known words, and the operators that join
//! them. Every POSIX shell parses these the same way.
//!
//! The first part that is not plain ends the parsing, with its position. This module has no list of
//! dangers: anything that is not known to be harmless is not plain.

use std::ops::Range;

use super::{DoubtCause, DoubtKind, DoubtReason, ShellWord, ShellWordKind};

/// The maximum number of simple commands in a plain line. A user would not read a longer one
/// either.
pub(super) const COMMANDS_MAX: usize = 64;

/// The reason for a word of the shell's grammar.
pub(super) const GRAMMAR: &str = "this is part of the shell's grammar";

/// Returns true if a word is a shell keyword that the other reader does not analyse.
pub(super) fn is_unsupported_keyword(word: &str) -> bool {
    RESERVED.contains(&word) && !is_parsed_keyword(word)
}

/// Returns true if the other reader finds the commands that follow a shell keyword.
fn is_parsed_keyword(word: &str) -> bool {
    let taken_apart = [
        "!", "{", "}", "if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done",
        "case", "esac", "in",
    ];
    taken_apart.contains(&word)
}

/// The reason for a command that writes a file.
pub(super) const WRITES: DoubtReason = DoubtReason::new(DoubtCause::Writes, "this writes a file");

/// The reason for an invisible letter.
pub(super) const UNSEEN: DoubtReason =
    DoubtReason::new(DoubtCause::InvisibleLetter, "an invisible character");

/// The reason for an unusual letter.
pub(super) const UNUSUAL: DoubtReason = DoubtReason::new(
    DoubtCause::UnusualLetter,
    "an unusual character, which may look like another",
);

/// The reason for a variable or similar.
const VALUE: DoubtReason =
    DoubtReason::new(DoubtCause::Value, "this value is known only at run time");

/// Words that a shell may parse as grammar at the start of a command.
const RESERVED: [&str; 26] = [
    "!",
    "{",
    "}",
    "[[",
    "]]",
    "if",
    "then",
    "else",
    "elif",
    "fi",
    "do",
    "done",
    "case",
    "esac",
    "while",
    "until",
    "for",
    "in",
    "function",
    "select",
    "time",
    "coproc",
    "repeat",
    "foreach",
    "end",
    "namespace",
];

/// Files to which output may go, because they store nothing.
const NO_FILES: [&str; 1] = ["/dev/null"];

/// Why a line is not plain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PlainParseError {
    pub(super) reason: DoubtReason,
    pub(super) kind: DoubtKind,
    pub(super) at: Range<usize>,
}

/// Parses a line. Returns its commands in order, each with its words.
pub(super) fn parse_line(line: &str) -> Result<Vec<Vec<ShellWord>>, PlainParseError> {
    let mut reader = PlainLineReader { line, at: 0, commands: Vec::new(), words: Vec::new() };
    reader.parse_all()?;
    Ok(reader.commands)
}

struct PlainLineReader<'a> {
    line: &'a str,
    at: usize,
    commands: Vec<Vec<ShellWord>>,
    words: Vec<ShellWord>,
}

impl PlainLineReader<'_> {
    fn parse_all(&mut self) -> Result<(), PlainParseError> {
        let mut must_go_on = false;
        while let Some(letter) = self.peek() {
            match letter {
                ' ' | '\t' => self.at += 1,
                '\\' if self.rest_of_line().starts_with("\\\n") => self.at += 2,
                '\n' | ';' | '&' | '|' => must_go_on = self.parse_separator(must_go_on)?,
                '<' | '>' => self.parse_redirect()?,
                _ => {
                    self.parse_word()?;
                    must_go_on = false;
                }
            }
        }
        if must_go_on && self.words.is_empty() {
            return Err(self.not_plain_error("it ends before its last command", self.at));
        }
        self.end_command(self.at)
    }

    /// Parses a separator of two commands. Returns true if another command must follow.
    fn parse_separator(&mut self, must_go_on: bool) -> Result<bool, PlainParseError> {
        let start = self.at;
        let joins = ["&&", "||", "|", ";", "\n"];
        let refused = ["&>", ";;", ";&", "|&", "&"];
        let rest = self.rest_of_line();
        let is_refused =
            refused.iter().any(|text| rest.starts_with(text)) && !rest.starts_with("&&");
        if is_refused || rest.starts_with(";;") {
            let what = "it runs something in the background, or joins commands in an unusual way";
            return Err(
                self.not_simple_error(DoubtReason::new(DoubtCause::Background, what), start)
            );
        }
        let Some(join) = joins.iter().find(|join| rest.starts_with(**join)) else {
            return Err(self.not_plain_error("this joins commands in an unusual way", start));
        };
        let is_line_end = *join == "\n";
        if self.words.is_empty() && !is_line_end {
            return Err(self.not_plain_error("a command is missing here", start));
        }
        self.at += join.len();
        let had_words = !self.words.is_empty();
        self.end_command(start)?;
        Ok(match *join {
            "&&" | "||" | "|" => true,
            ";" => false,
            _ => must_go_on && !had_words,
        })
    }

    fn end_command(&mut self, at: usize) -> Result<(), PlainParseError> {
        if self.words.is_empty() {
            return Ok(());
        }
        if self.commands.len() == COMMANDS_MAX {
            return Err(self.not_plain_error("it has too many commands", at));
        }
        self.commands.push(std::mem::take(&mut self.words));
        Ok(())
    }

    /// Parses a redirection that writes no file.
    fn parse_redirect(&mut self) -> Result<(), PlainParseError> {
        let start = self.at;
        let rest = self.rest_of_line();
        if rest.starts_with("<<") || rest.starts_with("<>") || rest.starts_with("<(") {
            let reason = DoubtReason::new(DoubtCause::Input, "this input redirection is unusual");
            return Err(self.not_plain_error(reason, start));
        }
        if rest.starts_with(">(") || rest.starts_with(">|") || rest.starts_with(">>>") {
            return Err(self.not_plain_error("this output redirection is unusual", start));
        }
        if self.words.is_empty() {
            return Err(self.not_plain_error("a redirection without a program", start));
        }
        for copy in [">&1", ">&2", "<&0"] {
            let behind = rest.as_bytes().get(copy.len()).copied();
            if rest.starts_with(copy) && behind.is_none_or(is_word_end) {
                self.at += copy.len();
                return Ok(());
            }
        }
        let writes = rest.starts_with('>');
        self.at += if rest.starts_with(">>") { 2 } else { 1 };
        while matches!(self.peek(), Some(' ' | '\t')) {
            self.at += 1;
        }
        let before = self.words.len();
        if self.peek().is_none_or(|letter| letter.is_ascii() && is_word_end(letter as u8)) {
            return Err(self.not_plain_error("a file is missing here", start));
        }
        self.parse_word()?;
        let Some(target) = (self.words.len() > before).then(|| self.words.pop()).flatten() else {
            return Err(self.not_plain_error("a file is missing here", start));
        };
        let is_plain =
            target.kind == ShellWordKind::Literal && NO_FILES.contains(&target.text.as_str());
        if !is_plain {
            let reason = match writes {
                true => WRITES,
                false => "this reads a file into a program".into(),
            };
            return Err(self.not_plain_error(reason, start));
        }
        Ok(())
    }

    /// Parses one word. Digits in front of `<` and `>` belong to the redirection.
    fn parse_word(&mut self) -> Result<(), PlainParseError> {
        let start = self.at;
        let mut word = ShellWord::literal(String::new());
        let mut is_quoted = false;
        while let Some(letter) = self.peek() {
            match letter {
                ' ' | '\t' | '\n' | ';' | '&' | '|' | '<' | '>' => break,
                '\'' => {
                    is_quoted = true;
                    self.parse_single_quoted(&mut word.text)?;
                }
                '"' => {
                    is_quoted = true;
                    self.parse_double_quoted(&mut word.text)?;
                }
                '\\' => {
                    is_quoted = true;
                    self.parse_escaped(&mut word.text)?;
                }
                '{' if self.rest_of_line().starts_with("{}") => {
                    word.text.push_str("{}");
                    self.at += 2;
                }
                '{' if word.text.ends_with('@') && braced_number_len(self.rest_of_line()) > 0 => {
                    let length = braced_number_len(self.rest_of_line());
                    word.text.push_str(&self.rest_of_line()[..length]);
                    self.at += length;
                }
                '*' | '?' | '[' | ']' => {
                    word.kind = ShellWordKind::Glob;
                    word.text.push(letter);
                    self.at += 1;
                }
                _ => {
                    self.check_bare_letter(letter, start, &word.text)?;
                    word.text.push(letter);
                    self.at += 1;
                }
            }
        }
        let written = &self.line[start..self.at];
        let is_number = !is_quoted && written.bytes().all(|byte| byte.is_ascii_digit());
        if is_number && matches!(self.peek(), Some('<' | '>')) {
            return if matches!(written, "0" | "1" | "2") {
                Ok(())
            } else {
                Err(self.not_plain_error("this redirects an unusual file descriptor", start))
            };
        }
        if matches!(written, "[" | "]") {
            word.kind = ShellWordKind::Literal;
        }
        if self.words.is_empty() {
            self.check_program(&word, written, start)?;
        }
        self.words.push(word);
        Ok(())
    }

    /// Checks a literal letter.
    fn check_bare_letter(
        &self,
        letter: char,
        start: usize,
        so_far: &str,
    ) -> Result<(), PlainParseError> {
        let is_first = self.at == start;
        let is_fine = match letter {
            '#' | '=' | '^' => !is_first,
            '~' if is_first => {
                let next = self.line[self.at + 1..].chars().next();
                next.is_none_or(|next| next == '/' || (next.is_ascii() && is_word_end(next as u8)))
            }
            '~' => so_far.ends_with(|before: char| before.is_ascii_alphanumeric() || before == '^'),
            _ => letter.is_ascii_alphanumeric() || "_-./:@%+,".contains(letter),
        };
        if is_fine {
            return Ok(());
        }
        let what: DoubtReason = match letter {
            '$' => VALUE,
            '`' | '(' | ')' => "this runs commands inside other commands".into(),
            '{' | '}' => "a shell may expand this to several words".into(),
            '!' => "a shell may insert an earlier command here".into(),
            '#' => "the text after this is a comment only in some shells".into(),
            _ if letter.is_ascii() => "shells may interpret this character differently".into(),
            _ => UNUSUAL,
        };
        Err(match letter {
            '$' | '`' | '{' | '}' => self.not_simple_error(what, self.at),
            // After letters it is a pattern, in which some shells run commands.
            '(' if is_first => self.not_simple_error(what, self.at),
            _ => self.not_plain_error(what, self.at),
        })
    }

    fn parse_single_quoted(&mut self, text: &mut String) -> Result<(), PlainParseError> {
        let start = self.at;
        let inside = &self.line[start + 1..];
        let Some(end) = inside.find('\'') else {
            return Err(self.not_plain_error("this quote does not end", start));
        };
        self.check_quoted(&inside[..end], start + 1)?;
        text.push_str(&inside[..end]);
        self.at = start + end + 2;
        Ok(())
    }

    fn parse_double_quoted(&mut self, text: &mut String) -> Result<(), PlainParseError> {
        let start = self.at;
        self.at += 1;
        loop {
            let Some(letter) = self.peek() else {
                return Err(self.not_plain_error("this quote does not end", start));
            };
            match letter {
                '"' => break,
                '$' | '`' | '!' => {
                    return Err(match letter {
                        '!' => self.not_plain_error(VALUE, self.at),
                        _ => self.not_simple_error(VALUE, self.at),
                    });
                }
                '\\' => {
                    let next = self.line[self.at + 1..].chars().next();
                    match next {
                        Some('\n') => {}
                        Some(next @ ('"' | '\\' | '$' | '`')) => text.push(next),
                        Some('!') | None => {
                            return Err(
                                self.not_plain_error("shells read this differently", self.at)
                            );
                        }
                        Some(next) => {
                            self.check_quoted(&next.to_string(), self.at + 1)?;
                            text.push('\\');
                            text.push(next);
                        }
                    }
                    self.at += 1 + next.map_or(0, char::len_utf8);
                }
                _ => {
                    self.check_quoted(&letter.to_string(), self.at)?;
                    text.push(letter);
                    self.at += letter.len_utf8();
                }
            }
        }
        self.at += 1;
        Ok(())
    }

    fn parse_escaped(&mut self, text: &mut String) -> Result<(), PlainParseError> {
        let next = self.line[self.at + 1..].chars().next();
        match next {
            Some('\n') => {}
            Some(next) if next.is_ascii_graphic() || next == ' ' => text.push(next),
            _ => return Err(self.not_plain_error("shells read this differently", self.at)),
        }
        self.at += 2;
        Ok(())
    }

    /// Checks quoted text for letters that users cannot see.
    fn check_quoted(&self, text: &str, at: usize) -> Result<(), PlainParseError> {
        let bad = text.char_indices().find(|(_, letter)| is_invisible_letter(*letter));
        match bad {
            Some((place, _)) => Err(self.not_plain_error(UNSEEN, at + place)),
            None => Ok(()),
        }
    }

    fn check_program(
        &self,
        word: &ShellWord,
        written: &str,
        start: usize,
    ) -> Result<(), PlainParseError> {
        let is_name = |letter: char| letter.is_ascii_alphanumeric() || "_-./+".contains(letter);
        let text = word.text.as_str();
        let is_program = text == "["
            || (word.kind == ShellWordKind::Literal
                && !text.is_empty()
                && text.chars().all(is_name)
                && !text.starts_with(['-', '+']));
        if RESERVED.contains(&written) {
            return Err(match is_parsed_keyword(written) {
                true => self.not_simple_error(GRAMMAR, start),
                false => self.not_plain_error(GRAMMAR, start),
            });
        }
        // `NAME=value` in front of a program. Some shells also accept it with the name in quotes.
        if !is_program {
            return Err(self.not_plain_error("this is not a plain program name", start));
        }
        Ok(())
    }

    fn peek(&self) -> Option<char> {
        self.line[self.at..].chars().next()
    }

    fn rest_of_line(&self) -> &str {
        &self.line[self.at..]
    }

    fn not_plain_error(&self, reason: impl Into<DoubtReason>, at: usize) -> PlainParseError {
        let length =
            self.line.get(at..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8);
        let at = at..(at + length).max(self.at.min(self.line.len()));
        PlainParseError { reason: reason.into(), kind: DoubtKind::Effect, at }
    }

    /// As [`Self::not_plain_error`], for parts that the other reader analyses and reports.
    fn not_simple_error(&self, reason: impl Into<DoubtReason>, at: usize) -> PlainParseError {
        PlainParseError { kind: DoubtKind::Shape, ..self.not_plain_error(reason, at) }
    }
}

/// Returns the length of `{1}`, as in `stash@{1}`. Without a comma or two dots, no shell expands it
/// to several words. Returns 0 if the text begins differently.
fn braced_number_len(text: &str) -> usize {
    let inside = text.strip_prefix('{').and_then(|rest| rest.split_once('}'));
    let is_number =
        |text: &&str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    inside.map(|(number, _)| number).filter(is_number).map_or(0, |number| number.len() + 2)
}

fn is_word_end(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'<' | b'>')
}

/// Returns true if a letter is invisible, or is displayed at another position.
pub(super) fn is_invisible_letter(letter: char) -> bool {
    if letter.is_control() {
        return !matches!(letter, '\n' | '\t');
    }
    if letter.is_whitespace() {
        return letter != ' ';
    }
    matches!(letter,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}
