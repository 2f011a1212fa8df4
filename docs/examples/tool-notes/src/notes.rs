//! The rules for notes, and which notes match a text. Independent of plugins.

use jaato_plugin_sdk::prelude::{Error, ErrorKind, Result};

/// The longest title, in bytes. A key of the store has at most 200 bytes.
pub const TITLE_BYTES_MAX: usize = 100;

/// The longest text, in bytes. A note is not a document.
pub const TEXT_BYTES_MAX: usize = 4096;

/// Shorter words (`the`, `is`) are in every prompt and therefore ignored.
const WORD_CHARS_MIN: usize = 4;

/// Checks a note and returns the title to store.
///
/// # Errors
/// `invalid_arguments` if the title or text is empty or too long, or the title has several lines.
pub fn check_note<'a>(title: &'a str, text: &str) -> Result<&'a str> {
    let title = title.trim();
    let bad = |what: String| Err(Error::new(ErrorKind::InvalidArguments, what));
    if title.is_empty() || title.len() > TITLE_BYTES_MAX || title.chars().any(char::is_control) {
        return bad(format!("a title is one line of 1 to {TITLE_BYTES_MAX} bytes"));
    }
    if text.trim().is_empty() || text.len() > TEXT_BYTES_MAX {
        return bad(format!("a note has 1 to {TEXT_BYTES_MAX} bytes of text"));
    }
    Ok(title)
}

/// Returns true if a note and a prompt have a word in common, ignoring case.
pub fn has_shared_word(note: &str, prompt: &str) -> bool {
    let prompt = prompt.to_lowercase();
    let of_prompt: Vec<&str> = words(&prompt).collect();
    words(&note.to_lowercase()).any(|word| of_prompt.contains(&word))
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|letter: char| !letter.is_alphanumeric());
    words.filter(|word| word.chars().count() >= WORD_CHARS_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn note_matches_if_it_shares_one_long_word_with_the_search() {
        assert!(has_shared_word("how we Release", "do a release, please"));
        assert!(has_shared_word("größe", "Die GRÖSSE? Die GRÖßE!"));
        assert!(!has_shared_word("how to do it", "how to do that"));
        assert!(!has_shared_word("release", "released"));
        assert!(!has_shared_word("", "") && !has_shared_word("moon", ""));
    }

    #[test]
    fn note_needs_a_one_line_title_and_a_text_within_the_limits() {
        assert_eq!(check_note(" moon ", "far").unwrap(), "moon");
        for (title, text) in [(" ", "x"), ("a\nb", "x"), ("a", " \n")] {
            assert_eq!(check_note(title, text).unwrap_err().kind, ErrorKind::InvalidArguments);
        }
        let (title, text) = ("t".repeat(TITLE_BYTES_MAX), "x".repeat(TEXT_BYTES_MAX));
        assert!(check_note(&title, &text).is_ok());
        assert!(check_note(&format!("{title}t"), &text).is_err());
        assert!(check_note(&title, &format!("{text}x")).is_err());
    }
}
