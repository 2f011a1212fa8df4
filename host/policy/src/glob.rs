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
        let pattern: Vec<char> = self.0.chars().collect();
        let text: Vec<char> = text.chars().collect();
        let (mut at, mut seen) = (0, 0);
        // Where the last `*` stood, and how much of the text it took so far.
        let mut star: Option<(usize, usize)> = None;
        while seen < text.len() {
            match pattern.get(at) {
                Some('*') => {
                    star = Some((at, seen));
                    at += 1;
                }
                Some(&wanted) if wanted == '?' || wanted == text[seen] => {
                    at += 1;
                    seen += 1;
                }
                _ => {
                    let Some((place, taken)) = star else { return false };
                    star = Some((place, taken + 1));
                    at = place + 1;
                    seen = taken + 1;
                }
            }
        }
        pattern[at..].iter().all(|&rest| rest == '*')
    }
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
