//! Every source file is part of its crate's module tree.
//!
//! A tool is a file and a `mod` line: without the line the file compiles to nothing and the tool
//! silently vanishes.

use std::collections::BTreeSet;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use super::Finding;
use super::rust_source::{RustSource, inside, is_sign, word};
use crate::workspace::Package;

/// Finds files below a member's `src` that no `mod` reaches.
pub fn check(sources: &[RustSource], packages: &[Package]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in packages {
        let folder = format!("{}/src/", package.folder);
        let roots = package.targets.iter().map(|target| target.source.as_str());
        let reached = reached(sources, roots.filter(|root| root.starts_with(&folder)));
        let inside = sources.iter().filter(|source| source.path.starts_with(&folder));
        for source in inside.filter(|source| !reached.contains(source.path.as_str())) {
            let what = format!("no `mod` line of `{}` reaches it", package.name);
            let remedy = "add one to the module above it, or delete the file";
            findings.push(Finding::error(&source.path, 0, what, remedy));
        }
    }
    findings
}

fn reached<'a>(
    sources: &'a [RustSource],
    roots: impl Iterator<Item = &'a str>,
) -> BTreeSet<&'a str> {
    let find = |path: &str| sources.iter().find(|source| source.path == path);
    let mut reached = BTreeSet::new();
    let mut open: Vec<(&RustSource, Role)> =
        roots.filter_map(find).map(|source| (source, Role::Root)).collect();
    while let Some((source, role)) = open.pop() {
        if !reached.insert(source.path.as_str()) {
            continue;
        }
        let folder = children_folder(&source.path, role);
        let mut candidates = Vec::new();
        declared(source.tokens.clone(), &source.path, &folder, &mut candidates);
        open.extend(candidates.iter().filter_map(|path| find(path)).map(|s| (s, Role::Module)));
    }
    reached
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// The file that a target begins with.
    Root,
    Module,
}

/// Where the modules that a file declares are looked for, with `/` at the end.
fn children_folder(path: &str, role: Role) -> String {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    if role == Role::Root || name == "mod.rs" {
        format!("{folder}/")
    } else {
        format!("{folder}/{}/", name.trim_end_matches(".rs"))
    }
}

/// The files in which the modules declared here may stand, those in inline modules too.
fn declared(tokens: TokenStream, path: &str, folder: &str, candidates: &mut Vec<String>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut named = None;
    for (at, token) in tokens.iter().enumerate() {
        if is_sign(Some(token), '#') {
            let attribute = inside(tokens.get(at + 1), Delimiter::Bracket);
            named = attribute.and_then(path_attribute).or(named);
        }
        if word(Some(token)).as_deref() != Some("mod") {
            continue;
        }
        let Some(name) = word(tokens.get(at + 1)) else { continue };
        if is_sign(tokens.get(at + 2), ';') {
            match named.take() {
                Some(file) => candidates.push(beside(path, &file)),
                None => {
                    candidates.push(format!("{folder}{name}.rs"));
                    candidates.push(format!("{folder}{name}/mod.rs"));
                }
            }
        } else if let Some(body) = inside(tokens.get(at + 2), Delimiter::Brace) {
            named = None;
            declared(body, path, &format!("{folder}{name}/"), candidates);
        }
    }
}

/// The file named by `path = "…"`, in `#[path]` or inside `#[cfg_attr]`.
fn path_attribute(attribute: TokenStream) -> Option<String> {
    let tokens: Vec<TokenTree> = attribute.into_iter().collect();
    tokens.iter().enumerate().find_map(|(at, token)| match token {
        TokenTree::Group(group) => path_attribute(group.stream()),
        _ if word(Some(token)).as_deref() == Some("path") && is_sign(tokens.get(at + 1), '=') => {
            let literal = tokens.get(at + 2)?.to_string();
            Some(literal.trim_matches('"').to_owned())
        }
        _ => None,
    })
}

fn beside(path: &str, file: &str) -> String {
    let mut parts: Vec<&str> = path.split('/').collect();
    parts.pop();
    for part in file.split('/') {
        match part {
            ".." => {
                parts.pop();
            }
            "." => {}
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tests::{lines, source};
    use crate::workspace::Target;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let sources: Vec<RustSource> = files
            .iter()
            .map(|(path, text)| source(&format!("plugins/tool-a/src/{path}"), text))
            .collect();
        let package = Package {
            name: "tool-a".into(),
            folder: "plugins/tool-a".into(),
            targets: vec![Target {
                kinds: vec!["cdylib".into()],
                source: "plugins/tool-a/src/lib.rs".into(),
            }],
            ..Package::default()
        };
        lines(&check(&sources, &[package]))
    }

    #[test]
    fn a_tool_file_without_its_mod_line_is_found() {
        assert_eq!(
            found(&[("lib.rs", "mod a;"), ("a.rs", ""), ("b.rs", "")]),
            ["plugins/tool-a/src/b.rs: no `mod` line of `tool-a` reaches it, \
              add one to the module above it, or delete the file"]
        );
    }

    #[test]
    fn a_mod_line_in_a_comment_or_in_a_lost_file_reaches_nothing() {
        let files = [("lib.rs", "// mod a;\n"), ("a.rs", "mod b;"), ("a/b.rs", "")];
        assert_eq!(found(&files).len(), 2);
    }

    #[test]
    fn all_ways_to_write_a_module_are_understood() {
        let files = [
            (
                "lib.rs",
                "mod a; mod b; mod c { mod d; } #[path = \"odd/e.rs\"] mod e; pub(crate) mod f;",
            ),
            ("a.rs", "#[cfg(test)] mod tests;"),
            ("a/tests.rs", ""),
            ("b/mod.rs", "mod inner;"),
            ("b/inner.rs", ""),
            ("c/d.rs", ""),
            ("odd/e.rs", ""),
            ("f.rs", ""),
        ];
        assert_eq!(found(&files), Vec::<String>::new());
    }
}
