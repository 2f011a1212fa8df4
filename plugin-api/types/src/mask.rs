//! Hides the parts of URLs, command lines and values that may be secret.
//!
//! When in doubt, text is hidden: only text that is clearly not a secret is shown. References such
//! as `${NAME}` are shown as written.

use crate::mcp_entry::VariableReference;

/// The replacement for a secret.
pub const HIDDEN: &str = "…";

/// The maximum length of a plain word, such as the name of a package or folder.
const WORD_CHARS_MAX: usize = 40;

/// The maximum number of digits of a plain number, such as a port or year.
const DIGITS_MAX: usize = 6;

/// The minimum length of a URL path segment that may be a token if it contains letters and digits.
const TOKEN_CHARS_MIN: usize = 16;

/// Words that mark a text as secret.
const SECRET_WORDS: [&str; 9] =
    ["key", "token", "secret", "pass", "pwd", "credential", "auth", "bearer", "cookie"];

/// One-letter options whose value may be a secret: `-H`, `-u`, `-p`, `-t`, `-k`.
const SECRET_LETTERS: [&str; 7] = ["H", "u", "p", "P", "t", "k", "K"];

/// Hides user, password, query and fragment of each URL in a text, and path segments that look like
/// tokens.
pub fn mask_urls(text: &str) -> String {
    let text = strip_reference_defaults(text);
    let mut shown = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        shown.push_str(before);
        let end = after.find([' ', '\t', '\n', '"', '\'', '`', '<', '>']).unwrap_or(after.len());
        let (url, tail) = after.split_at(end);
        shown.push_str(&url_without_scheme(url));
        rest = tail;
    }
    shown.push_str(rest);
    shown
}

/// Hides a value unless it is clearly not a secret: a reference, a flag, a short number, a path, a
/// URL.
pub fn mask_value(text: &str) -> String {
    match () {
        () if is_url(text) => mask_urls(text),
        () if is_plain_value(text) => strip_reference_defaults(text),
        () => HIDDEN.to_owned(),
    }
}

/// Returns true if a value contains a secret in a known form: a URL with a user, a password, a
/// query or a token, or a named secret (`Host=h;Password=x`).
pub fn has_secret(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let is_named = |word: &&str| {
        lower.match_indices(*word).any(|(at, word)| {
            let after = lower[at + word.len()..].trim_start_matches(|c: char| c.is_alphanumeric());
            after.trim_start_matches(['_', '-', '"', '\'', ' ']).starts_with(['=', ':'])
        })
    };
    mask_urls(text) != text || SECRET_WORDS.iter().any(is_named)
}

/// Hides the words of a command line that may be secrets. The first word is the program.
pub fn mask_command_line<'a>(words: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut words = words.into_iter();
    let mut shown: Vec<String> = words.next().into_iter().map(mask_urls).collect();
    shown.extend(mask_arguments(words));
    shown
}

/// Hides the arguments of a command that may be secrets.
pub fn mask_arguments<'a>(words: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut follows_secret_option = false;
    let mut shown = Vec::new();
    for word in words {
        let is_value = std::mem::take(&mut follows_secret_option);
        let option = word.starts_with('-').then(|| word.trim_start_matches('-'));
        shown.push(match option {
            Some(option) => {
                let (name, given) = match option.split_once('=') {
                    Some((name, given)) => (name, Some(given)),
                    None => (option, None),
                };
                follows_secret_option = given.is_none() && is_secret_option(name);
                if is_value { HIDDEN.to_owned() } else { mask_option(word, name, given) }
            }
            None if is_value => mask_pair(word),
            None => mask_word(word),
        });
    }
    shown
}

fn mask_option(word: &str, name: &str, given: Option<&str>) -> String {
    // The value may follow the option without a separator: `-pSECRET`.
    let is_name = match word.starts_with("--") {
        true => is_plain_word(name),
        false => name.len() <= 1 || (is_plain_name(name) && !has_secret_prefix(name)),
    };
    if !is_name {
        let letter: String = word.chars().take(2).collect();
        return letter + HIDDEN;
    }
    let Some(given) = given else { return word.to_owned() };
    let dashes = &word[..word.len() - word.trim_start_matches('-').len()];
    let given = if is_secret_option(name) { mask_pair(given) } else { mask_word(given) };
    format!("{dashes}{name}={given}")
}

