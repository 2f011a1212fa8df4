//! Normalizes tags and words, and writes queries for the full-text index. Knows nothing about
//! files.

use jaato_plugin_sdk::types::text::one_line;

use std::collections::BTreeSet;

/// How much of a prompt is searched, in bytes. A pasted log must not make the user wait.
const PROMPT_BYTES_MAX: usize = 16 * 1024;
/// The maximum number of words in one search.
const WORDS_MAX: usize = 64;
/// Words of at least this length also match longer words that begin with them: `release`,
/// `releases`.
const PREFIX_CHARS_MIN: usize = 4;
/// Shorter words are in every prompt. They match a memory only if they are one of its tags.
const PROMPT_WORD_CHARS_MIN: usize = 4;

/// Words of at least four letters that do not show the subject of a prompt.
const STOP_WORDS: [&str; 56] = [
    "about", "after", "again", "also", "because", "been", "before", "being", "between", "both",
    "could", "does", "doing", "down", "each", "from", "have", "having", "here", "into", "just",
    "like", "make", "more", "most", "need", "only", "other", "over", "please", "same", "should",
    "show", "some", "such", "tell", "than", "that", "their", "them", "then", "there", "these",
    "they", "this", "those", "through", "under", "want", "were", "what", "when", "where", "which",
    "will", "with",
];

/// Returns a tag in normalized form.
pub fn fold_tag(tag: &str) -> String {
    one_line(tag).to_lowercase()
}

/// Returns the unique words of a text in lower case.
pub fn unique_words(text: &str) -> Vec<String> {
    let mut seen = BTreeSet::new();
    text.split(|letter: char| !letter.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .filter(|word| seen.insert(word.clone()))
        .take(WORDS_MAX)
        .collect()
}

/// Returns the words of a prompt that may be tags, and those of them that show its subject.
pub fn tag_and_subject_words(prompt: &str) -> (Vec<String>, Vec<String>) {
    let tells = |word: &String| !STOP_WORDS.contains(&word.as_str());
    // Remove stop words before the limit applies. Otherwise a long sentence would hide its own
    // subject.
    let kept: Vec<&str> = prompt[..prompt.floor_char_boundary(PROMPT_BYTES_MAX)]
        .split(|letter: char| !letter.is_alphanumeric())
        .filter(|word| tells(&word.to_lowercase()))
        .collect();
    let all = unique_words(&kept.join(" "));
    let long = |word: &&String| word.chars().count() >= PROMPT_WORD_CHARS_MIN;
    let telling = all.iter().filter(long).cloned().collect();
    (all, telling)
}

/// Writes a full-text query that matches any of the words.
pub fn any_word_query(words: &[String]) -> String {
    let one = |word: &String| {
        let more = if word.chars().count() >= PREFIX_CHARS_MIN { "*" } else { "" };
        // Words contain only letters and digits, so they cannot end the quotes.
        format!("\"{word}\"{more}")
    };
    if words.is_empty() {
        return "\"\"".to_owned();
    }
    words.iter().map(one).collect::<Vec<_>>().join(" OR ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_compared_in_any_case_and_with_single_spaces() {
        assert_eq!(fold_tag("  Error\n Handling "), "error handling");
        assert_eq!(fold_tag("GRÖßE"), "größe");
    }

    #[test]
    fn prompt_words_may_be_tags_and_long_ones_are_search_terms() {
        let (all, telling) =
            tag_and_subject_words("Please fix the CI: the Release, the release fails");
        assert_eq!(all, ["fix", "the", "ci", "release", "fails"]);
        assert_eq!(telling, ["release", "fails"]);
        let long = format!("{} moon", "this that ".repeat(100));
        assert_eq!(tag_and_subject_words(&long).1, ["moon"]);
        assert!(tag_and_subject_words(&"ö".repeat(PROMPT_BYTES_MAX)).1.len() == 1);
    }

    #[test]
    fn full_text_query_contains_only_quoted_words() {
        assert_eq!(
            any_word_query(&unique_words("NEAR(\"x\" OR) release*")),
            "\"near\"* OR \"x\" OR \"or\" OR \"release\"*"
        );
        assert_eq!(any_word_query(&[]), "\"\"");
        let many: Vec<String> = (0..1000).map(|number| format!("w{number}")).collect();
        assert_eq!(unique_words(&many.join(" ")).len(), WORDS_MAX);
    }
}
