//! Tests that the API for plugin authors equals the committed list, so that an accidental change
//! fails.
//!
//! There is one list for each crate, with each `pub` item of its sources on a line with its
//! signature. `UPDATE_EXPECT=1 cargo test -p xtask public_api` updates the lists. A removed or
//! changed line breaks the sources of plugins. Names are not resolved, so a `pub` item in a private
//! module is listed even if it is not exported.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use expect_test::expect_file;
use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

/// Blanks between tokens that make the lines harder to read, with their replacements.
const TIGHT: [(&str, &str); 22] = [
    (" ::", "::"),
    (":: ", "::"),
    (" :", ":"),
    (" ,", ","),
    (" <", "<"),
    ("< ", "<"),
    (" >", ">"),
    (" (", "("),
    (" !", "!"),
    ("& ", "&"),
    (" ;", ";"),
    ("* ", "*"),
    ("? ", "?"),
    (", }", " }"),
    (",)", ")"),
    (",]", "]"),
    ("=(", "= ("),
    ("->(", "-> ("),
    ("),(", "), ("),
    (":(", ": ("),
    (" for(", " for ("),
    ("rules! ", "rules!"),
];

/// An item: its attributes, its words up to its body, and its body.
#[derive(Default)]
struct ApiItem {
    attributes: Vec<String>,
    head: Vec<TokenTree>,
    body: TokenStream,
}

impl ApiItem {
    fn has_word(&self, word: &str) -> bool {
        self.head.iter().any(|token| is_word(token, word))
    }

    /// Returns true if the item is visible to everyone, unlike `pub(crate)`.
    fn is_pub(&self) -> bool {
        self.head.first().is_some_and(|token| is_word(token, "pub"))
            && !matches!(self.head.get(1), Some(TokenTree::Group(_)))
    }

    fn is_hidden(&self) -> bool {
        self.attributes.iter().any(|it| it == "doc(hidden)" || it == "cfg(test)")
    }

    /// Returns true if the next braces belong to its words, as in `use` and in a constant's value.
    fn has_words_after_braces(&self) -> bool {
        let begins = |word| self.head.iter().take(2).any(|token| is_word(token, word));
        begins("use") || (begins("const") || begins("static")) && !self.has_word("fn")
    }

    fn to_line(&self) -> String {
        let line = format_tokens(self.head.iter().cloned().collect());
        if self.has_word("use") { line.replace("{ ", "{").replace(" }", "}") } else { line }
    }
}

fn is_word(token: &TokenTree, word: &str) -> bool {
    matches!(token, TokenTree::Ident(it) if it == word)
}

fn is_sign(token: &TokenTree, sign: char) -> bool {
    matches!(token, TokenTree::Punct(it) if it.as_char() == sign)
}

/// Formats tokens on one line, without attributes.
fn format_tokens(tokens: TokenStream) -> String {
    let text = TIGHT
        .iter()
        .fold(without_attributes(tokens).to_string(), |text, (is, be)| text.replace(is, be));
    text.trim_end_matches(',').to_owned()
}

fn without_attributes(tokens: TokenStream) -> TokenStream {
    let mut tokens = tokens.into_iter();
    let mut kept = Vec::new();
    while let Some(token) = tokens.next() {
        match token {
            token if is_sign(&token, '#') => drop(tokens.next()),
            TokenTree::Group(group) => {
                kept.push(Group::new(group.delimiter(), without_attributes(group.stream())).into());
            }
            token => kept.push(token),
        }
    }
    kept.into_iter().collect()
}

/// Splits a module's tokens into items. Each ends with a semicolon or a body.
fn split_items(tokens: TokenStream) -> Vec<ApiItem> {
    let (mut items, mut item) = (Vec::new(), ApiItem::default());
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match token {
            token if is_sign(&token, '#') && item.head.is_empty() => {
                tokens.next_if(|next| is_sign(next, '!'));
                if let Some(TokenTree::Group(group)) = tokens.next() {
                    item.attributes.push(format_tokens(group.stream()));
                }
            }
            token if is_sign(&token, ';') => items.push(std::mem::take(&mut item)),
            TokenTree::Group(group)
                if group.delimiter() == Delimiter::Brace && !item.has_words_after_braces() =>
            {
                item.body = group.stream();
                items.push(std::mem::take(&mut item));
            }
            token => item.head.push(token),
        }
    }
    items
}