fn has_secret_prefix(name: &str) -> bool {
    SECRET_LETTERS.iter().any(|letter| name.starts_with(letter))
}

fn mask_pair(text: &str) -> String {
    if is_reference(text) { strip_reference_defaults(text) } else { HIDDEN.to_owned() }
}

fn mask_word(word: &str) -> String {
    match is_plain_word(word) && !is_secret_text(word) {
        true => word.to_owned(),
        false => mask_value(word),
    }
}

fn is_secret_option(name: &str) -> bool {
    SECRET_LETTERS.contains(&name)
        || is_secret_text(name)
        || name.to_ascii_lowercase().contains("header")
}

fn is_secret_text(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    SECRET_WORDS.iter().any(|word| text.contains(word))
}

/// Returns true if a text is a single URL.
fn is_url(text: &str) -> bool {
    let text = strip_reference_defaults(text);
    let Some((scheme, rest)) = text.split_once("://") else { return false };
    let is_scheme = |c: char| c.is_ascii_alphanumeric() || "+.-".contains(c);
    let is_other = |c: char| c.is_whitespace() || ",;|\"'`<>".contains(c);
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(is_scheme)
        && !rest.contains(is_other)
        && !rest.contains("://")
}

/// Returns true if a text consists of references only, optionally after the scheme of an
/// `Authorization` header.
fn is_reference(text: &str) -> bool {
    let literal = strip_references(text);
    let scheme = ["Bearer", "Basic", "Token", "token"].contains(&literal.trim());
    literal.len() < text.len() && (literal.trim().is_empty() || scheme)
}

fn is_plain_value(text: &str) -> bool {
    let is_number = !text.is_empty()
        && text.len() <= DIGITS_MAX
        && text.chars().all(|c| c.is_ascii_digit() || c == '.');
    let flags = ["true", "false", "yes", "no", "on", "off", "debug", "info", "warn", "error"];
    text.is_empty()
        || is_number
        || flags.contains(&text.to_ascii_lowercase().as_str())
        || is_reference(text)
        || is_plain_path(text)
}

/// Returns true if a text begins like a path and each name in it is short.
fn is_plain_path(text: &str) -> bool {
    let literal = strip_references(text);
    let begins = ["/", "./", "../", "~/"].iter().any(|begin| literal.starts_with(begin));
    let is_letter = |c: char| c.is_ascii_alphanumeric() || "/._-~@ ".contains(c);
    begins
        && literal.chars().all(is_letter)
        && literal.split('/').all(|name| !is_token_like(name) && name.len() <= WORD_CHARS_MAX)
}

/// Returns true for a long option name with a single dash: `-module`.
fn is_plain_name(name: &str) -> bool {
    name.len() <= 12 && name.chars().all(|c| c.is_ascii_lowercase() || c == '-')
}

/// Returns true for words of lower-case letters or a few digits, joined by punctuation:
/// `server.py`, `@scope/mcp-server@1.2.3`.
fn is_plain_word(word: &str) -> bool {
    let is_piece = |piece: &str| {
        piece.chars().all(|c| c.is_ascii_lowercase())
            || (piece.len() <= 4 && piece.chars().all(|c| c.is_ascii_digit()))
    };
    word.len() <= WORD_CHARS_MAX
        && !word.contains("://")
        && word.split(['-', '_', '.', '/', '@', ':', ',']).all(is_piece)
}

fn is_token_like(text: &str) -> bool {
    text.len() >= TOKEN_CHARS_MIN
        && text.chars().any(|c| c.is_ascii_digit())
        && text.chars().any(|c| c.is_ascii_alphabetic())
}

