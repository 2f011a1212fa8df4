//! Distinguishes emphasis and links from code, formulas and patterns that have the same form.
//!
//! CommonMark reads `2**10 and 3**2`, `src/**/*.rs`, `__init__.py` and `b[0](x)` as markup too, and
//! hiding their signs changes what the text says. Delimiters are emphasis only if the first is
//! where a word can begin and the last is where a word can end. In scripts without blanks between
//! words, that is between any two letters. A name between underscores, single asterisks on two
//! lines, a pattern such as `*.rs`, and a link whose destination is neither an address nor a path
//! are code. If in doubt, jaato draws the source: a reader can skip a spare asterisk, but cannot
//! guess a missing one.

use std::ops::Range;

/// Returns true if this part of the source, with delimiters of this length, is emphasis.
pub(super) fn is_emphasis(source: &str, range: &Range<usize>, delimiter: usize) -> bool {
    let whole = &source[range.clone()];
    let Some(text) = whole.get(delimiter..whole.len().saturating_sub(delimiter)) else {
        return false;
    };
    // Other delimiters may touch these, for example in `***both***`.
    let before = source[..range.start].trim_end_matches(['*', '_']);
    let after = source[range.end..].trim_start_matches(['*', '_']);
    let is_name = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let is_code = match (whole.as_bytes()[0], delimiter) {
        (b'_', 1) => is_name && text.contains(|sign: char| !sign.is_ascii_alphabetic()),
        (b'_', _) => is_name,
        (_, 1) => text.contains(';') || is_pattern(text),
        (_, _) => is_pattern(text) && text.ends_with(['/', '*']),
    };
    // Strong text may be wrapped. Single asterisks on two lines are often pointers.
    let is_broken = delimiter == 1 && whole.contains('\n');
    // A text without spaces may contain English words, and `Linux**系统**` is not a power.
    let joins = |sign: Option<char>, inner: Option<char>| {
        delimiter == 2 && sign.is_some_and(is_letter) && inner.is_some_and(is_unspaced_letter)
    };
    let (first, last) = (text.chars().next(), text.chars().next_back());
    let (before, outer) = (before.chars().next_back(), source[..range.start].chars().next_back());
    !is_code
        && !is_broken
        && (can_begin_after(before) || joins(before, first))
        && (can_end_before(after) || joins(after.chars().next(), last))
        && !is_quoted(outer, first)
        && !is_quoted(last, source[range.end..].chars().next())
}

/// Returns true if this part of the source, which has the form of a link, is a link.
pub(super) fn is_link(source: &str, range: &Range<usize>, address: &str) -> bool {
    let is_index = match source[..range.start].chars().next_back() {
        // Links may follow each other.
        Some(']' | ')') => !address.contains("://"),
        Some(before) => before == '_' || is_letter(before),
        None => false,
    };
    source[range.start..].starts_with('<') || !is_index && address.contains([':', '/', '#', '.'])
}

/// Returns true if the text after an asterisk continues a file pattern, such as `*.rs` or `**/b`.
fn is_pattern(text: &str) -> bool {
    text.starts_with('/') || text.starts_with('.') && !text.starts_with("..")
}

fn can_begin_after(before: Option<char>) -> bool {
    before.is_none_or(|before| match before {
        '!'..='~' => "([{<\"'-:,;|>~".contains(before),
        _ => !is_letter(before),
    })
}

fn can_end_before(after: &str) -> bool {
    let mut after = after.chars();
    after.next().is_none_or(|sign| match sign {
        '.' => !after.next().is_some_and(is_letter),
        '!'..='~' => "!\"%&')+,-:;<>?[\\]|}~".contains(sign),
        _ => !is_letter(sign),
    })
}

/// Returns true if a delimiter between these characters is literal, as in `'_'` or `(*)`.
fn is_quoted(before: Option<char>, after: Option<char>) -> bool {
    let pair = (before.unwrap_or(' '), after.unwrap_or(' '));
    matches!(pair, ('"', '"') | ('\'', '\'') | ('(', ')') | ('[', ']') | ('{', '}') | ('<', '>'))
}

/// The beginning of the Thai block. Most scripts of this and later blocks have no spaces between
/// words, or join endings to words, and formulas do not use them.
const UNSPACED: char = '\u{e00}';

fn is_letter(sign: char) -> bool {
    sign < UNSPACED && sign.is_alphanumeric()
}

fn is_unspaced_letter(sign: char) -> bool {
    sign >= UNSPACED && sign.is_alphanumeric()
}