/// Splits tokens at the outermost commas, taking angle brackets into account.
fn split_at_commas(tokens: TokenStream) -> Vec<String> {
    let (mut parts, mut depth) = (vec![Vec::new()], 0);
    for token in tokens {
        depth += i32::from(is_sign(&token, '<')) - i32::from(is_sign(&token, '>'));
        // The arrow of a function type does not close a bracket.
        depth += i32::from(is_sign(&token, '-'));
        if is_sign(&token, ',') && depth == 0 {
            parts.push(Vec::new());
        } else if let Some(part) = parts.last_mut() {
            part.push(token);
        }
    }
    let lines = parts.into_iter().map(|part| format_tokens(part.into_iter().collect()));
    lines.filter(|line| !line.is_empty()).collect()
}

/// Lists the items of a file or a module.
fn list_items(tokens: TokenStream, lines: &mut Vec<String>) {
    for item in split_items(tokens).into_iter().filter(|item| !item.is_hidden()) {
        let head = item.to_line();
        if item.attributes.iter().any(|it| it == "macro_export") {
            lines.push(head);
        } else if head.ends_with("service_operations!") {
            // A row generates a constant and a method of the sdk.
            let rows = split_items(item.body).into_iter().skip(1);
            lines.extend(rows.map(|row| format!("operation {}", row.to_line())));
        } else if head.contains("made_by_host!") {
            lines.push(head);
        } else if item.has_word("impl") && !item.is_pub() && !item.has_word("fn") {
            if item.has_word("for") {
                lines.push(head);
                continue;
            }
            let methods = split_items(item.body);
            let methods = methods.iter().filter(|method| method.is_pub() && !method.is_hidden());
            lines.extend(methods.map(|method| format!("{head} :: {}", method.to_line())));
        } else if item.is_pub() {
            // Derived traits are part of the API.
            let derives = item.attributes.iter().filter(|it| it.starts_with("derive("));
            let derives: String = derives.map(|it| format!(" [{it}]")).collect();
            lines.push(format!("{head}{derives}"));
            let within = match () {
                // A function may name a trait or a struct in its signature.
                () if item.has_word("fn") => Vec::new(),
                () if item.has_word("trait") => {
                    split_items(item.body).iter().map(ApiItem::to_line).collect()
                }
                () if item.has_word("enum") => split_at_commas(item.body),
                () if item.has_word("struct") => split_at_commas(item.body)
                    .into_iter()
                    .filter(|field| field.starts_with("pub "))
                    .collect(),
                () => {
                    list_items(item.body, lines);
                    continue;
                }
            };
            let end = head.find(['<', ':', '(']).unwrap_or(head.len());
            let name = head[..end].trim_start_matches("pub ");
            lines.extend(within.iter().map(|text| format!("{name} :: {text}")));
        }
    }
}

/// Returns the sources of a crate in any order, because the list is sorted.
fn source_files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(source_files(&path));
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
    found
}

/// Removes the `impl`s that name no public type.
fn remove_private_impls(lines: &mut Vec<String>) {
    let words = |text: &str| -> Vec<String> {
        text.split(|c: char| !c.is_alphanumeric() && c != '_').map(str::to_owned).collect()
    };
    let types = lines.iter().filter_map(|line| {
        line.strip_prefix("pub struct ").or_else(|| line.strip_prefix("pub enum "))
    });
    let types: BTreeSet<String> = types.map(|rest| words(rest).swap_remove(0)).collect();
    lines.retain(|line| {
        let is_known = |word: &String| word.is_empty() || types.contains(word);
        let head = line.split(" :: ").next().unwrap_or(line);
        match head.split_once(" for ") {
            _ if !head.starts_with("impl") => true,
            Some((_, target)) => words(target).first().is_some_and(is_known),
            None => words(head).iter().any(|word| types.contains(word)),
        }
    });
}

#[test]
fn public_api_matches_the_committed_list() {
    for name in ["types", "sdk", "sdk-provider", "sdk-gc", "sdk-environment", "testkit"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../plugin-api").join(name);
        let mut lines = Vec::new();
        for source in source_files(&folder.join("src")) {
            list_items(fs::read_to_string(&source).unwrap().parse().unwrap(), &mut lines);
        }
        remove_private_impls(&mut lines);
        lines.sort();
        expect_file![folder.join("public-api.txt")].assert_eq(&format!("{}\n", lines.join("\n")));
    }
}

#[test]
fn public_api_list_contains_exactly_the_public_items() {
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
        struct Hidden;
        impl Hidden { pub fn new() -> Self { todo!() } }
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
    list_items(source.parse().unwrap(), &mut lines);
    remove_private_impls(&mut lines);
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
