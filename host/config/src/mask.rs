//! Keeps secrets and endless values out of what people are shown.

/// Shown in place of a secret.
pub(crate) const MASK: &str = "********";

/// Longest value quoted in an error: enough to recognise it, short enough for one line.
const QUOTED_CHARS_MAX: usize = 80;

/// Words that make a name the name of a secret.
const SECRET_WORDS: [&str; 8] =
    ["key", "token", "secret", "password", "passwd", "credential", "credentials", "authorization"];

/// Tells whether a key or variable of this name probably holds a secret, by the words in it:
/// `api_key`, `GITHUB_TOKEN`, `clientSecret`. Errs on the side of hiding.
pub fn is_secret_name(name: &str) -> bool {
    words(name).iter().any(|word| SECRET_WORDS.contains(&word.as_str()))
}

/// Replaces user and password in the URLs of a text: `http://u:p@host` becomes `http://***@host`.
pub fn mask_credentials(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        shown.push_str(before);
        let end = after.find(['/', '?', '#', ' ', '\t', '\n', '"', '\'']).unwrap_or(after.len());
        let (authority, tail) = after.split_at(end);
        match authority.rfind('@') {
            Some(sign) => {
                shown.push_str("***");
                shown.push_str(&authority[sign..]);
            }
            None => shown.push_str(authority),
        }
        rest = tail;
    }
    shown.push_str(rest);
    shown
}

/// Cuts a value to what fits into one line of an error.
pub(crate) fn shorten(text: &str) -> String {
    let line = text.replace(['\n', '\r'], " ");
    match line.char_indices().nth(QUOTED_CHARS_MAX) {
        Some((cut, _)) => format!("{}…", &line[..cut]),
        None => line,
    }
}

fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut previous_lower = false;
    for c in name.chars() {
        let boundary = !c.is_alphanumeric() || (previous_lower && c.is_uppercase());
        if boundary {
            words.push(String::new());
        }
        if c.is_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.extend(c.to_lowercase());
        }
        previous_lower = c.is_lowercase();
    }
    for word in &mut words {
        if word == "apikey" || word == "keys" || word == "tokens" || word == "secrets" {
            *word = "key".to_owned();
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_secrets_are_recognised_by_their_words() {
        for name in ["api_key", "GITHUB_TOKEN", "clientSecret", "apiKey", "apikey", "db-password"] {
            assert!(is_secret_name(name), "{name}");
        }
        for name in ["model", "keyboard", "tokenizer", "output_bytes_max", "monkey"] {
            assert!(!is_secret_name(name), "{name}");
        }
    }

    #[test]
    fn credentials_in_urls_are_masked_and_the_rest_is_kept() {
        let text = "via http://bob:p%40ss@proxy:8080/a@b and https://plain/x";
        assert_eq!(mask_credentials(text), "via http://***@proxy:8080/a@b and https://plain/x");
        assert_eq!(mask_credentials("a://b:c@d@e"), "a://***@e");
        assert_eq!(mask_credentials("no url"), "no url");
    }

    #[test]
    fn long_values_are_cut_on_a_character() {
        assert_eq!(shorten(&"é".repeat(QUOTED_CHARS_MAX)), "é".repeat(QUOTED_CHARS_MAX));
        let cut = shorten(&"é".repeat(QUOTED_CHARS_MAX + 1));
        assert_eq!(cut, format!("{}…", "é".repeat(QUOTED_CHARS_MAX)));
        assert_eq!(shorten("a\nb"), "a b");
    }
}
