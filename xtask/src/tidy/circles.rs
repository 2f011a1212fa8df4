//! Top-level modules of a crate that import each other in a circle.
//!
//! A module is what stands directly below a crate's root: `src/name.rs`, or all of `src/name/`. An
//! import is a path that begins with `crate` or `super` and leads into another of them; names that
//! the root re-exports count for the module that they come from. Tests are left out: they may look
//! at everything.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use super::Finding;
use super::rust_source::{RustSource, inside, is_sign, word};
use crate::workspace::Package;

/// How many modules of a crate may stand in a circle. Smaller numbers replace larger ones; a crate
/// that is not listed has none.
#[rustfmt::skip]
const CIRCLES_MAX: &[(&str, usize)] = &[
    ("environment-docker", 5),
    ("jaato-assets", 3),
    ("jaato-config", 6),
    ("jaato-loader", 7),
    ("jaato-plugin-sdk", 11),
    ("jaato-process", 5),
    ("jaato-registry", 2),
    ("jaato-session", 14),
    ("jaato-store", 2),
    ("jaato-template", 2),
    ("tool-environment", 3),
    ("tool-interactive-shell", 7),
];

/// Finds crates with more modules in circles than the table allows, or fewer: then the table
/// follows.
pub fn check(sources: &[RustSource], packages: &[Package]) -> Vec<Finding> {
    packages
        .iter()
        .filter_map(|package| check_package(sources, package, allowed(package)))
        .collect()
}

fn allowed(package: &Package) -> usize {
    let row = CIRCLES_MAX.iter().find(|(name, _)| *name == package.name);
    row.map_or(0, |(_, count)| *count)
}

fn check_package(sources: &[RustSource], package: &Package, allowed: usize) -> Option<Finding> {
    let modules = in_circles(&imports(sources, &format!("{}/src/", package.folder)));
    if modules.len() == allowed {
        return None;
    }
    let names = modules.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let what = format!(
        "{} modules of `{}` import each other in a circle ({names}), the table says {allowed}",
        modules.len(),
        package.name
    );
    let remedy = if modules.len() > allowed {
        "move what both need to where neither needs the other"
    } else {
        "lower the number in `xtask/src/tidy/circles.rs`"
    };
    Some(Finding::error(format!("{}/src", package.folder), 0, what, remedy))
}

/// For each top-level module those that it imports from.
type Imports = BTreeMap<String, BTreeSet<String>>;

fn imports(sources: &[RustSource], folder: &str) -> Imports {
    let files: Vec<(Vec<String>, &RustSource)> = sources
        .iter()
        .filter_map(|source| Some((module_of(source.path.strip_prefix(folder)?), source)))
        .collect();
    let tops: BTreeSet<String> =
        files.iter().filter_map(|(module, _)| module.first().cloned()).collect();
    let mut exported = BTreeMap::new();
    for (_, root) in files.iter().filter(|(module, _)| module.is_empty()) {
        re_exports(root.tokens.clone(), &tops, &mut exported);
    }
    let mut imports = Imports::new();
    for (module, source) in &files {
        let Some(top) = module.first() else { continue };
        if module.last().is_some_and(|name| name == "tests" || name == "testing") {
            continue;
        }
        let mut found = BTreeSet::new();
        paths(source.tokens.clone(), module, &mut found);
        let others = found
            .into_iter()
            .filter_map(|name| {
                if tops.contains(&name) { Some(name) } else { exported.get(&name).cloned() }
            })
            .filter(|name| name != top);
        imports.entry(top.clone()).or_default().extend(others);
    }
    imports
}

/// The path of a file's module below the crate: `reload/catalog.rs` is `[reload, catalog]`.
fn module_of(file: &str) -> Vec<String> {
    let mut parts: Vec<String> =
        file.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
    if parts.last().is_some_and(|last| last == "mod" || last == "lib" || last == "main") {
        parts.pop();
    }
    parts
}

/// Collects what the root re-exports by name, and from which module: `use self::a::{B, C}`.
fn re_exports(
    tokens: TokenStream,
    tops: &BTreeSet<String>,
    exported: &mut BTreeMap<String, String>,
) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    for (at, token) in tokens.iter().enumerate() {
        if word(Some(token)).as_deref() != Some("use") {
            continue;
        }
        let item: Vec<TokenTree> = tokens[at + 1..]
            .iter()
            .take_while(|token| !is_sign(Some(token), ';'))
            .cloned()
            .collect();
        let mut words = Vec::new();
        all_words(item.into_iter().collect(), &mut words);
        let Some(top) = words.iter().find(|name| tops.contains(*name)) else { continue };
        let names = words.iter().filter(|name| *name != top);
        exported.extend(names.map(|name| (name.clone(), top.clone())));
    }
}

