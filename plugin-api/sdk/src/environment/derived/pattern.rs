//! Patterns of paths: `*`, `?`, `[…]`, `{a,b}` and `**`.

use jaato_types::{Error, ErrorKind, Result};

/// Bytes of a pattern.
const BYTES_MAX: usize = 4096;

/// Patterns that `{…}` makes of one: each `{` multiplies them.
const ALTERNATIVES_MAX: usize = 256;

/// A pattern that paths are held against.
pub(super) struct Pattern {
    /// Each alternative, by its names.
    alternatives: Vec<Vec<String>>,
}

impl Pattern {
    /// Reads a pattern.
    pub(super) fn new(pattern: &str) -> Result<Self> {
        let wrong = |why: &str| {
            let text = format!("`{pattern}` is no pattern: {why}");
            Error::new(ErrorKind::InvalidArguments, text)
                .with_hint("there are `*`, `?`, `[a-z]`, `{a,b}` and `**`")
        };
        if pattern.is_empty() || pattern.len() > BYTES_MAX {
            return Err(wrong("it is empty or too long"));
        }
        let alternatives = expanded(pattern).map_err(wrong)?;
        for name in alternatives.iter().flat_map(|path| path.split('/')) {
            if !brackets_are_closed(name) {
                return Err(wrong("`[` has no `]`"));
            }
        }
        let names = |path: &String| path.split('/').map(str::to_owned).collect();
        Ok(Self { alternatives: alternatives.iter().map(names).collect() })
    }

    /// How many names deep it can match; none where that has no bound.
    pub(super) fn depth(&self) -> Option<usize> {
        let has_any = self.alternatives.iter().flatten().any(|name| name == "**");
        let depth = self.alternatives.iter().map(Vec::len).max();
        depth.filter(|_| !has_any)
    }

    /// Tells whether it matches a path.
    pub(super) fn matches(&self, path: &str) -> bool {
        let names: Vec<&str> = path.split('/').collect();
        self.alternatives.iter().any(|pattern| path_matches(pattern, &names))
    }
}

/// Writes `{a,b}` out, the outermost first.
fn expanded(pattern: &str) -> std::result::Result<Vec<String>, &'static str> {
    let (mut open, mut done) = (vec![pattern.to_owned()], Vec::new());
    while let Some(text) = open.pop() {
        let Some((before, inside, after)) = first_braces(&text)? else {
            done.push(text);
            continue;
        };
        let parts = parts(inside);
        if open.len() + done.len() + parts.len() > ALTERNATIVES_MAX {
            return Err("it has too many alternatives");
        }
        open.extend(parts.into_iter().rev().map(|part| format!("{before}{part}{after}")));
    }
    Ok(done)
}

type Braces<'a> = Option<(&'a str, &'a str, &'a str)>;

fn first_braces(text: &str) -> std::result::Result<Braces<'_>, &'static str> {
    let (mut depth, mut start, mut is_escaped) = (0_usize, 0, false);
    for (at, sign) in text.char_indices() {
        match sign {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '{' => {
                if depth == 0 {
                    start = at;
                }
                depth += 1;
            }
            '}' if depth == 1 => {
                return Ok(Some((&text[..start], &text[start + 1..at], &text[at + 1..])));
            }
            '}' if depth > 1 => depth -= 1,
            _ => {}
        }
    }
    if depth == 0 { Ok(None) } else { Err("`{` has no `}`") }
}

