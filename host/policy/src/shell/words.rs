//! Parses one shell word broadly: the text that the program may get, and the scripts inside.

use super::{ShellWord, ShellWordKind};

/// A word, and the scripts that run to produce it.
#[derive(Debug, Default)]
pub(super) struct ScriptWord {
    pub(super) text: String,
    is_glob: bool,
    is_dynamic: bool,
    /// Whether the shell evaluates text that is known only at run time.
    pub(super) is_evaluated: bool,
    /// Scripts of `$(…)`, backquotes and `<(…)`.
    pub(super) scripts: Vec<String>,
}

impl ScriptWord {
    pub(super) fn into_shell_word(self) -> ShellWord {
        let kind = match (self.is_dynamic, self.is_glob) {
            (true, _) => ShellWordKind::Dynamic,
            (false, true) => ShellWordKind::Glob,
            (false, false) => ShellWordKind::Literal,
        };
        ShellWord { text: self.text, kind, written: String::new() }
    }
}

/// Parses a word as it is written.
pub(super) fn parse_written_word(written: &str) -> ScriptWord {
    let letters: Vec<char> = written.chars().collect();
    let mut taken = ScriptWord::default();
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
            '\\' => at += take_escape(&mut taken, is_double, next),
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
                at = take_ansi_quoted(&mut taken, &letters, at + 2);
            }
            '$' if next == Some('(') || next == Some('{') || next == Some('[') => {
                let end = balanced_end(&letters, at + 1);
                let inside: String = letters[(at + 2).min(end)..end].iter().collect();
                take_inner_script(&mut taken, next, &inside);
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
            // `@(a|b)` and the like.
            '(' | ')' if !is_double => {
                taken.is_glob = true;
                taken.text.push(letter);
            }
            '{' if !is_double && next != Some('}') && !contains_number(&letters, at) => {
                // It may expand to several words.
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

/// Returns true if a brace contains a number, as in `stash@{1}`. No shell expands that to several
/// words.
fn contains_number(letters: &[char], at: usize) -> bool {
    let is_behind_at = at > 0 && letters[at - 1] == '@';
    let digits = letters[at + 1..].iter().take_while(|letter| letter.is_ascii_digit()).count();
    is_behind_at && digits > 0 && letters.get(at + 1 + digits) == Some(&'}')
}

/// Reads the content of `$(…)`, `${…}` and `$[…]`.
fn take_inner_script(taken: &mut ScriptWord, opening: Option<char>, inside: &str) {
    taken.is_dynamic = true;
    match opening {
        Some('(') if !inside.starts_with('(') => {
            taken.scripts.push(inside.to_owned());
            return;
        }
        // `((` may also begin a subshell inside a substitution.
        Some('(') => taken.scripts.push(inside.to_owned()),
        _ => {}
    }
    taken.is_evaluated |= match opening {
        Some('{') => is_evaluated_expansion(inside),
        // The value of a name in arithmetic is arithmetic again, and may run commands.
        _ => inside
            .contains(|letter: char| !letter.is_ascii_digit() && !" +-*/%()<>".contains(letter)),
    };
    // One level at a time. Deeper levels are found when the script is read.
    if inside.contains(['$', '`']) {
        let inside = parse_written_word(inside);
        taken.is_evaluated |= inside.is_evaluated;
        taken.scripts.extend(inside.scripts);
    }
}

/// Returns true if `${…}` does more than insert a variable, optionally with another word in its
/// place or only the part that a pattern matches.
fn is_evaluated_expansion(inside: &str) -> bool {
    let name = inside.strip_prefix('#').filter(|rest| !rest.is_empty()).unwrap_or(inside);
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let end = name.find(|letter| !is_name(letter)).unwrap_or(name.len());
    let (name, mut rest) = name.split_at(end);
    if name.is_empty() {
        return !matches!(inside, "@" | "*" | "#" | "?" | "-" | "$" | "!");
    }
    if let Some((index, behind)) = rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        if !matches!(index, "@" | "*") && !index.bytes().all(|byte| byte.is_ascii_digit()) {
            return true;
        }
        rest = behind;
    }
    match rest.strip_prefix(':') {
        Some(rest) => !rest.starts_with(['-', '=', '?', '+']),
        None => {
            !(rest.is_empty() || rest.starts_with(['-', '=', '?', '+', '#', '%', '/', '^', ',']))
        }
    }
}

fn take_escape(taken: &mut ScriptWord, is_double: bool, next: Option<char>) -> usize {
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

/// Reads `$'…'`. Returns the position of its last quote. Not every shell supports it, so the word
/// is not certain.
fn take_ansi_quoted(taken: &mut ScriptWord, letters: &[char], start: usize) -> usize {
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

/// Returns the position at which the bracket that opens at `start` closes. Quotes hide brackets.
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
