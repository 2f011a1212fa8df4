//! What holds for the boundary alone: who names its crates, and how its traits may grow.

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use super::Finding;
use super::rust_source::{RustSource, inside, is_sign, word};

/// Crates that are hidden behind the boundary, as code names them.
const HIDDEN: &[&str] = &["abi_stable", "async_ffi"];

/// Where they may be named: the boundary and its tests, the sdk and the testkit that fill it with
/// life, the loader.
const PLACES: &[&str] = &[
    "plugin-api/src/abi.rs",
    "plugin-api/src/abi/",
    "plugin-api/tests/",
    "plugin-api/sdk/",
    "plugin-api/testkit/",
    "host/loader/",
];

/// The boundary's own files.
const BOUNDARY: &[&str] = &["plugin-api/src/abi.rs", "plugin-api/src/abi/"];

/// Finds hidden crates in the open, and traits that would break old plugins as they grow.
pub fn check(sources: &[RustSource]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in sources {
        if !lies_in(&source.path, PLACES) {
            for (line, name) in source.lines_with(HIDDEN) {
                let what = format!("`{name}` is named outside the boundary");
                let remedy = "use what `jaato_plugin_api` or the sdk gives instead";
                findings.push(Finding::error(&source.path, line, what, remedy));
            }
        }
        if lies_in(&source.path, BOUNDARY) {
            check_traits(&source.path, &source.tokens, &mut findings);
        }
    }
    findings
}

fn lies_in(path: &str, places: &[&str]) -> bool {
    places.iter().any(
        |place| {
            if place.ends_with('/') { path.starts_with(place) } else { path == *place }
        },
    )
}

/// Looks at each `#[sabi_trait] trait`, in modules too.
fn check_traits(path: &str, tokens: &TokenStream, findings: &mut Vec<Finding>) {
    let tokens: Vec<TokenTree> = tokens.clone().into_iter().collect();
    let mut is_boundary = false;
    for (at, token) in tokens.iter().enumerate() {
        if is_sign(Some(token), '#') {
            is_boundary |= inside(tokens.get(at + 1), Delimiter::Bracket)
                .is_some_and(|attribute| has_word(attribute, "sabi_trait"));
        }
        if let Some(body) = inside(Some(token), Delimiter::Brace) {
            // A module, a function or an implementation: traits may stand inside.
            check_traits(path, &body, findings);
            is_boundary = false;
        }
        if is_boundary && word(Some(token)).as_deref() == Some("trait") {
            let name = word(tokens.get(at + 1)).unwrap_or_default();
            let body = tokens[at..].iter().find_map(|t| inside(Some(t), Delimiter::Brace));
            let line = token.span().start().line;
            check_trait(path, line, &name, body.unwrap_or_default(), findings);
        }
    }
}

fn check_trait(
    path: &str,
    line: usize,
    name: &str,
    body: TokenStream,
    findings: &mut Vec<Finding>,
) {
    let methods = methods(body);
    let Some(frozen) = methods.iter().position(|method| method.is_last_of_prefix) else {
        let what = format!("the boundary trait `{name}` has no `#[sabi(last_prefix_field)]`");
        let remedy = "mark the last method that the first release has, else it cannot grow";
        findings.push(Finding::error(path, line, what, remedy));
        return;
    };
    for method in methods[frozen + 1..].iter().filter(|method| !method.has_body) {
        let what = format!("`{name}::{}` was appended without a default body", method.name);
        let remedy = "give it one that answers `not supported`: an old plugin has no such method";
        findings.push(Finding::error(path, method.line, what, remedy));
    }
}

struct Method {
    name: String,
    line: usize,
    is_last_of_prefix: bool,
    has_body: bool,
}

/// The methods of a trait's body: an item ends with `;` or with its own braces.
fn methods(body: TokenStream) -> Vec<Method> {
    let mut methods = Vec::new();
    let mut item: Vec<TokenTree> = Vec::new();
    for token in body {
        let has_body = inside(Some(&token), Delimiter::Brace).is_some();
        if has_body || is_sign(Some(&token), ';') {
            methods.extend(method(&item, has_body));
            item.clear();
        } else {
            item.push(token);
        }
    }
    methods
}

fn method(item: &[TokenTree], has_body: bool) -> Option<Method> {
    let at = item.iter().position(|token| word(Some(token)).as_deref() == Some("fn"))?;
    let is_last_of_prefix = item[..at].iter().any(|token| {
        inside(Some(token), Delimiter::Bracket)
            .is_some_and(|attribute| has_word(attribute, "last_prefix_field"))
    });
    let name = word(item.get(at + 1))?;
    Some(Method { name, line: item[at].span().start().line, is_last_of_prefix, has_body })
}

fn has_word(tokens: TokenStream, wanted: &str) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Group(group) => has_word(group.stream(), wanted),
        token => word(Some(&token)).as_deref() == Some(wanted),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tests::{lines, source};

    fn found(path: &str, text: &str) -> Vec<String> {
        lines(&check(&[source(path, text)]))
    }

    #[test]
    fn plugins_and_the_host_do_not_see_the_hidden_crates() {
        let text = "use abi_stable::std_types::RVec;\nfn a() -> async_ffi::FfiFuture<()> {}\n";
        let found_here = found("plugins/tool-a/src/lib.rs", text);
        assert_eq!(found_here.len(), 2);
        assert!(found_here[0].starts_with("plugins/tool-a/src/lib.rs:1: `abi_stable` is named"));
        assert_eq!(found("host/loader/src/open.rs", text), Vec::<String>::new());
        assert_eq!(found("plugin-api/src/abi.rs", text), Vec::<String>::new());
        assert_eq!(found("plugin-api/src/abi/frame.rs", text), Vec::<String>::new());
        assert_eq!(found("plugin-api/src/lib.rs", text).len(), 2);
    }

    #[test]
    fn a_method_appended_without_a_body_is_found() {
        let text = "#[sabi_trait]\npub trait ToolAbi: Send {\n    #[sabi(last_prefix_field)]\n    \
                    fn call(&self, n: [u8; 2]) -> Answer;\n    fn later(&self) -> u8 { 1 }\n    \
                    fn latest(&self) -> u8;\n}\n";
        assert_eq!(
            found("plugin-api/src/abi.rs", text),
            ["plugin-api/src/abi.rs:6: `ToolAbi::latest` was appended without a default body, \
              give it one that answers `not supported`: an old plugin has no such method"]
        );
    }

    #[test]
    fn a_trait_in_a_module_that_cannot_grow_is_found() {
        let text = "mod traits {\n    #[abi_stable::sabi_trait]\n    pub trait Gc { fn plan(&self); }\n}\n";
        let found = found("plugin-api/src/abi.rs", text);
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("plugin-api/src/abi.rs:3: the boundary trait `Gc`"));
    }

    #[test]
    fn other_traits_are_free() {
        let text = "#[sabi_trait] trait A { #[sabi(last_prefix_field)] fn a(&self); }\n\
                    trait B { fn b(&self); }\n";
        assert_eq!(found("plugin-api/src/abi.rs", text), Vec::<String>::new());
    }
}
