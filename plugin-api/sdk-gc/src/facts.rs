//! Names that a summary must not lose: paths, URLs, numbers and quoted names. Pure.

/// The longest name that is kept, in characters.
const FACT_CHARS: usize = 200;

/// Pairs of quotation marks.
const QUOTES: [(char, char); 6] =
    [('`', '`'), ('"', '"'), ('“', '”'), ('„', '“'), ('«', '»'), ('‘', '’')];

/// Lists the paths, URLs, numbers and quoted names of a text, each once. A number comes with the
/// word before it.
pub(crate) fn extract_facts(text: &str) -> Vec<String> {
    let mut found = quoted_names(text);
    let mut before = "";
    for word in text.split_whitespace() {
        let bare = word.trim_matches(|sign: char| {
            !sign.is_alphanumeric() && !matches!(sign, '/' | '\\' | '~' | '_' | '-' | '.')
        });
        let bare = bare.trim_end_matches('.');
        if is_path_or_url(bare) {
            found.push(bare.to_owned());
        } else if is_number(bare) {
            let is_word = !before.is_empty() && before.chars().all(char::is_alphanumeric);
            found.push(if is_word { format!("{before} {bare}") } else { bare.to_owned() });
        }
        before = bare;
    }
    let mut seen = std::collections::HashSet::new();
    found.retain(|fact| fact.chars().nth(FACT_CHARS).is_none() && seen.insert(fact.clone()));
    found
}

/// Returns true if a text has the fact. A number may follow another word there.
pub(crate) fn contains_fact(fact: &str, text: &str) -> bool {
    let last = fact.split_whitespace().next_back().unwrap_or(fact);
    text.contains(fact) || (is_number(last) && text.contains(last))
}

fn is_path_or_url(word: &str) -> bool {
    let has_name = word.chars().any(char::is_alphanumeric);
    let has_extension = || {
        word.rsplit_once('.').is_some_and(|(stem, end)| {
            !stem.is_empty()
                && (1..=5).contains(&end.len())
                && end.chars().all(|sign| sign.is_ascii_alphanumeric())
                && end.chars().any(|sign| sign.is_ascii_alphabetic())
                && stem.chars().any(char::is_alphanumeric)
        })
    };
    has_name && (word.contains('/') || word.contains('\\') || has_extension())
}

fn is_number(word: &str) -> bool {
    let digits = word.chars().filter(char::is_ascii_digit).count();
    digits >= 2 && digits * 2 >= word.chars().count()
}

fn quoted_names(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in text.lines() {
        for (open, close) in QUOTES {
            let mut rest = line;
            while let Some((_, after)) = rest.split_once(open) {
                let Some((name, after)) = after.split_once(close) else { break };
                if name.chars().any(char::is_alphanumeric) {
                    found.push(name.trim().to_owned());
                }
                rest = after;
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_urls_numbers_and_quoted_names_are_found_once() {
        let text = "Look at src/main.rs, (https://example.org/a?b=1) and `Blue Moon`. The port 8080 \
                    and 1.85; see main.rs. Not this: a/ ... 7 — src/main.rs";
        let expected = [
            "Blue Moon",
            "src/main.rs",
            "https://example.org/a?b=1",
            "port 8080",
            "and 1.85",
            "main.rs",
            "a/",
        ];
        assert_eq!(extract_facts(text), expected);
    }

    #[test]
    fn number_counts_as_present_next_to_another_word() {
        assert!(contains_fact("port 8080", "it listens on 8080"));
        assert!(!contains_fact("port 8080", "it listens on 808"));
        assert!(!contains_fact("src/a.rs", "src/b.rs"));
    }
}
