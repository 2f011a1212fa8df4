//! Checks for text that is not allowed anywhere: promises without an issue, and paths of one
//! machine.

use super::{TextFile, TidyFinding};

// Split into parts, so that this file does not violate its own rules.
const PROMISES: &[&str] = &[concat!("TO", "DO"), concat!("FIX", "ME"), concat!("X", "XX")];

/// Paths that exist only on the machines of the developers.
const MACHINE_PATHS: &[&str] = &[
    concat!("/wo", "rk/"),
    concat!("/ro", "ot/"),
    concat!(".lib", "rary/"),
    concat!("../sh", "ared"),
    concat!("/tmp/te", "am"),
];

/// Finds both kinds of text, with their lines.
pub fn check_wording(files: &[TextFile]) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    for file in files {
        for (at, line) in file.text.lines().enumerate() {
            for promise in PROMISES.iter().filter(|promise| is_unnumbered_mark(line, promise)) {
                let what = format!("a `{promise}` without an issue");
                let remedy = format!("do it, or write `{promise}(#12)` with the issue's number");
                findings.push(TidyFinding::error_finding(&file.path, at + 1, what, remedy));
            }
            for path in MACHINE_PATHS.iter().filter(|path| is_path_mention(line, path)) {
                let what = format!("`{path}` is a path of one machine");
                findings.push(TidyFinding::error_finding(
                    &file.path,
                    at + 1,
                    what,
                    "name no such place",
                ));
            }
        }
    }
    findings
}

/// Returns true if the mark is a separate word without an issue number after it.
fn is_unnumbered_mark(line: &str, mark: &str) -> bool {
    part_positions(line, mark).any(|at| {
        let (before, after) = (&line[..at], &line[at + mark.len()..]);
        let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
        !before.ends_with(is_part) && !after.starts_with(is_part) && !has_issue_number(after)
    })
}

fn has_issue_number(after: &str) -> bool {
    let digits = after.strip_prefix("(#").and_then(|rest| rest.split_once(')'));
    digits
        .is_some_and(|(number, _)| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
}

/// Returns true if the path starts here, and is not the end of a longer path or an address.
fn is_path_mention(line: &str, path: &str) -> bool {
    part_positions(line, path)
        .any(|at| !line[..at].ends_with(|c: char| c.is_alphanumeric() || "_.-)}".contains(c)))
}

fn part_positions<'a>(line: &'a str, part: &'a str) -> impl Iterator<Item = usize> + 'a {
    line.match_indices(part).map(|(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tests::{format_findings, text_file};

    fn finding_lines(text: &str) -> Vec<String> {
        format_findings(&check_wording(&[text_file("docs/a.md", text)]))
    }

    #[test]
    fn todo_mark_needs_an_issue_number() {
        for mark in PROMISES {
            assert_eq!(finding_lines(&format!("fine\n// {mark}: later")).len(), 1, "{mark}");
            assert_eq!(finding_lines(&format!("// {mark}(#): later")).len(), 1, "{mark}");
            assert_eq!(
                finding_lines(&format!("// {mark}(#12): later")),
                Vec::<String>::new(),
                "{mark}"
            );
            assert_eq!(
                finding_lines(&format!("{mark}S and my_{mark}")),
                Vec::<String>::new(),
                "{mark}"
            );
        }
    }

    #[test]
    fn paths_of_one_machine_are_found_and_longer_paths_are_not() {
        for path in MACHINE_PATHS {
            let found = finding_lines(&format!("fine\nsee `{path}`"));
            assert_eq!(found.len(), 1, "{path}");
            assert!(found[0].starts_with("docs/a.md:2: "), "{found:?}");
        }
        let fine =
            format!("~/home{0} https://a.org{0} error{1}", MACHINE_PATHS[0], MACHINE_PATHS[2]);
        assert_eq!(finding_lines(&fine), Vec::<String>::new());
    }
}
