//! Checks that only `jaato-places` creates folders in the host, because it makes them private and
//! checks who can write there.

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use super::TidyFinding;
use super::rust_source::{RustSource, group_content, is_sign, token_word};

/// The words that create a folder.
const MAKERS: &[&str] = &["DirBuilder", "create_dir", "create_dir_all", "mkdir", "mkdirat"];

/// The exceptions: the crate for this job, and the one that writes what the user asked for, with
/// the permissions of the umask.
const FREE: &[&str] = &["host/places/", "host/template/"];

/// Finds folders that other code of the host creates. Tests may create any folders.
pub fn check_folders(sources: &[RustSource]) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    for source in sources.iter().filter(|source| is_host_source(&source.path)) {
        let mut lines = Vec::new();
        collect_folder_lines(source.tokens.clone(), &mut lines);
        for line in lines {
            let what = "a folder is made";
            let remedy = "use `jaato_places::make_own_folder`, which makes it private and checks who can \
                          write there";
            findings.push(TidyFinding::error_finding(&source.path, line, what, remedy));
        }
    }
    findings
}

fn is_host_source(path: &str) -> bool {
    let is_test =
        path.contains("/tests/") || path.ends_with("/tests.rs") || path.contains("/examples/");
    path.starts_with("host/") && !is_test && !FREE.iter().any(|place| path.starts_with(place))
}

/// Collects the lines of the words that create a folder, except in modules for tests.
fn collect_folder_lines(tokens: TokenStream, lines: &mut Vec<usize>) {
    let mut is_for_tests = false;
    let mut before: Option<TokenTree> = None;
    for token in tokens {
        match &token {
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace && is_for_tests => {
                is_for_tests = false;
            }
            TokenTree::Group(group) => {
                is_for_tests |= is_sign(before.as_ref(), '#') && is_cfg_test(group.stream());
                collect_folder_lines(group.stream(), lines);
            }
            TokenTree::Ident(name) if MAKERS.contains(&name.to_string().as_str()) => {
                lines.push(name.span().start().line);
            }
            TokenTree::Punct(punct) if punct.as_char() == ';' => is_for_tests = false,
            TokenTree::Ident(_) | TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
        before = Some(token);
    }
}

/// Returns true if an attribute is `cfg(test)`.
fn is_cfg_test(attribute: TokenStream) -> bool {
    let tokens: Vec<TokenTree> = attribute.into_iter().collect();
    let condition = group_content(tokens.get(1), Delimiter::Parenthesis);
    token_word(tokens.first()).is_some_and(|word| word == "cfg")
        && condition.is_some_and(|condition| condition.to_string() == "test")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tests::{format_findings, rust_source};

    const CODE: &str = "use std::fs::DirBuilder;\n\
        fn a() {\n    std::fs::create_dir_all(\"a\").ok();\n}\n\
        #[cfg(test)]\nmod tests {\n    fn b() { std::fs::create_dir(\"b\").ok(); }\n}\n";

    fn finding_lines(path: &str) -> Vec<String> {
        format_findings(&check_folders(&[rust_source(path, CODE)]))
    }

    #[test]
    fn folder_created_outside_jaato_places_is_found_except_in_tests() {
        let expected = [1, 3].map(|line| {
            format!(
                "host/log/src/log.rs:{line}: a folder is made, use `jaato_places::make_own_folder`, \
                 which makes it private and checks who can write there"
            )
        });
        assert_eq!(finding_lines("host/log/src/log.rs"), expected);
    }

    #[test]
    fn places_templates_plugins_and_tests_may_create_folders() {
        for path in [
            "host/places/src/folder.rs",
            "host/template/src/lib.rs",
            "host/install/src/tests.rs",
            "host/tests/binary/run.rs",
            "plugins/tool-cli/src/lib.rs",
        ] {
            assert_eq!(finding_lines(path), Vec::<String>::new(), "{path}");
        }
    }

    #[test]
    fn code_after_a_test_module_is_checked() {
        let text = "#[cfg(test)]\nmod tests;\nfn a() { create_dir(\"a\") }\n";
        assert_eq!(check_folders(&[rust_source("host/a.rs", text)]).len(), 1);
    }
}
