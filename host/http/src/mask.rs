//! URLs for display: without user, password, query and fragment.

use std::fmt;

use reqwest::Url;

/// Longest part of an invalid input to repeat in an error.
const SHOWN_CHARS_MAX: usize = 200;

/// A URL without its secrets, for errors and logs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MaskedUrl(String);

impl MaskedUrl {
    /// Keeps scheme, host, port and path, and marks omitted parts.
    pub fn new(url: &Url) -> Self {
        let mut shown = url.clone();
        let has_user = !url.username().is_empty() || url.password().is_some();
        // Both calls fail only for URLs that cannot have a user, so there is none to hide.
        let cleared = shown.set_password(None).and_then(|()| shown.set_username(""));
        if has_user && cleared.is_err() {
            return Self(format!("{}:…", url.scheme()));
        }
        shown.set_query(None);
        shown.set_fragment(None);
        let mut text = String::from(shown);
        if has_user {
            text = text.replacen("://", "://…@", 1);
        }
        if url.query().is_some() {
            text.push_str("?…");
        }
        Self(text)
    }

    /// Masks a text that is not a valid URL.
    pub fn from_unreadable(text: &str) -> Self {
        let cut = text.find(['?', '#']);
        let mut shown = cut.map_or(text, |at| &text[..at]).to_owned();
        if let Some(at) = shown.rfind('@') {
            let start = shown.find("://").map_or(0, |scheme| scheme + 3);
            if start <= at {
                shown.replace_range(start..at, "…");
            }
        }
        let mut shown: String =
            shown.chars().take(SHOWN_CHARS_MAX).flat_map(escape_character).collect();
        if cut.is_some() {
            shown.push_str("?…");
        }
        Self(shown)
    }
}

impl fmt::Display for MaskedUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Escapes control characters of foreign text, so that they do not reach the terminal.
fn escape_character(character: char) -> impl Iterator<Item = char> {
    let escaped = character.is_control().then(|| character.escape_default());
    let plain = (!character.is_control()).then_some(character);
    escaped.into_iter().flatten().chain(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_mask(url: &str, expected: &str) {
        assert_eq!(MaskedUrl::new(&Url::parse(url).unwrap()).to_string(), expected);
    }

    #[test]
    fn user_password_query_and_fragment_are_left_out() {
        check_mask(
            "https://me:hunter2@h.example:8443/a/b?key=s3cret#x",
            "https://…@h.example:8443/a/b?…",
        );
        check_mask("https://token@h.example/", "https://…@h.example/");
        check_mask("http://:pw@127.0.0.1:80/p", "http://…@127.0.0.1/p");
    }

    #[test]
    fn a_url_without_secrets_stays_as_it_is() {
        check_mask("http://127.0.0.1:8080/v1/models", "http://127.0.0.1:8080/v1/models");
    }

    #[test]
    fn an_unreadable_url_is_masked_too() {
        let show = |text: &str| MaskedUrl::from_unreadable(text).to_string();
        assert_eq!(show("http://me:pw@[bad/x?key=s"), "http://…@[bad/x?…");
        assert_eq!(show("me:p@w@host"), "…@host");
        assert_eq!(show("a\u{1b}[31m"), "a\\u{1b}[31m");
        assert_eq!(show(&"x".repeat(500)).len(), 200);
    }
}
