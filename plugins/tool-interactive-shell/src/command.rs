//! What a command line becomes: the words of a program, or a line for the shell. Pure.
//!
//! A program that is started by itself is the terminal's own: it is told apart from a shell around
//! it, its exit is its own, and one that is not there is told at once. Only what a shell must read
//! goes to one.

/// Characters that mean something to a shell outside of quotes.
const SHELL_CHARACTERS: &str = "|&;<>()$`*?[]#~{}!\n";

/// How a command is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// A program with its arguments.
    Program(Vec<String>),
    /// A line that a shell reads.
    Line(String),
}

/// Reads a command line; none where it is empty.
pub fn read(line: &str) -> Option<Command> {
    let line = line.trim();
    if line.is_empty() {
        return None;
    }
    let as_line = || Command::Line(line.to_owned());
    if needs_shell(line) {
        return Some(as_line());
    }
    // Quotes that do not end: the shell says so better.
    Some(
        shlex::split(line).filter(|words| !words.is_empty()).map_or_else(as_line, Command::Program),
    )
}

impl Command {
    /// Returns the words to start, with the shell that reads a line.
    pub fn words(self, shell: &str) -> Vec<String> {
        match self {
            Self::Program(words) => words,
            Self::Line(line) => vec![shell.to_owned(), "-c".to_owned(), line],
        }
    }

    /// Tells whether it is a program with nothing but options, none of them `-c`: a shell then asks
    /// for commands.
    pub fn is_bare_shell(&self) -> bool {
        match self {
            Self::Program(words) => {
                words.iter().skip(1).all(|word| word.starts_with('-') && word != "-c")
            }
            Self::Line(_) => false,
        }
    }

    /// Returns the program's name without its folder; none for a line.
    pub fn program(&self) -> Option<&str> {
        match self {
            Self::Program(words) => words.first().and_then(|word| word.rsplit('/').next()),
            Self::Line(_) => None,
        }
    }
}

/// Tells whether a shell would read more than words.
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
    fn program(line: &str, words: &[&str]) {
        let words = words.iter().map(|&word| word.to_owned()).collect();
        assert_eq!(read(line), Some(Command::Program(words)), "{line}");
    }

    #[track_caller]
    fn line(line: &str) {
        assert_eq!(read(line), Some(Command::Line(line.to_owned())), "{line}");
    }

    #[test]
    fn words_are_a_program() {
        program("bash --norc", &["bash", "--norc"]);
        program("  python3 -c 'print(1 + 2); x'  ", &["python3", "-c", "print(1 + 2); x"]);
        program(r#"ssh host "a b" c\ d"#, &["ssh", "host", "a b", "c d"]);
        program("git commit --author=me", &["git", "commit", "--author=me"]);
    }

    #[test]
    fn what_a_shell_must_read_goes_to_one() {
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
            line(given);
        }
        let words = read("a | b").unwrap().words("/bin/sh");
        assert_eq!(words, ["/bin/sh", "-c", "a | b"]);
    }

    #[test]
    fn nothing_is_nothing() {
        assert_eq!(read(" \n\t"), None);
    }

    #[test]
    fn a_program_has_a_name() {
        assert_eq!(read("/usr/bin/ssh host").unwrap().program(), Some("ssh"));
        assert_eq!(read("a | b").unwrap().program(), None);
    }
}
