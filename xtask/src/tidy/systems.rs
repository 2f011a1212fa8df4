//! Code that only some systems compile stands in its crate's module `platform`. Elsewhere a branch
//! is written with `cfg!(…)`, so that every compiler checks it.

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use super::Finding;
use super::rust_source::{RustSource, inside, is_sign, word};

/// What tells systems apart.
const SYSTEMS: &[&str] =
    &["target_family", "target_os", "target_vendor", "unix", "windows", "linux", "macos"];

/// Beside `platform`: where it is refused to compile at all, and which section a manifest goes
/// into.
const FREE: &[&str] = &[
    "plugin-api/types/src/lib.rs",
    "plugin-api/sdk/src/export.rs",
    "plugin-api/testkit/fixtures/",
];

/// Finds `#[cfg(…)]` of a system in the wrong place.
pub fn check(sources: &[RustSource]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in sources.iter().filter(|source| !is_free(&source.path)) {
        let mut lines = Vec::new();
        collect(source.tokens.clone(), &mut lines);
        for line in lines {
            let what = "only some systems compile this";
            let remedy = "move it to the crate's `platform.rs`, or branch with `cfg!`";
            findings.push(Finding::error(&source.path, line, what, remedy));
        }
    }
    findings
}

fn is_free(path: &str) -> bool {
    let is_platform = path.ends_with("/platform.rs") || path.contains("/platform/");
    is_platform || path.contains("/tests/") || FREE.iter().any(|place| path.starts_with(place))
}

/// The lines of attributes that name a system.
fn collect(tokens: TokenStream, lines: &mut Vec<usize>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    for (at, token) in tokens.iter().enumerate() {
        let TokenTree::Group(group) = token else { continue };
        let before = at.checked_sub(1).and_then(|at| tokens.get(at));
        let is_attribute = group.delimiter() == Delimiter::Bracket
            && (is_sign(before, '#') || is_sign(before, '!'));
        if is_attribute && names_a_system(group.stream()) {
            lines.push(group.span_open().start().line);
        }
        collect(group.stream(), lines);
    }
}

fn names_a_system(attribute: TokenStream) -> bool {
    let tokens: Vec<TokenTree> = attribute.into_iter().collect();
    let is_condition = word(tokens.first()).is_some_and(|word| word == "cfg" || word == "cfg_attr");
    let condition = inside(tokens.get(1), Delimiter::Parenthesis);
    is_condition && condition.is_some_and(holds_a_system)
}

fn holds_a_system(tokens: TokenStream) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Group(group) => holds_a_system(group.stream()),
        TokenTree::Ident(word) => SYSTEMS.contains(&word.to_string().as_str()),
        TokenTree::Punct(_) | TokenTree::Literal(_) => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tests::{lines, source};

    #[track_caller]
    fn found(path: &str, code: &str) -> usize {
        lines(&check(&[source(path, code)])).len()
    }

    #[test]
    fn what_only_some_systems_compile_is_found_outside_of_platform() {
        let code = "fn a() {}\n#[cfg(unix)]\nfn b() {}\nmod c {\n    #[cfg(all(test, not(target_os = \"linux\")))]\n    fn d() {}\n}\n";
        let found_lines = lines(&check(&[source("host/log/src/file.rs", code)]));
        assert_eq!(
            found_lines,
            [2, 5].map(|line| format!(
                "host/log/src/file.rs:{line}: only some systems compile this, \
                 move it to the crate's `platform.rs`, or branch with `cfg!`"
            ))
        );
        for free in [
            "host/log/src/platform.rs",
            "host/log/src/platform/linux.rs",
            "host/log/tests/file.rs",
            "plugin-api/types/src/lib.rs",
        ] {
            assert_eq!(found(free, code), 0, "{free}");
        }
    }

    #[test]
    fn branches_that_every_compiler_checks_are_none() {
        let code = "#[cfg(test)]\nfn a(b: &[u8]) { if cfg!(target_os = \"linux\") { b.windows(2); } }\n\
                    use std::os::unix::fs;\n";
        assert_eq!(found("host/log/src/file.rs", code), 0);
        assert_eq!(found("a/src/b.rs", "#![cfg_attr(windows, allow(dead_code))]\n"), 1);
    }
}
