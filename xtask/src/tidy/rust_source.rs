//! A Rust file as tokens, so that comments and strings are not mistaken for code.

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use super::{TextFile, TidyFinding};

/// A file that was parsed as Rust.
#[derive(Debug, Clone)]
pub struct RustSource {
    /// The path below the root, with `/`.
    pub path: String,
    pub tokens: TokenStream,
}

impl RustSource {
    /// Parses the file's tokens.
    pub fn parse(file: &TextFile) -> Result<Self, TidyFinding> {
        match file.text.parse() {
            Ok(tokens) => Ok(Self { path: file.path.clone(), tokens }),
            Err(error) => {
                let line = proc_macro2::LexError::span(&error).start().line;
                let what = format!("it cannot be read as Rust ({error})");
                Err(TidyFinding::error_finding(
                    &file.path,
                    line,
                    what,
                    "mend it or give it another ending",
                ))
            }
        }
    }

    /// Returns the lines on which one of these words appears as code, at any depth.
    pub fn lines_with(&self, words: &[&str]) -> Vec<(usize, String)> {
        let mut found = Vec::new();
        collect_words(self.tokens.clone(), words, &mut found);
        found
    }
}

fn collect_words(tokens: TokenStream, words: &[&str], found: &mut Vec<(usize, String)>) {
    for token in tokens {
        match token {
            TokenTree::Group(group) => collect_words(group.stream(), words, found),
            TokenTree::Ident(word) => {
                let text = word.to_string();
                if words.contains(&text.as_str()) {
                    found.push((word.span().start().line, text));
                }
            }
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
}

/// Returns the token's word, if it is one.
pub fn token_word(token: Option<&TokenTree>) -> Option<String> {
    match token {
        Some(TokenTree::Ident(word)) => Some(word.to_string()),
        _ => None,
    }
}

/// Returns true if the token is this sign.
pub fn is_sign(token: Option<&TokenTree>, sign: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == sign)
}

/// Returns the content of a token that is a group with these delimiters.
pub fn group_content(token: Option<&TokenTree>, delimiter: Delimiter) -> Option<TokenStream> {
    match token {
        Some(TokenTree::Group(group)) if group.delimiter() == delimiter => Some(group.stream()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::tidy::tests::rust_source;

    #[test]
    fn words_in_comments_and_strings_are_not_code() {
        let text = "//! unsafe\n/// unsafe\nfn a() { let _ = \"unsafe\"; /* unsafe */ }\n\
                    fn b() {\n    (unsafe { c() });\n}\n";
        assert_eq!(rust_source("a.rs", text).lines_with(&["unsafe"]), [(5, "unsafe".to_owned())]);
    }
}
