//! Checks that a search for a type's name finds that type: a name is unique in its crate and occurs
//! at most three times in the workspace. Also checks that no name could mean three things.

use std::collections::BTreeMap;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use super::rust_source::{RustSource, group_content, token_word};
use super::{BEING_REPLACED, TidyFinding};

/// The word and its replacements, see `docs/terminology.md`.
const AMBIGUOUS: &str = "Environment";
const REMEDY: &str = "say which: execution environment, object environment, or environment report";

/// Names that are common in many crates, and may occur several times in one crate.
const USUAL: &[&str] = &["Error", "Result", "Config", "State"];

/// How many types in the workspace can have the same name.
const SAME_NAME_MAX: usize = 3;

/// A definition of a type or trait.
struct TypeDefinition<'a> {
    name: String,
    path: &'a str,
    line: usize,
}

impl TypeDefinition<'_> {
    fn to_finding(&self, what: String, remedy: &str) -> TidyFinding {
        TidyFinding::error_finding(self.path, self.line, what, remedy)
    }
}

/// Finds definitions of types and traits whose names are ambiguous or not unique.
pub fn check_type_names(sources: &[RustSource]) -> Vec<TidyFinding> {
    let mut all = Vec::new();
    let mut findings = Vec::new();
    for source in sources {
        let mut found = Vec::new();
        collect_definitions(source.tokens.clone(), true, &mut found);
        let definition = |(name, line)| TypeDefinition { name, path: &source.path, line };
        for definition in found.into_iter().map(definition) {
            if definition.name == AMBIGUOUS {
                let what = format!("a type is called `{AMBIGUOUS}`");
                findings.push(definition.to_finding(what, REMEDY));
            }
            all.push(definition);
        }
    }
    findings.extend(find_repeated_names(&all));
    findings
}

/// Finds names that occur twice in a crate or too often in the workspace.
fn find_repeated_names(all: &[TypeDefinition<'_>]) -> Vec<TidyFinding> {
    let mut by_name: BTreeMap<&str, Vec<(&str, &TypeDefinition<'_>)>> = BTreeMap::new();
    for definition in all.iter().filter(|definition| !USUAL.contains(&&*definition.name)) {
        let is_replaced = BEING_REPLACED.iter().any(|start| definition.path.starts_with(start));
        if let Some((package, _)) = definition.path.split_once("/src/").filter(|_| !is_replaced) {
            by_name.entry(&definition.name).or_default().push((package, definition));
        }
    }
    let remedy = "add what it is about to its name";
    let mut findings = Vec::new();
    for (name, definitions) in by_name {
        for (at, (package, definition)) in definitions.iter().enumerate() {
            if definitions.iter().take(at).any(|(earlier, _)| earlier == package) {
                let what = format!("`{package}` has another type called `{name}`");
                findings.push(definition.to_finding(what, remedy));
            } else if at >= SAME_NAME_MAX {
                let what = format!("{} types are called `{name}`", definitions.len());
                findings.push(definition.to_finding(what, remedy));
            }
        }
    }
    findings
}

/// Collects the names and lines of definitions outside of tests. An associated type is not a
/// definition, so `type` counts only directly in a module.
fn collect_definitions(tokens: TokenStream, is_module: bool, found: &mut Vec<(String, usize)>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let before = |at: usize, back: usize| at.checked_sub(back).and_then(|at| tokens.get(at));
    for (at, token) in tokens.iter().enumerate() {
        if let TokenTree::Group(group) = token {
            let is_module = token_word(before(at, 2)).as_deref() == Some("mod");
            let attribute = group_content(before(at, 3), Delimiter::Bracket);
            let is_test = attribute.is_some_and(|text| text.to_string() == "cfg (test)");
            if !(is_module && is_test) {
                collect_definitions(group.stream(), is_module, found);
            }
        }
        let defines = match token_word(Some(token)).as_deref() {
            Some("struct" | "enum" | "trait" | "union") => true,
            Some("type") => is_module,
            _ => false,
        };
        if let Some(name) = token_word(tokens.get(at + 1)).filter(|_| defines) {
            found.push((name, token.span().start().line));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tests::{format_findings, rust_source};

    #[test]
    fn bare_environment_is_refused() {
        let found = |text: &str| {
            format_findings(&check_type_names(&[rust_source("host/a/src/b.rs", text)]))
        };
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

    #[test]
    fn name_is_refused_twice_in_a_crate_and_four_times_in_the_workspace() {
        let found = |files: &[(&str, &str)]| {
            let sources: Vec<_> =
                files.iter().map(|(path, text)| rust_source(path, text)).collect();
            format_findings(&check_type_names(&sources))
        };
        let twice = [("a/src/b.rs", "enum Entry {}\n"), ("a/src/c.rs", "\ntype Entry = u8;\n")];
        let remedy = "add what it is about to its name";
        let expected = format!("a/src/c.rs:2: `a` has another type called `Entry`, {remedy}");
        assert_eq!(found(&twice), [expected]);
        let packages = ["a", "b", "c", "d"].map(|package| format!("{package}/src/lib.rs"));
        let of = |text: &'static str| packages.each_ref().map(|path| (path.as_str(), text));
        assert_eq!(found(&of("struct Entry;")[..3]), Vec::<String>::new());
        let expected = format!("d/src/lib.rs:1: 4 types are called `Entry`, {remedy}");
        assert_eq!(found(&of("struct Entry;")), [expected]);
        for fine in [
            "struct Error;",
            "impl A for B { type Entry = u8; }",
            "#[cfg(test)]\nmod tests { struct Entry; }",
        ] {
            assert_eq!(found(&of(fine)), Vec::<String>::new(), "{fine}");
        }
        let replaced = format!("{}/a.rs", BEING_REPLACED[0]);
        let fine = [("host/src/a.rs", "struct Entry;"), (&*replaced, "struct Entry;")];
        assert_eq!(found(&fine), Vec::<String>::new());
    }
}
