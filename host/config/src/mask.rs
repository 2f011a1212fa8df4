//! Hides secrets, and truncates long values, in text for users.

use jaato_types::text::{one_line, truncate_chars};

/// Replaces a secret.
pub(crate) const MASK: &str = "********";

/// The longest value quoted in an error: enough to recognise it, short enough for one line.
const QUOTED_CHARS_MAX: usize = 80;

/// Words that mark a name as the name of a secret, anywhere in it, in upper or lower case.
const SECRET_WORDS: [&str; 7] =
    ["key", "token", "secret", "password", "passwd", "credential", "authorization"];

/// Words that contain one of them by accident.
const HARMLESS_WORDS: [&str; 3] = ["keyboard", "keyword", "tokenizer"];

/// Returns true if a setting or variable of this name probably holds a secret: `api_key`,
/// `PGPASSWORD`, `clientSecret`. Prefers to hide too much.
///
/// `config show` uses this to hide plugins' settings, and commands do not get variables with such
/// names.
pub fn is_secret_name(name: &str) -> bool {
    let name = without_harmless_words(name);
    SECRET_WORDS.iter().any(|word| name.contains(word))
}

/// Returns true if a number of this name is probably a secret, because the name ends with such a
/// word, as in `password`. `max_tokens` and `token_limit` are counts.
pub(crate) fn is_secret_number(name: &str) -> bool {
    let name = without_harmless_words(name);
    SECRET_WORDS.iter().any(|word| name.ends_with(word))
}

/// Truncates a value to fit into one line of an error.
pub(crate) fn shorten_value(text: &str) -> String {
    truncate_chars(&one_line(text), QUOTED_CHARS_MAX)
}

fn without_harmless_words(name: &str) -> String {
    let name = name.to_ascii_lowercase();
    HARMLESS_WORDS.iter().fold(name, |name, word| name.replace(word, " "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_secrets_are_recognised_by_their_words() {
        for name in [
            "api_key",
            "apikey",
            "clientSecret",
            "MySecretThing",
            "github_token",
            "max_tokens",
            "db-password",
            "PGPASSWORD",
            "ROOT_PASSWD",
            "AWS_CREDENTIALS_FILE",
            "AUTHORIZATION",
            "proxyAuthorization",
            "TOKENIZER_KEY",
        ] {
            assert!(is_secret_name(name), "{name}");
        }
        for name in ["model", "keyboard", "tokenizer", "TOKENIZERS_PARALLELISM", "stop_keywords"] {
            assert!(!is_secret_name(name), "{name}");
        }
    }

    #[test]
    fn number_is_masked_only_if_its_name_ends_like_a_secret() {
        for name in ["password", "db_passwd", "apiKey", "token", "clientSecret"] {
            assert!(is_secret_number(name), "{name}");
        }
        for name in ["max_tokens", "tokens", "token_limit", "password_length_min", "tokenizer"] {
            assert!(!is_secret_number(name), "{name}");
        }
    }
}
