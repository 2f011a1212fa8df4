//! Parses a command line into the words of a program, or a line for the shell. Pure.
//!
//! A program without a shell around it owns the terminal. Its exit is its own, and a missing
//! program is reported immediately. Only lines that need a shell are run by one.

/// Characters with a special meaning in a shell, outside of quotes.
const SHELL_CHARACTERS: &str = "|&;<>()$`*?[]#~{}!\n";

/// A parsed command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ParsedCommandLine {
    /// A program with its arguments.
    Program(Vec<String>),
    /// A line for the shell.
    Line(String),
}

/// Parses a command line. Returns `None` if it is empty.
pub fn parse_command_line(line: &str) -> Option<ParsedCommandLine> {
    let line = line.trim();
    if line.is_empty() {
        return None;
    }
    let as_line = || ParsedCommandLine::Line(line.to_owned());
    if needs_shell(line) {
        return Some(as_line());
    }
    // For unclosed quotes, the shell gives a better error.
    Some(
        shlex::split(line)
            .filter(|words| !words.is_empty())
            .map_or_else(as_line, ParsedCommandLine::Program),
    )
}

impl ParsedCommandLine {
    /// Returns the words to start, including the shell for a line.
    pub fn words_to_start(self, shell: &str) -> Vec<String> {
        match self {
            Self::Program(words) => words,
            Self::Line(line) => vec![shell.to_owned(), "-c".to_owned(), line],
        }
    }

    /// Returns true for a program that has only options, without `-c`. A shell then reads commands.
    pub fn is_bare_shell(&self) -> bool {
        match self {
            Self::Program(words) => {
                words.iter().skip(1).all(|word| word.starts_with('-') && word != "-c")
            }
            Self::Line(_) => false,
        }
    }

    /// Returns the program's name without its folder, or `None` for a line.
    pub fn program(&self) -> Option<&str> {
        match self {
            Self::Program(words) => words.first().and_then(|word| word.rsplit('/').next()),
            Self::Line(_) => None,
        }
    }
}

/// Returns true if a shell would interpret the line.
fn needs_shell(line: &str) -> bool {
    let mut quote = None;
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        match (quote, character) {
            (Some('\''), '\'') | (Some('"'), '"') => quote = None,
            (Some('"'), '$' | '`') => return true,
            (Some('"') | None, '\\') => drop(characters.next()),
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(character),
            (None, character) if SHELL_CHARACTERS.contains(character) => return true,
            (None, _) => {}
        }
    }
    // A variable before the program: `PAGER=less git log`.
    let first = line.split_whitespace().next().unwrap_or_default();
    first.contains('=')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_program(line: &str, words: &[&str]) {
        let words = words.iter().map(|&word| word.to_owned()).collect();
        assert_eq!(parse_command_line(line), Some(ParsedCommandLine::Program(words)), "{line}");
    }

    #[track_caller]
    fn check_line(line: &str) {
        assert_eq!(
            parse_command_line(line),
            Some(ParsedCommandLine::Line(line.to_owned())),
            "{line}"
        );
    }

    #[test]
    fn command_line_with_plain_words_is_a_program() {
        check_program("bash --norc", &["bash", "--norc"]);
        check_program("  python3 -c 'print(1 + 2); x'  ", &["python3", "-c", "print(1 + 2); x"]);
        check_program(r#"ssh host "a b" c\ d"#, &["ssh", "host", "a b", "c d"]);
        check_program("git commit --author=me", &["git", "commit", "--author=me"]);
    }

    #[test]
    fn command_line_with_shell_syntax_is_passed_to_a_shell() {
        for given in [
            "echo a && echo b | cat",
            "ls *.rs",
            "cd $HOME",
            "echo \"$HOME\"",
            "PAGER=less git log",
            "make > log 2>&1",
            "cat ~/x",
            "echo 'unfinished",
        ] {
            check_line(given);
        }
        let words = parse_command_line("a | b").unwrap().words_to_start("/bin/sh");
        assert_eq!(words, ["/bin/sh", "-c", "a | b"]);
    }

    #[test]
    fn blank_command_line_returns_none() {
        assert_eq!(parse_command_line(" \n\t"), None);
    }

    #[test]
    fn program_name_is_taken_from_the_command_path() {
        assert_eq!(parse_command_line("/usr/bin/ssh host").unwrap().program(), Some("ssh"));
        assert_eq!(parse_command_line("a | b").unwrap().program(), None);
    }
}