fn all_words(tokens: TokenStream, words: &mut Vec<String>) {
    for token in tokens {
        match token {
            TokenTree::Group(group) => all_words(group.stream(), words),
            TokenTree::Ident(name) => words.push(name.to_string()),
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
}

/// Collects the first name below the crate's root of every path that begins with `crate` or
/// `super`.
fn paths(tokens: TokenStream, module: &[String], found: &mut BTreeSet<String>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut at = 0;
    while at < tokens.len() {
        if is_test_attribute(&tokens[at..]) {
            at += skip_item(&tokens[at..]);
            continue;
        }
        match &tokens[at] {
            TokenTree::Ident(name) if name == "crate" => first_names(&tokens[at + 1..], found),
            TokenTree::Ident(name) if name == "super" && !follows_super(&tokens, at) => {
                let (ups, rest) = count_supers(&tokens[at..]);
                // Less far up is still inside the same top-level module; further up is an inline
                // module.
                if module.len() == ups {
                    first_names(rest, found);
                }
            }
            TokenTree::Group(group) => paths(group.stream(), module, found),
            TokenTree::Ident(_) | TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
        at += 1;
    }
}

fn follows_super(tokens: &[TokenTree], at: usize) -> bool {
    at >= 3
        && is_sign(tokens.get(at - 1), ':')
        && word(tokens.get(at - 3)).as_deref() == Some("super")
}

/// How many `super::` stand one behind the other, and what follows the last.
fn count_supers(tokens: &[TokenTree]) -> (usize, &[TokenTree]) {
    let (mut ups, mut rest) = (0, tokens);
    while word(rest.first()).as_deref() == Some("super") {
        ups += 1;
        if word(rest.get(3)).as_deref() != Some("super") {
            return (ups, &rest[1..]);
        }
        rest = &rest[3..];
    }
    (ups, rest)
}

/// The name behind `::`, or the first name of each path in the braces behind it.
fn first_names(rest: &[TokenTree], found: &mut BTreeSet<String>) {
    if !is_sign(rest.first(), ':') || !is_sign(rest.get(1), ':') {
        return;
    }
    found.extend(word(rest.get(2)));
    if let Some(list) = inside(rest.get(2), Delimiter::Brace) {
        let mut begins = true;
        for token in list {
            if begins {
                found.extend(word(Some(&token)));
            }
            begins = is_sign(Some(&token), ',');
        }
    }
}

/// Whether an item begins here that only tests have: `#[cfg(test)]`.
fn is_test_attribute(tokens: &[TokenTree]) -> bool {
    let attribute = inside(tokens.get(1), Delimiter::Bracket);
    is_sign(tokens.first(), '#')
        && attribute.is_some_and(|tokens| tokens.to_string().replace(' ', "") == "cfg(test)")
}

/// How many tokens the attribute and its item take: to the item's `;` or braces.
fn skip_item(tokens: &[TokenTree]) -> usize {
    let end = tokens.iter().skip(2).position(|token| {
        is_sign(Some(token), ';') || inside(Some(token), Delimiter::Brace).is_some()
    });
    end.map_or(tokens.len(), |end| end + 3)
}

/// The modules from which a way of imports leads back to themselves.
fn in_circles(imports: &Imports) -> Vec<String> {
    imports.keys().filter(|module| reaches(imports, module, module)).cloned().collect()
}

fn reaches(imports: &Imports, from: &str, to: &str) -> bool {
    let (mut open, mut seen) = (vec![from], BTreeSet::new());
    while let Some(module) = open.pop() {
        for next in imports.get(module).into_iter().flatten() {
            if next == to {
                return true;
            }
            if seen.insert(next.as_str()) {
                open.push(next);
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tests::source;

    #[track_caller]
    fn check_circles(files: &[(&str, &str)], expected: &[&str]) {
        let sources: Vec<RustSource> =
            files.iter().map(|(path, text)| source(&format!("host/a/src/{path}"), text)).collect();
        assert_eq!(in_circles(&imports(&sources, "host/a/src/")), expected);
    }

    #[test]
    fn modules_that_import_each_other_are_found_however_it_is_written() {
        check_circles(&[("a.rs", "use crate::b::B;"), ("b.rs", "use super::a::A;")], &["a", "b"]);
        check_circles(
            &[
                ("a.rs", "use crate::{c::C, b::{self, B}};"),
                ("b/mod.rs", ""),
                ("b/deep.rs", "fn f() { super::super::a::f() }"),
            ],
            &["a", "b"],
        );
        check_circles(
            &[
                ("a.rs", "use crate::b;"),
                ("b.rs", "use crate::c;"),
                ("c.rs", "use crate::a;"),
                ("d.rs", "use crate::a;"),
            ],
            &["a", "b", "c"],
        );
    }

    #[test]
    fn a_name_that_the_root_re_exports_counts_for_its_module() {
        let root = ("lib.rs", "mod a; mod b; pub use self::a::{A, f};");
        check_circles(
            &[root, ("a.rs", "use crate::b::B;"), ("b.rs", "use crate::A;")],
            &["a", "b"],
        );
        check_circles(&[root, ("a.rs", ""), ("b.rs", "use crate::A;")], &[]);
    }

    #[test]
    fn one_way_inner_ways_and_tests_are_no_circle() {
        check_circles(&[("a.rs", "use crate::b::B;"), ("b.rs", "use self::inner::I;")], &[]);
        check_circles(&[("a/mod.rs", "use self::x::X;"), ("a/x.rs", "use super::A;")], &[]);
        check_circles(
            &[
                ("a.rs", "use crate::b::B;"),
                ("b.rs", "#[cfg(test)] mod tests { use crate::a::A; }"),
            ],
            &[],
        );
        check_circles(&[("a.rs", "use crate::b::B;"), ("b/tests.rs", "use crate::a::A;")], &[]);
    }
}
