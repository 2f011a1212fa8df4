//! Checks the place, the name, the length and the first line of files.

use std::collections::BTreeSet;

use super::{FindingSeverity, TextFile, TidyFinding};

/// The allowed entries in the top folder, besides names that start with a dot.
const TOP: &[&str] = &[
    "AGENTS.md",
    "CHANGELOG.md",
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "README.md",
    "docs",
    "host",
    "plugin-api",
    "plugins",
    "rust-toolchain.toml",
    "xtask",
];

/// Names that do not describe a purpose, so that a reader must open the file to learn it.
const EMPTY_NAMES: &[&str] =
    &["common", "helper", "helpers", "manager", "managers", "misc", "util", "utils"];

/// A file of this many lines has more than one purpose, or soon will.
const LINES_WARN: usize = 400;

/// The maximum number of lines of a file.
const LINES_MAX: usize = 800;

/// The maximum number of columns of a comment's line. `rustfmt` uses the same limit for code.
const COLUMNS_MAX: usize = 100;

/// Finds files with a wrong place, a bad name, too many lines, or a missing first line.
pub fn check_layout(files: &[TextFile]) -> Vec<TidyFinding> {
    let mut findings = check_top_level(files);
    findings.extend(check_file_names(files));
    for file in files.iter().filter(|file| file.path.ends_with(".rs")) {
        findings.extend(check_length(file));
        findings.extend(check_first_line(file));
        findings.extend(check_columns(file));
    }
    findings
}

fn check_top_level(files: &[TextFile]) -> Vec<TidyFinding> {
    let tops: BTreeSet<&str> =
        files.iter().filter_map(|file| file.path.split('/').next()).collect();
    tops.into_iter()
        .filter(|top| !top.starts_with('.') && !TOP.contains(top))
        .map(|top| {
            let what = "it is not for the top level";
            TidyFinding::error_finding(
                top,
                0,
                what,
                "put it into the folder whose job it is part of",
            )
        })
        .collect()
}

fn check_file_names(files: &[TextFile]) -> Vec<TidyFinding> {
    let mut seen = BTreeSet::new();
    let mut findings = Vec::new();
    for file in files {
        let mut path = String::new();
        for part in file.path.split('/') {
            path.push_str(part);
            let stem = part.split('.').next().unwrap_or(part);
            if EMPTY_NAMES.contains(&stem) && seen.insert(path.clone()) {
                let what = format!("the name `{stem}` does not tell the job");
                findings.push(TidyFinding::error_finding(
                    &path,
                    0,
                    what,
                    "name it for what it does",
                ));
            }
            path.push('/');
        }
    }
    findings
}

fn check_length(file: &TextFile) -> Option<TidyFinding> {
    let count = file.text.lines().count();
    let what = format!("it has {count} lines");
    if count > LINES_MAX {
        let remedy = format!("split it by its jobs ({LINES_MAX} lines at most)");
        return Some(TidyFinding::error_finding(&file.path, 0, what, remedy));
    }
    (count > LINES_WARN).then(|| TidyFinding {
        weight: FindingSeverity::Warning,
        ..TidyFinding::error_finding(&file.path, 0, what, "think of splitting it")
    })
}

/// Checks that comments keep to the columns of the code.
fn check_columns(file: &TextFile) -> Vec<TidyFinding> {
    let lines = file.text.lines().enumerate();
    lines
        .filter(|(_, line)| line.trim_start().starts_with("//"))
        .filter_map(|(at, line)| {
            let count = line.chars().count();
            let what = format!("the comment has {count} columns");
            let remedy = format!("break it ({COLUMNS_MAX} columns at most)");
            (count > COLUMNS_MAX)
                .then(|| TidyFinding::error_finding(&file.path, at + 1, what, remedy))
        })
        .collect()
}

/// Checks that the first line describes the file. Only attributes of the whole file may precede it.
fn check_first_line(file: &TextFile) -> Option<TidyFinding> {
    let first = file.text.lines().find(|line| !line.trim().is_empty() && !line.starts_with("#!["));
    if first.is_some_and(|line| line.starts_with("//! ")) {
        return None;
    }
    let remedy = "begin it with one line `//! …`";
    Some(TidyFinding::error_finding(&file.path, 1, "it does not say what it is for", remedy))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tests::{format_findings, text_file};

    fn finding_lines(path: &str, text: &str) -> Vec<String> {
        format_findings(&check_layout(&[text_file(path, text)]))
    }

    #[test]
    fn unknown_top_level_file_is_refused() {
        assert_eq!(finding_lines(".github/a.yml", ""), Vec::<String>::new());
        assert_eq!(finding_lines("host/src/main.rs", "//! A.\n"), Vec::<String>::new());
        assert_eq!(
            finding_lines("scripts/a.sh", ""),
            ["scripts: it is not for the top level, \
              put it into the folder whose job it is part of"]
        );
    }

    #[test]
    fn meaningless_names_of_files_and_folders_are_found_once() {
        let files = [
            text_file("host/src/utils.rs", "//! A.\n"),
            text_file("host/tests/common/mod.rs", "//! A.\n"),
            text_file("host/tests/common/b.rs", "//! A.\n"),
            text_file("host/src/commons.rs", "//! A.\n"),
        ];
        let found = format_findings(&check_layout(&files));
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].starts_with("host/src/utils.rs: the name `utils`"));
        assert!(found[1].starts_with("host/tests/common: the name `common`"));
    }

    #[test]
    fn long_files_are_warned_of_and_very_long_ones_refused() {
        let text = |count: usize| format!("//! A.\n{}", "a\n".repeat(count - 1));
        assert_eq!(finding_lines("host/a.rs", &text(LINES_WARN)), Vec::<String>::new());
        let warned = finding_lines("host/a.rs", &text(LINES_WARN + 1));
        assert_eq!(warned, ["warning: host/a.rs: it has 401 lines, think of splitting it"]);
        assert!(finding_lines("host/a.rs", &text(LINES_MAX))[0].starts_with("warning: "));
        let refused = finding_lines("host/a.rs", &text(LINES_MAX + 1));
        assert_eq!(
            refused,
            ["host/a.rs: it has 801 lines, split it by its jobs (800 lines at most)"]
        );
    }

    #[test]
    fn source_file_must_begin_with_a_doc_line() {
        for bad in ["fn a() {}\n", "", "//!\n", "// A.\n//! A.\n"] {
            assert_eq!(finding_lines("host/a.rs", bad).len(), 1, "{bad:?}");
        }
        for good in ["//! A.\n", "#![allow(clippy::unwrap_used)]\n//! A.\n"] {
            assert_eq!(finding_lines("host/a.rs", good), Vec::<String>::new(), "{good:?}");
        }
        assert_eq!(finding_lines("docs/a.md", "text"), Vec::<String>::new());
    }

    #[test]
    fn overlong_comment_line_is_found() {
        let text = |count: usize| format!("//! A.\n    // {}\n", "é".repeat(count - 7));
        assert_eq!(finding_lines("host/a.rs", &text(COLUMNS_MAX)), Vec::<String>::new());
        assert_eq!(
            finding_lines("host/a.rs", &text(COLUMNS_MAX + 1)),
            ["host/a.rs:2: the comment has 101 columns, break it (100 columns at most)"]
        );
    }
}
