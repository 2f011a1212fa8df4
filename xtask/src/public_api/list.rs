//! The `pub` items of a source, a line each.

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use super::print::{line, parts};

/// An item: its attributes, its words up to its body, its body.
struct Item {
    attributes: Vec<String>,
    head: Vec<TokenTree>,
    body: Option<TokenStream>,
}

impl Item {
    fn has(&self, word: &str) -> bool {
        self.head.iter().any(|token| matches!(token, TokenTree::Ident(it) if it == word))
    }

    /// Visible to everybody; `pub(crate)` is not.
    fn is_pub(&self) -> bool {
        let is_narrow = |token: Option<&TokenTree>| matches!(token, Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Parenthesis);
        matches!(self.head.first(), Some(TokenTree::Ident(word)) if word == "pub")
            && !is_narrow(self.head.get(1))
    }

    fn is_hidden(&self) -> bool {
        let hides = |attribute: &String| attribute == "doc(hidden)" || attribute == "cfg(test)";
        self.attributes.iter().any(hides)
    }

    fn line(&self) -> String {
        line(self.head.clone())
    }

    /// What it derives is part of what it can do.
    fn derives(&self) -> String {
        let derives = self.attributes.iter().filter(|it| it.starts_with("derive("));
        derives.map(|it| format!(" [{it}]")).collect()
    }
}

/// Lists the items of a file or a module.
pub fn items(tokens: TokenStream, lines: &mut Vec<String>) {
    for item in split(tokens).into_iter().filter(|item| !item.is_hidden()) {
        let exported = item.attributes.iter().any(|it| it == "macro_export");
        if exported {
            lines.push(item.line());
        } else if item.has("impl") && !item.is_pub() && !item.has("fn") {
            implementation(&item, lines);
        } else if item.is_pub() {
            public(item, lines);
        }
    }
}

fn public(item: Item, lines: &mut Vec<String>) {
    lines.push(format!("{}{}", item.line(), item.derives()));
    // A function may name a trait or a struct in its signature.
    if item.has("fn") {
        return;
    }
    let Some(body) = item.body.clone() else { return };
    if item.has("mod") {
        items(body, lines);
    } else if item.has("trait") {
        lines.extend(split(body).iter().map(|method| within(&item, &method.line())));
    } else if item.has("enum") {
        lines.extend(parts(body).into_iter().map(|variant| within(&item, &line(variant))));
    } else if item.has("struct") {
        let fields = parts(body).into_iter().map(line).filter(|field| field.starts_with("pub "));
        lines.extend(fields.map(|field| within(&item, &field)));
    }
}

/// A line below the item that it belongs to, by the item's kind and name.
fn within(item: &Item, text: &str) -> String {
    let named = item.line();
    let end = named.find(['<', ':', '(']).unwrap_or(named.len());
    format!("{} :: {text}", named[..end].trim_end().trim_start_matches("pub "))
}

fn implementation(item: &Item, lines: &mut Vec<String>) {
    let head = item.line();
    if item.has("for") {
        lines.push(head);
        return;
    }
    let methods = split(item.body.clone().unwrap_or_default());
    let methods = methods.iter().filter(|method| method.is_pub() && !method.is_hidden());
    lines.extend(methods.map(|method| format!("{head} :: {}", method.line())));
}

/// Cuts a module's tokens into items: each ends with a semicolon or with a body.
fn split(tokens: TokenStream) -> Vec<Item> {
    let (mut items, mut attributes, mut head) = (Vec::new(), Vec::new(), Vec::new());
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Punct(sign) if sign.as_char() == '#' && head.is_empty() => {
                tokens.next_if(|next| matches!(next, TokenTree::Punct(_)));
                if let Some(TokenTree::Group(group)) = tokens.next() {
                    attributes.push(line(group.stream()));
                }
            }
            TokenTree::Punct(sign) if sign.as_char() == ';' => {
                let (attributes, head) =
                    (std::mem::take(&mut attributes), std::mem::take(&mut head));
                items.push(Item { attributes, head, body: None });
            }
            // The braces of `use` and of a constant's value are no body.
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace && !goes_on(&head) => {
                let (attributes, head) =
                    (std::mem::take(&mut attributes), std::mem::take(&mut head));
                items.push(Item { attributes, head, body: Some(group.stream()) });
            }
            token => head.push(token),
        }
    }
    items
}

fn goes_on(head: &[TokenTree]) -> bool {
    let is_word = |token: &TokenTree, words: &[&str]| matches!(token, TokenTree::Ident(word) if words.iter().any(|it| word == it));
    let is_use = head.iter().take(2).any(|token| is_word(token, &["use"]));
    let is_value = head.iter().take(2).any(|token| is_word(token, &["const", "static"]))
        && !head.iter().any(|token| is_word(token, &["fn"]));
    is_use || is_value
}

#[test]
fn what_is_public_is_listed_and_nothing_else() {
    let source = "
        //! A file.
        pub use inner::{A, B};
        use other::C;
        /// A thing.
        #[derive(Clone, Debug)]
        pub struct Thing<T: Clone> { /// Seen.
            pub seen: Vec<T>, hidden: u8 }
        pub enum Kind { /// One.
            One, Two(u8), Three { a: Map<u8, u8> } }
        pub(crate) struct Own { pub a: u8 }
        pub trait Does: Send { fn does(&self) -> u8; fn more(&self) -> u8 { 7 } }
        impl<T: Clone> Thing<T> { pub fn new() -> Self { todo!() } fn own(&self) {} }
        impl Does for Kind { fn does(&self) -> u8 { 1 } }
        pub const LIMIT: Thing = Thing { seen: 1 };
        #[doc(hidden)] pub mod hidden { pub fn a() {} }
        pub mod open { pub fn b(x: impl Fn(u8) -> u8) where u8: Copy { } }
        #[macro_export] macro_rules! made { () => {}; }
        #[cfg(test)] mod tests { pub fn t() {} }
    ";
    let mut lines = Vec::new();
    items(source.parse().unwrap(), &mut lines);
    assert_eq!(
        lines,
        [
            "pub use inner::{A, B}",
            "pub struct Thing<T: Clone> [derive(Clone, Debug)]",
            "struct Thing :: pub seen: Vec<T>",
            "pub enum Kind",
            "enum Kind :: One",
            "enum Kind :: Two(u8)",
            "enum Kind :: Three { a: Map<u8, u8> }",
            "pub trait Does: Send",
            "trait Does :: fn does(&self) -> u8",
            "trait Does :: fn more(&self) -> u8",
            "impl<T: Clone> Thing<T> :: pub fn new() -> Self",
            "impl Does for Kind",
            "pub const LIMIT: Thing = Thing { seen: 1 }",
            "pub mod open",
            "pub fn b(x: impl Fn(u8) -> u8) where u8: Copy",
            "macro_rules!made",
        ]
    );
}