/// Splits at the commas that stand in no braces of their own.
fn parts(inside: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0_usize, 0);
    for (at, sign) in inside.char_indices() {
        match sign {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(&inside[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&inside[start..]);
    parts
}

fn brackets_are_closed(name: &str) -> bool {
    let signs: Vec<char> = name.chars().collect();
    let mut at = 0;
    while at < signs.len() {
        match signs[at] {
            '\\' => at += 2,
            '[' => match class_end(&signs, at) {
                Some(end) => at = end + 1,
                None => return false,
            },
            _ => at += 1,
        }
    }
    true
}

/// Where a class that begins here ends: a `]` that comes first belongs to it.
fn class_end(signs: &[char], start: usize) -> Option<usize> {
    let is_not = signs.get(start + 1).is_some_and(|sign| "!^".contains(*sign));
    let first = start + 1 + usize::from(is_not);
    (first + 1..signs.len()).find(|at| signs[*at] == ']')
}

/// Holds names against names; `**` stands for any number of them, at the end for at least one.
fn path_matches(pattern: &[String], names: &[&str]) -> bool {
    // `reached[n]`: the pattern so far matches the first n names.
    let mut reached = vec![false; names.len() + 1];
    reached[0] = true;
    for (at, part) in pattern.iter().enumerate() {
        let mut next = vec![false; names.len() + 1];
        if part == "**" {
            let first = reached.iter().position(|is_reached| *is_reached);
            let is_last = at + 1 == pattern.len();
            for end in first.map_or(0..0, |first| first + usize::from(is_last)..names.len() + 1) {
                next[end] = true;
            }
        } else {
            let signs: Vec<char> = part.chars().collect();
            for (end, name) in names.iter().enumerate() {
                next[end + 1] = reached[end] && name_matches(&signs, name);
            }
        }
        reached = next;
    }
    reached[names.len()]
}

/// Holds one name against one; the last `*` alone is tried again, so the time is bounded.
pub(super) fn name_matches(pattern: &[char], name: &str) -> bool {
    let name: Vec<char> = name.chars().collect();
    let (mut at, mut sign, mut retry) = (0, 0, None);
    while sign < name.len() {
        let step = match pattern.get(at) {
            Some('*') => {
                retry = Some((at + 1, sign));
                at += 1;
                continue;
            }
            Some('?') => Some(at + 1),
            Some('[') => class_end(pattern, at)
                .filter(|end| class_has(&pattern[at + 1..*end], name[sign]))
                .map(|end| end + 1),
            Some('\\') => pattern.get(at + 1).filter(|it| **it == name[sign]).map(|_| at + 2),
            Some(plain) => (*plain == name[sign]).then_some(at + 1),
            None => None,
        };
        match (step, retry) {
            (Some(next), _) => {
                at = next;
                sign += 1;
            }
            (None, Some((after, from))) => {
                retry = Some((after, from + 1));
                at = after;
                sign = from + 1;
            }
            (None, None) => return false,
        }
    }
    pattern[at.min(pattern.len())..].iter().all(|rest| *rest == '*')
}

fn class_has(class: &[char], sign: char) -> bool {
    let (is_not, class) = match class.split_first() {
        Some(('!' | '^', rest)) => (true, rest),
        Some(_) | None => (false, class),
    };
    let (mut at, mut has) = (0, false);
    while at < class.len() {
        if class.get(at + 1) == Some(&'-') && at + 2 < class.len() {
            has |= (class[at]..=class[at + 2]).contains(&sign);
            at += 3;
        } else {
            has |= class[at] == sign;
            at += 1;
        }
    }
    has != is_not
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pattern: &str, matching: &[&str], others: &[&str]) {
        let compiled = Pattern::new(pattern).unwrap();
        for path in matching {
            assert!(compiled.matches(path), "`{pattern}` must match `{path}`");
        }
        for path in others {
            assert!(!compiled.matches(path), "`{pattern}` must not match `{path}`");
        }
    }

    #[test]
    fn signs_stand_for_what_they_say() {
        check("*.rs", &["a.rs", ".rs"], &["a/b.rs", "a.rst"]);
        check("**/*.rs", &["a.rs", "a/b/c.rs"], &["a.md"]);
        check("a/**", &["a/b", "a/b/c"], &["a", "b/a/c"]);
        check("a/**/b", &["a/b", "a/x/y/b"], &["a/x", "b"]);
        check("**", &["a", "a/b"], &[]);
        check("a?c", &["abc", "aéc"], &["ac", "a/c"]);
        check("[a-c]x[!0-9]", &["axy", "cx-"], &["dxy", "ax1"]);
        check("[]x]", &["]", "x"], &["a"]);
        check(r"a\*b", &["a*b"], &["axb"]);
        check("{a,b/{c,d}}.rs", &["a.rs", "b/c.rs", "b/d.rs"], &["b.rs", "c.rs"]);
        check("*a*a*a*b", &["aaab", "xaxaxaxb"], &["aab", "aaaa"]);
    }

    #[test]
    fn what_is_no_pattern_is_refused() {
        let many = "{a,b}".repeat(20);
        for wrong in ["", "[a", "{a,b", "a/{", &many, &"a".repeat(5000)] {
            let error = Pattern::new(wrong).err().unwrap();
            assert_eq!(error.kind, ErrorKind::InvalidArguments, "{wrong}");
        }
        assert_eq!(Pattern::new("a/{b,c/d}").unwrap().depth(), Some(3));
        assert_eq!(Pattern::new("a/**/d").unwrap().depth(), None);
    }
}
