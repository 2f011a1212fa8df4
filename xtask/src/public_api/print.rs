//! Tokens as a person writes them, near enough to read a difference.

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// Writes tokens on one line, without attributes.
pub fn line(tokens: impl IntoIterator<Item = TokenTree>) -> String {
    let mut text = String::new();
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Punct(sign) if sign.as_char() == '#' => {
                // An attribute: its brackets come next.
                tokens.next_if(|next| matches!(next, TokenTree::Group(_)));
            }
            TokenTree::Punct(sign) => punct(&mut text, sign.as_char(), tokens.peek()),
            TokenTree::Group(group) => {
                let inside = line(group.stream());
                match group.delimiter() {
                    Delimiter::Parenthesis if text.ends_with(" for") => {
                        text.push_str(&format!(" ({inside})"));
                    }
                    Delimiter::Parenthesis => text.push_str(&format!("({inside})")),
                    Delimiter::Bracket if text.ends_with(char::is_alphanumeric) => {
                        text.push_str(&format!(" [{inside}]"));
                    }
                    Delimiter::Bracket => text.push_str(&format!("[{inside}]")),
                    Delimiter::Brace if text.ends_with(':') => {
                        text.push_str(&format!("{{{inside}}}"));
                    }
                    Delimiter::Brace => text.push_str(&format!(" {{ {inside} }}")),
                    Delimiter::None => text.push_str(&inside),
                }
            }
            word => {
                if text.ends_with(|last: char| last.is_alphanumeric() || "_>)]}\"".contains(last)) {
                    text.push(' ');
                }
                text.push_str(&word.to_string());
            }
        }
    }
    text.trim_end().trim_end_matches(',').to_owned()
}

fn punct(text: &mut String, sign: char, next: Option<&TokenTree>) {
    let follows = |wanted| matches!(next, Some(TokenTree::Punct(next)) if next.as_char() == wanted);
    match sign {
        ',' | ';' => {
            text.truncate(text.trim_end().len());
            text.push(sign);
            text.push(' ');
        }
        ':' if follows(':') || text.ends_with(':') => text.push(':'),
        ':' => text.push_str(": "),
        '+' | '=' if !follows('>') => {
            text.truncate(text.trim_end().len());
            text.push_str(&format!(" {sign} "));
        }
        '-' if follows('>') => text.push_str(" -"),
        '>' if text.ends_with(" -") => text.push_str("> "),
        '&' | '\'' | '*' if text.ends_with(|last: char| last.is_alphanumeric() || last == '_') => {
            text.push_str(&format!(" {sign}"));
        }
        _ => text.push(sign),
    }
}

/// Splits what stands between commas of the outermost level; brackets of types count.
pub fn parts(tokens: TokenStream) -> Vec<Vec<TokenTree>> {
    let (mut parts, mut depth) = (vec![Vec::new()], 0_i32);
    let mut is_arrow = false;
    for token in tokens {
        let sign = match &token {
            TokenTree::Punct(sign) => Some(sign.as_char()),
            _ => None,
        };
        match sign {
            Some(',') if depth == 0 => {
                parts.push(Vec::new());
                continue;
            }
            Some('<') => depth += 1,
            Some('>') if !is_arrow => depth -= 1,
            _ => {}
        }
        is_arrow = sign == Some('-');
        if let Some(part) = parts.last_mut() {
            part.push(token);
        }
    }
    parts.retain(|part| !part.is_empty());
    parts
}

#[test]
fn a_signature_reads_as_it_is_written() {
    for text in [
        "pub fn new(text: impl Into<String>) -> Self",
        "pub fn call<'a, T: Tool>(cx: &'a Cx<T::State>, with: &[u8]) -> Result<(), Error>",
        "pub name: &'static [u8]",
        "pub f: extern \"C\" fn(u8) -> u8",
        "impl State for ()",
        "pub const BYTES_MAX: usize = 16",
        "pub trait Tool: ToolInput + 'static",
        "pub type Shown = Arc<dyn Fn(Delta) -> bool + Send>",
    ] {
        let tokens: TokenStream = text.parse().unwrap();
        assert_eq!(line(tokens), text);
    }
    let fields: TokenStream =
        "/// Doc.\n pub a: Map<String, Value>,\n #[serde(default)] pub b: u8,".parse().unwrap();
    let fields: Vec<String> = parts(fields).into_iter().map(line).collect();
    assert_eq!(fields, ["pub a: Map<String, Value>", "pub b: u8"]);
}
