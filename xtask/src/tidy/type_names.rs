//! Checks that no type has an ambiguous name that could mean three things.

use proc_macro2::{TokenStream, TokenTree};

use super::Finding;
use super::rust_source::{RustSource, word};

/// The word and its replacements, see `docs/terminology.md`.
const AMBIGUOUS: &str = "Environment";
const REMEDY: &str = "say which: execution environment, object environment, or environment report";

/// Finds definitions of a type or trait with an ambiguous name.
pub fn check(sources: &[RustSource]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in sources {
        let mut lines = Vec::new();
        definitions(source.tokens.clone(), &mut lines);
        for line in lines {
            let what = format!("a type is called `{AMBIGUOUS}`");
            findings.push(Finding::error(&source.path, line, what, REMEDY));
        }
    }
    findings
}

fn definitions(tokens: TokenStream, lines: &mut Vec<usize>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    for (at, token) in tokens.iter().enumerate() {
        if let TokenTree::Group(group) = token {
            definitions(group.stream(), lines);
        }
        let defines = matches!(word(Some(token)).as_deref(), Some("struct" | "enum" | "trait"));
        if defines && word(tokens.get(at + 1)).as_deref() == Some(AMBIGUOUS) {
            lines.push(token.span().start().line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tests::{lines, source};

    #[test]
    fn a_bare_environment_is_found_and_a_said_one_is_not() {
        let found = |text: &str| lines(&check(&[source("host/a/src/b.rs", text)]));
        assert_eq!(
            found("mod a {\n    pub struct Environment;\n}\n"),
            ["host/a/src/b.rs:2: a type is called `Environment`, \
              say which: execution environment, object environment, or environment report"]
        );
        assert_eq!(found("trait Environment {}").len(), 1);
        assert_eq!(
            found("struct ObjectEnvironment; // struct Environment\n"),
            Vec::<String>::new()
        );
    }
}
