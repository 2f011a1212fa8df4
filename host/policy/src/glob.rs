//! Names with `*` and `?`, as rules write them. Work is bounded by the product of both lengths.

use std::fmt;

/// A name in which `*` stands for any characters and `?` for one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Glob(String);

impl Glob {
    /// Takes the name as a person wrote it.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the name as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Tells whether it stands for a text.
    pub fn matches(&self, text: &str) -> bool {
        let (pattern, text) = (self.0.as_bytes(), text.as_bytes());
        let (mut at, mut seen) = (0, 0);
        // Where the last `*` stood, and how much of the text it took so far.
        let mut star: Option<(usize, usize)> = None;
        while let Some(&letter) = text.get(seen) {
            let step = match pattern.get(at) {
                Some(b'*') => {
                    star = Some((at, seen));
                    at += 1;
                    continue;
                }
                // One letter, however many bytes it has; never a piece of one.
                Some(b'?') if !is_inside_letter(letter) => {
                    let behind = text[seen + 1..].iter();
                    Some(1 + behind.take_while(|byte| is_inside_letter(**byte)).count())
                }
                Some(&wanted) if wanted == letter && wanted != b'?' => Some(1),
                _ => None,
            };
            match (step, star) {
                (Some(step), _) => {
                    at += 1;
                    seen += step;
                }
                (None, Some((place, taken))) => {
                    star = Some((place, taken + 1));
                    at = place + 1;
                    seen = taken + 1;
                }
                (None, None) => return false,
            }
        }
        pattern[at..].iter().all(|&rest| rest == b'*')
    }

    /// Returns what every text that it stands for begins with.
    pub(crate) fn beginning(&self) -> &str {
        let end = self.0.find(['*', '?']).unwrap_or(self.0.len());
        &self.0[..end]
    }
}

/// Tells whether a byte of UTF-8 goes on with a letter that an earlier one began.
fn is_inside_letter(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}

impl fmt::Display for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pattern: &str, yes: &[&str], no: &[&str]) {
        let glob = Glob::new(pattern);
        yes.iter().for_each(|text| assert!(glob.matches(text), "{pattern} {text}"));
        no.iter().for_each(|text| assert!(!glob.matches(text), "{pattern} {text}"));
    }

    #[test]
    fn stars_and_question_marks_stand_for_characters() {
        check("", &[""], &["a"]);
        check("*", &["", "a", "a b\n"], &[]);
        check("a?c", &["abc", "aäc"], &["ac", "abbc"]);
        check("*.rs", &["a.rs", ".rs", "a/b.rs"], &["a.rsx", "rs"]);
        check("a*b*c", &["abc", "axbxc", "abbcc", "abcbc"], &["ab", "acb", "abcd"]);
        check("exact", &["exact"], &["Exact", "exact ", "exac"]);
    }

    #[test]
    fn many_stars_do_not_take_forever() {
        let glob = Glob::new("*a".repeat(200) + "b");
        assert!(!glob.matches(&"a".repeat(4096)));
    }
}
