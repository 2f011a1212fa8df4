//! Takes one word of a shell apart, generously: what the program may get, and the scripts inside.

use super::{Word, WordKind};

/// A word, and the scripts that run to make it.
#[derive(Debug, Default)]
pub(super) struct Taken {
    pub(super) text: String,
    is_glob: bool,
    is_dynamic: bool,
    /// Scripts of `$(…)`, backquotes and `<(…)`.
    pub(super) scripts: Vec<String>,
}

impl Taken {
    pub(super) fn into_word(self) -> Word {
        let kind = match (self.is_dynamic, self.is_glob) {
            (true, _) => WordKind::Dynamic,
            (false, true) => WordKind::Glob,
            (false, false) => WordKind::Literal,
        };
        Word { text: self.text, kind, written: String::new() }
    }
}

/// Takes a word as it is written.
pub(super) fn take(written: &str) -> Taken {
    let letters: Vec<char> = written.chars().collect();
    let mut taken = Taken::default();
    let mut at = 0;
    let mut is_double = false;
    while let Some(&letter) = letters.get(at) {
        let next = letters.get(at + 1).copied();
        match letter {
            '\'' if !is_double => {
                let end = letters[at + 1..].iter().position(|&letter| letter == '\'');
                let end = end.map_or(letters.len(), |end| at + 1 + end);
                taken.text.extend(&letters[at + 1..end]);
                at = end;
            }
            '"' => is_double = !is_double,
            '\\' => at += escape(&mut taken, is_double, next),
            '`' => {
                let end = backquote_end(&letters, at + 1);
                let inside: String = letters[at + 1..end].iter().collect();
                taken
                    .scripts
                    .push(inside.replace("\\`", "`").replace("\\$", "$").replace("\\\\", "\\"));
                taken.is_dynamic = true;
                at = end;
            }
            '$' if next == Some('\'') && !is_double => {
                at = ansi_quoted(&mut taken, &letters, at + 2);
            }
            '$' if next == Some('(') || next == Some('{') || next == Some('[') => {
                let end = balanced_end(&letters, at + 1);
                let inside: String = letters[(at + 2).min(end)..end].iter().collect();
                inner(&mut taken, next, &inside);
                at = end;
            }
            '<' | '>' if next == Some('(') && !is_double => {
                let end = balanced_end(&letters, at + 1);
                taken.scripts.push(letters[(at + 2).min(end)..end].iter().collect());
                taken.is_dynamic = true;
                at = end;
            }
            '$' if next.is_some_and(|next| next == '"' && !is_double) => {}
            '$' if next.is_some_and(is_variable) => taken.is_dynamic = true,
            '*' | '?' | '[' if !is_double => {
                taken.is_glob |= letter != '[' || letters.len() > 1;
                taken.text.push(letter);
            }
            '{' if !is_double && next != Some('}') => {
                // Several words may come of it.
                taken.is_dynamic = true;
                taken.text.push(letter);
            }
            '~' if at == 0 && next.is_some_and(|next| next != '/') => {
                taken.is_dynamic = true;
                taken.text.push(letter);
            }
            _ => taken.text.push(letter),
        }
        at += 1;
    }
    taken
}

/// What `$(…)`, `${…}` and `$[…]` hold.
fn inner(taken: &mut Taken, opening: Option<char>, inside: &str) {
    taken.is_dynamic = true;
    if opening == Some('(') && !inside.starts_with('(') {
        taken.scripts.push(inside.to_owned());
        return;
    }
    // Arithmetic and `${name:-$(command)}`: only the scripts inside of them count. `((` may also
    // begin a subshell inside a substitution.
    if opening == Some('(') {
        taken.scripts.push(inside.to_owned());
    }
    taken.scripts.extend(take_inner(inside));
}

fn take_inner(inside: &str) -> Vec<String> {
    // One level at a time: what is nested deeper is found when the script is read.
    if inside.contains(['$', '`']) { take(inside).scripts } else { Vec::new() }
}

fn escape(taken: &mut Taken, is_double: bool, next: Option<char>) -> usize {
    match next {
        Some('\n') => 1,
        Some(next) if is_double && !"\"\\$`".contains(next) => {
            taken.text.push('\\');
            taken.text.push(next);
            1
        }
        Some(next) => {
            taken.text.push(next);
            1
        }
        None => 0,
    }
}

/// Reads `$'…'`; returns where its last quote stands. Not every shell knows it, so the word is not
/// certain.
fn ansi_quoted(taken: &mut Taken, letters: &[char], start: usize) -> usize {
    taken.is_dynamic = true;
    let mut at = start;
    while let Some(&letter) = letters.get(at) {
        match letter {
            '\'' => break,
            '\\' => {
                at += 1;
                let digits = |from: usize, most: usize, radix: u32| -> String {
                    letters[from.min(letters.len())..]
                        .iter()
                        .take(most)
                        .take_while(|letter| letter.is_digit(radix))
                        .collect()
                };
                let (text, radix, skip) = match letters.get(at) {
                    Some('x') => (digits(at + 1, 2, 16), 16, 1),
                    Some('u') => (digits(at + 1, 4, 16), 16, 1),
                    Some('U') => (digits(at + 1, 8, 16), 16, 1),
                    Some('0'..='7') => (digits(at, 3, 8), 8, 0),
                    Some(&other) => {
                        taken.text.push(match other {
                            'n' => '\n',
                            't' => '\t',
                            'r' => '\r',
                            other => other,
                        });
                        (String::new(), 0, 0)
                    }
                    None => break,
                };
                if radix != 0 {
                    let code = u32::from_str_radix(&text, radix).ok().and_then(char::from_u32);
                    taken.text.extend(code);
                    at += (skip + text.len()).saturating_sub(1);
                }
            }
            _ => taken.text.push(letter),
        }
        at += 1;
    }
    at
}

fn backquote_end(letters: &[char], start: usize) -> usize {
    let mut at = start;
    while at < letters.len() {
        match letters[at] {
            '`' => return at,
            '\\' => at += 1,
            _ => {}
        }
        at += 1;
    }
    letters.len()
}

/// Returns where the bracket that opens at `start` closes; quotes hide brackets.
fn balanced_end(letters: &[char], start: usize) -> usize {
    let mut open = Vec::new();
    let mut at = start;
    let mut is_double = false;
    while let Some(&letter) = letters.get(at) {
        match letter {
            '\\' => at += 1,
            '"' => is_double = !is_double,
            '\'' if !is_double => {
                let end = letters[at + 1..].iter().position(|&letter| letter == '\'');
                at = end.map_or(letters.len(), |end| at + 1 + end);
            }
            '(' => open.push(')'),
            '{' => open.push('}'),
            '[' if open.is_empty() || open.last() == Some(&']') => open.push(']'),
            _ if open.last() == Some(&letter) => {
                open.pop();
                if open.is_empty() {
                    return at;
                }
            }
            _ => {}
        }
        at += 1;
    }
    letters.len()
}

fn is_variable(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || "_@*#?-$!".contains(letter)
}
