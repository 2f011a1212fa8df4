//! Tags and words: how they are compared, and what the full-text index is asked for. Knows nothing
//! of files.

use jaato_plugin_sdk::types::text::one_line;

use std::collections::BTreeSet;

/// Bytes of a prompt that are looked at: a pasted log must not make a person wait.
const PROMPT_BYTES_MAX: usize = 16 * 1024;
/// Words that one search looks for.
const WORDS_MAX: usize = 64;
/// Words from this length on also find longer ones that begin with them: `release`, `releases`.
const PREFIX_CHARS_MIN: usize = 4;
/// Shorter words are in every prompt. They find a memory only where they are its tag.
const PROMPT_WORD_CHARS_MIN: usize = 4;

/// Words of at least four letters that tell nothing of what a prompt is about.
const STOP_WORDS: [&str; 56] = [
    "about", "after", "again", "also", "because", "been", "before", "being", "between", "both",
    "could", "does", "doing", "down", "each", "from", "have", "having", "here", "into", "just",
    "like", "make", "more", "most", "need", "only", "other", "over", "please", "same", "should",
    "show", "some", "such", "tell", "than", "that", "their", "them", "then", "there", "these",
    "they", "this", "those", "through", "under", "want", "were", "what", "when", "where", "which",
    "will", "with",
];

/// Brings a tag into the form in which tags are compared.
pub fn folded(tag: &str) -> String {
    one_line(tag).to_lowercase()
}

/// Returns the words of a text in lower case, each once.
pub fn words(text: &str) -> Vec<String> {
    let mut seen = BTreeSet::new();
    text.split(|letter: char| !letter.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .filter(|word| seen.insert(word.clone()))
        .take(WORDS_MAX)
        .collect()
}

/// Returns the words by which a prompt may be a tag, and of those the ones that tell something.
pub fn words_of_prompt(prompt: &str) -> (Vec<String>, Vec<String>) {
    let tells = |word: &String| !STOP_WORDS.contains(&word.as_str());
    // Stop words go before the words are counted, or a long sentence would hide its own subject.
    let kept: Vec<&str> = prompt[..prompt.floor_char_boundary(PROMPT_BYTES_MAX)]
        .split(|letter: char| !letter.is_alphanumeric())
        .filter(|word| tells(&word.to_lowercase()))
        .collect();
    let all = words(&kept.join(" "));
    let long = |word: &&String| word.chars().count() >= PROMPT_WORD_CHARS_MIN;
    let telling = all.iter().filter(long).cloned().collect();
    (all, telling)
}

/// Writes the query of the full-text index that finds any of the words.
pub fn any_of(words: &[String]) -> String {
    let one = |word: &String| {
        let more = if word.chars().count() >= PREFIX_CHARS_MIN { "*" } else { "" };
        // Words are letters and digits: nothing in them can end the quotes.
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
        assert_eq!(folded("  Error\n Handling "), "error handling");
        assert_eq!(folded("GRÖßE"), "größe");
    }

    #[test]
    fn a_prompt_is_about_its_long_words_and_each_word_may_be_a_tag() {
        let (all, telling) = words_of_prompt("Please fix the CI: the Release, the release fails");
        assert_eq!(all, ["fix", "the", "ci", "release", "fails"]);
        assert_eq!(telling, ["release", "fails"]);
        let long = format!("{} moon", "this that ".repeat(100));
        assert_eq!(words_of_prompt(&long).1, ["moon"]);
        assert!(words_of_prompt(&"ö".repeat(PROMPT_BYTES_MAX)).1.len() == 1);
    }

    #[test]
    fn a_query_holds_nothing_but_quoted_words() {
        assert_eq!(
            any_of(&words("NEAR(\"x\" OR) release*")),
            "\"near\"* OR \"x\" OR \"or\" OR \"release\"*"
        );
        assert_eq!(any_of(&[]), "\"\"");
        let many: Vec<String> = (0..1000).map(|number| format!("w{number}")).collect();
        assert_eq!(words(&many.join(" ")).len(), WORDS_MAX);
    }
}