/// Returns a text without its references.
fn strip_references(text: &str) -> String {
    let mut left = String::with_capacity(text.len());
    for_each_part(text, |part| {
        if let TemplatePart::Literal(text) = part {
            left.push_str(text);
        }
    });
    left
}

/// Replaces references with defaults by plain ones: `${NAME:-default}` becomes `${NAME}`. A default
/// may contain spaces, so call this before you split a text into words.
pub fn strip_reference_defaults(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for_each_part(text, |part| match part {
        TemplatePart::Literal(text) => shown.push_str(text),
        TemplatePart::Reference(name) => shown.push_str(&format!("${{{name}}}")),
    });
    shown
}

enum TemplatePart<'a> {
    Literal(&'a str),
    Reference(&'a str),
}

fn for_each_part<'a>(text: &'a str, mut take: impl FnMut(TemplatePart<'a>)) {
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let (before, from) = rest.split_at(at);
        take(TemplatePart::Literal(before));
        rest = match VariableReference::parse_prefix(from) {
            Some(VariableReference { whole, name, .. }) => {
                take(TemplatePart::Reference(name));
                &from[whole.len()..]
            }
            None => {
                take(TemplatePart::Literal("${"));
                &from[2..]
            }
        };
    }
    take(TemplatePart::Literal(rest));
}

fn url_without_scheme(url: &str) -> String {
    let (address, more) = match url.find(['?', '#']) {
        Some(at) => (&url[..at], Some(&url[at..])),
        None => (url, None),
    };
    let mut parts = address.split('/');
    let authority = parts.next().unwrap_or_default();
    let (user, host) = match authority.rsplit_once('@') {
        Some((_, host)) => ("***@", host),
        None => ("", authority),
    };
    // A password with `/`, `?` or `#` ends the apparent host too early.
    let is_cut = !address.contains('/') && more.is_some_and(|more| more.contains('@'));
    if is_cut || !has_plain_port(host) {
        return HIDDEN.to_owned();
    }
    let mut address = format!("{user}{host}");
    for part in parts {
        address.push('/');
        address.push_str(if is_token_like(&strip_references(part)) { HIDDEN } else { part });
    }
    if let Some(more) = more {
        address.push_str(&more[..1]);
        address.push_str(HIDDEN);
    }
    address
}

