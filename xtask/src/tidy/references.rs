//! Checks that sources and tests that documents name exist.
//!
//! A reference is code in a text: a path below the root that ends in `.rs`, optionally with `::`
//! and a function of that file. Further functions of the same file may follow in the same line,
//! each as separate code. A document that names a missing test makes a promise that nothing checks.

use super::{TextFile, TidyFinding};

/// Top-level folders. A path that starts with one of them is a path in this checkout.
const ROOTS: &[&str] = &["host/", "plugin-api/", "plugins/", "xtask/", "docs/"];

/// Finds references to missing files and functions.
pub fn check_references(files: &[TextFile]) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    // The changelog describes the past and is not updated.
    let is_read = |file: &&TextFile| file.path.ends_with(".md") && file.path != "CHANGELOG.md";
    for document in files.iter().filter(is_read) {
        for (at, line) in document.text.lines().enumerate() {
            for what in find_broken_references(line, files) {
                let remedy = "name what is there, or take the reference out";
                findings.push(TidyFinding::error_finding(&document.path, at + 1, what, remedy));
            }
        }
    }
    findings
}

fn find_broken_references(line: &str, files: &[TextFile]) -> Vec<String> {
    let (mut found, mut named) = (Vec::new(), None);
    for code in line.split('`').skip(1).step_by(2) {
        let (path, function) = code.split_once("::").unwrap_or((code, ""));
        if path.ends_with(".rs") && ROOTS.iter().any(|root| path.starts_with(root)) {
            named = files.iter().find(|file| file.path == path);
            match named {
                None => found.push(format!("there is no `{path}`")),
                Some(file) if !function.is_empty() && !has_function(file, function) => {
                    found.push(format!("`{path}` has no function `{function}`"));
                }
                Some(_) => {}
            }
        } else if is_test_name(code)
            && let Some(file) = named
            && !has_function(file, code)
        {
            found.push(format!("`{}` has no function `{code}`", file.path));
        }
    }
    found
}

/// Returns true for the name of a test: at least four words of lower-case letters.
fn is_test_name(code: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    code.chars().all(is_letter) && code.matches('_').count() >= 3
}

fn has_function(file: &TextFile, name: &str) -> bool {
    file.text.match_indices("fn ").any(|(at, found)| {
        let rest = file.text[at + found.len()..].strip_prefix(name);
        rest.is_some_and(|rest| rest.starts_with(['(', '<']))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tests::{format_findings, text_file};

    #[track_caller]
    fn check_line(line: &str, expected: &[&str]) {
        let source = text_file(
            "host/a/src/b.rs",
            "#[test]\nfn one_is_not_two_here() {}\nfn generic<T>() {}\n",
        );
        let document = text_file("docs/architecture.md", line);
        assert_eq!(format_findings(&check_references(&[source, document])), expected);
    }

    #[test]
    fn reference_to_an_existing_name_is_accepted() {
        check_line(
            "| x | `host/a/src/b.rs::one_is_not_two_here`, `host/a/src/b.rs::generic` |",
            &[],
        );
        check_line("`a_word_of_ours_here` before it, `host/a/src/b.rs`, `session.rs`, `word`", &[]);
    }

    #[test]
    fn references_to_missing_files_and_functions_are_found() {
        check_line(
            "| x | `host/a/src/c.rs` | `host/a/src/b.rs::two`, `two_is_not_one_here` |",
            &[
                "docs/architecture.md:1: there is no `host/a/src/c.rs`, \
                 name what is there, or take the reference out",
                "docs/architecture.md:1: `host/a/src/b.rs` has no function `two`, \
                 name what is there, or take the reference out",
                "docs/architecture.md:1: `host/a/src/b.rs` has no function `two_is_not_one_here`, \
                 name what is there, or take the reference out",
            ],
        );
    }

    #[test]
    fn prefix_of_a_function_name_is_refused_and_the_changelog_is_not_checked() {
        check_line(
            "`host/a/src/b.rs::one_is_not`",
            &["docs/architecture.md:1: `host/a/src/b.rs` has no function `one_is_not`, \
             name what is there, or take the reference out"],
        );
        let changelog = text_file("CHANGELOG.md", "`host/gone.rs::at_that_time`");
        assert_eq!(check_references(&[changelog]), []);
    }
}
