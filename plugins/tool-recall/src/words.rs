//! Splits text into words that can be compared: in any case, with or without accents, and in
//! scripts without spaces.

use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;

/// Two words also match if one begins with the other, which then has at least this many characters:
/// `release`, `releases`.
const STEM_CHARS_MIN: usize = 4;

/// How many characters the longer of two such words may have more.
const ENDING_CHARS_MAX: usize = 4;

/// Calls `take` for each word of a text. Parts of a name such as `maxRetries` are words too.
pub fn for_each_word(text: &str, mut take: impl FnMut(&str)) {
    let folded: String = match text.is_ascii() {
        true => text.to_owned(),
        false => text.nfkd().filter(|sign| !is_combining_mark(*sign)).collect(),
    };
    for word in folded.split(|sign: char| !sign.is_alphanumeric()).filter(|it| !it.is_empty()) {
        let lower = word.to_lowercase();
        if word.chars().any(is_unspaced_script) {
            for_each_pair(&lower, &mut take);
            continue;
        }
        take(&lower);
        let parts = split_name(word);
        if parts.len() > 1 {
            parts.iter().for_each(|part| take(&part.to_lowercase()));
        }
    }
}

/// Returns how well two words match: 1 if they are the same, less if only their beginning is, and 0
/// if they do not match.
pub fn word_similarity(one: &str, other: &str) -> f64 {
    if one == other {
        return 1.0;
    }
    let (short, long) = if one.len() < other.len() { (one, other) } else { (other, one) };
    let Some(ending) = long.strip_prefix(short) else { return 0.0 };
    let is_stem = short.chars().count() >= STEM_CHARS_MIN
        && ending.chars().count() <= ENDING_CHARS_MAX
        && short.chars().all(char::is_alphabetic);
    if is_stem { 0.6 } else { 0.0 }
}

/// Splits a name where an upper-case letter follows a lower-case one.
fn split_name(word: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut start, mut was_lower) = (0, false);
    for (at, sign) in word.char_indices() {
        if was_lower && sign.is_uppercase() {
            parts.push(&word[start..at]);
            start = at;
        }
        was_lower = sign.is_lowercase();
    }
    parts.push(&word[start..]);
    parts
}

/// Takes each pair of neighbouring characters, because words of these scripts have no spaces
/// between them.
fn for_each_pair(word: &str, take: &mut impl FnMut(&str)) {
    let ends: Vec<usize> = word.char_indices().map(|(at, _)| at).chain([word.len()]).collect();
    match ends.len() {
        2 => take(word),
        _ => ends.windows(3).for_each(|pair| take(&word[pair[0]..pair[2]])),
    }
}

/// Returns true for Thai, Lao, Burmese, Khmer, Chinese and Japanese characters.
fn is_unspaced_script(sign: char) -> bool {
    matches!(
        sign,
        '\u{0e00}'..='\u{0eff}'
            | '\u{1000}'..='\u{109f}'
            | '\u{1780}'..='\u{17ff}'
            | '\u{3040}'..='\u{30ff}'
            | '\u{3400}'..='\u{9fff}'
            | '\u{f900}'..='\u{faff}'
            | '\u{20000}'..='\u{3ffff}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collect_words(text: &str) -> Vec<String> {
        let mut words = Vec::new();
        for_each_word(text, |word| words.push(word.to_owned()));
        words
    }

    #[test]
    fn words_are_folded_in_each_script() {
        assert_eq!(collect_words("Die GRÖSSE, bitte"), ["die", "grosse", "bitte"]);
        assert_eq!(collect_words("re\u{301}sumé ﬁle"), ["resume", "file"]);
        assert_eq!(collect_words("ПОРТ базы"), ["порт", "базы"]);
        assert_eq!(collect_words("東京都 港"), ["東京", "京都", "港"]);
        assert_eq!(collect_words("maxRetries=3"), ["maxretries", "max", "retries", "3"]);
        assert_eq!(collect_words("a_b-c/d.rs"), ["a", "b", "c", "d", "rs"]);
        assert_eq!(collect_words(" \n"), [""; 0]);
    }

    #[test]
    fn beginnings_match_less_and_numbers_only_as_a_whole() {
        assert_eq!(word_similarity("port", "port"), 1.0);
        assert!(word_similarity("release", "releases") < 1.0);
        assert!(word_similarity("releases", "release") > 0.0);
        for (one, other) in [("use", "useful"), ("5432", "54321"), ("inter", "internationally")] {
            assert_eq!(word_similarity(one, other), 0.0, "{one} {other}");
        }
    }
}