/// Returns true if a host has no port, or if its port is a number or a reference. Punctuation from
/// the surrounding text may follow.
fn has_plain_port(host: &str) -> bool {
    let host = strip_references(host);
    let after_address = host.rfind(']').map_or(&*host, |at| &host[at + 1..]);
    let after_address = after_address.trim_end_matches([':', ',', '.', ';', ')', '}', '!', '…']);
    let port = after_address.split_once(':').map_or("", |(_, port)| port);
    port.chars().all(|c| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_masked_command(words: &str, expected: &str) {
        assert_eq!(mask_command_line(words.split(' ')).join(" "), expected, "{words}");
    }

    #[test]
    fn secrets_in_urls_are_hidden() {
        for (url, expected) in [
            ("https://e.example/mcp", "https://e.example/mcp"),
            ("https://u:p@e.example:1/mcp?key=S#S", "https://***@e.example:1/mcp?…"),
            ("http://bob:p%40ss@e:8080/a@b or http://e", "http://***@e:8080/a@b or http://e"),
            ("a://b:c@d@e", "a://***@e"),
            ("no url", "no url"),
            ("see `http://e/?a=S` and http://f#S", "see `http://e/?…` and http://f#…"),
            ("https://e/hook/T0123456789abcdefXYZ/x", "https://e/hook/…/x"),
            ("https://${HOST}/${TOKEN:-S}", "https://${HOST}/${TOKEN}"),
            ("https://${HOST:-S T}:${PORT:-S}/x", "https://${HOST}:${PORT}/x"),
            ("postgres://u:p#ss@h/db", "postgres://…"),
            ("postgres://u:p?ss@h/db", "postgres://…"),
            ("postgres://u:p/ss@h/db", "postgres://…"),
            ("postgres://u:1#ss@h/db", "postgres://…"),
            ("http://[::1]:80/x and http://[::1]", "http://[::1]:80/x and http://[::1]"),
            ("http://u:p@[::1]:80/x", "http://***@[::1]:80/x"),
            ("cannot reach http://h:80: refused", "cannot reach http://h:80: refused"),
        ] {
            assert_eq!(mask_urls(url), expected);
        }
    }

    #[test]
    fn a_text_around_a_url_is_hidden() {
        for text in [
            "hunter2 https://e",
            "key=S;url=https://e",
            "https://e;key=S",
            "https://e\thunter2",
            "https://a,https://b",
            "://e",
            "1s://e",
            "jdbc:postgresql://bob:hunter@h/db",
        ] {
            assert_eq!(mask_value(text), HIDDEN, "{text}");
            assert_eq!(mask_arguments([text]), [HIDDEN], "{text}");
        }
        assert_eq!(mask_value("https://u:p@e/x?S"), "https://***@e/x?…");
        assert_eq!(mask_arguments(["git+ssh://u@e/x"]), ["git+ssh://***@e/x"]);
    }

    #[test]
    fn value_that_holds_a_secret_is_recognized() {
        for text in [
            "postgres://bob:hunter2@h/db",
            "postgres://bob@h/db",
            "jdbc:postgresql://bob:hunter2@h/db",
            "jdbc:postgresql://h/db?user=bob&password=hunter2",
            "https://e/hook/T0123456789abcdefXYZ/x",
            "a;https://u:p@e",
            "Server=h;User Id=bob;Password=hunter2;",
            "host=h PWD = 'x'",
            "--auth-token=x",
            r#"{"apiKey": "x"}"#,
        ] {
            assert!(has_secret(text), "{text}");
        }
        for text in [
            "",
            "this",
            "postgres://h:5432/db",
            "/opt/keybase/bin:/usr/bin",
            "/home/ann/.ssh/authorized_keys",
            "x86_64-unknown-linux-gnu",
            "en_US.UTF-8",
            "compass",
        ] {
            assert!(!has_secret(text), "{text}");
        }
    }

    #[test]
    fn variable_default_with_spaces_is_hidden() {
        assert_eq!(mask_urls("see ${T:-my secret} at https://e"), "see ${T} at https://e");
        assert_eq!(mask_value("${T:-my secret}"), "${T}");
        assert_eq!(mask_command_line(["${P:-my secret}", "${T:-my secret}"]), ["${P}", "${T}"]);
        assert_eq!(mask_value("${1A:-secret}"), HIDDEN);
    }

    #[test]
    fn possible_secrets_in_a_command_line_are_hidden() {
        check_masked_command(
            "npx -y @scope/mcp-server@1.2.3 /data",
            "npx -y @scope/mcp-server@1.2.3 /data",
        );
        check_masked_command(
            "python3 -m my_server --port 8080",
            "python3 -m my_server --port 8080",
        );
        check_masked_command("srv --token swordfish", "srv --token …");
        check_masked_command("srv --api-key=swordfish", "srv --api-key=…");
        check_masked_command("srv --token ${TOKEN}", "srv --token ${TOKEN}");
        check_masked_command("srv --token=${TOKEN:-S}", "srv --token=${TOKEN}");
        check_masked_command("srv SEC-arg hunter2 my-secret", "srv … … …");
        check_masked_command("srv -pSECRET -pswordfish -H X-Key:abc", "srv -p… … -H …");
        check_masked_command("srv --token -abc -k --token swordfish", "srv --token … -k … …");
        check_masked_command("srv postgres://u:S@h/db?x=S", "srv postgres://***@h/db?…");
    }

    #[test]
    fn values_are_hidden_unless_they_are_plain() {
        for plain in ["true", "8080", "/usr/bin", "${X}", "Bearer ${X}", "debug"] {
            assert_eq!(mask_value(plain), plain);
        }
        for secret in ["swordfish", "Bearer abc", "x${X}", "SEC", "1234567"] {
            assert_eq!(mask_value(secret), HIDDEN, "{secret}");
        }
    }
}
