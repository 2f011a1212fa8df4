//! Checks that the host's crates write to the terminal only in `host/src/terminal`. Other output
//! would bypass the code that makes untrusted text harmless and holds output back while a prompt is
//! open.

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use super::TidyFinding;
use super::rust_source::{RustSource, group_content, is_sign, token_word};

/// The only module that may print.
const WRITER: &str = "host/src/terminal/";

/// Separate processes that print a fixed line when a user starts them by hand. Nothing in it comes
/// from outside.
const CHILDREN: &[&str] =
    &["host/process/src/guardian.rs", "host/worker/src/lib.rs", "host/worker/src/serve.rs"];

/// Macros that print.
const MACROS: &[&str] = &["print", "println", "eprint", "eprintln", "dbg"];

/// Functions that return a stream of the process. After a dot, they are methods
/// (`Command::stdout`).
const STREAMS: &[&str] = &["stdout", "stderr"];

/// Types that draw on the terminal.
const DRAWERS: &[&str] = &["Term", "ProgressBar", "MultiProgress", "ProgressDrawTarget"];

/// Finds code that prints elsewhere.
pub fn check_printing(sources: &[RustSource]) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    for source in sources.iter().filter(|source| is_checked_path(&source.path)) {
        let mut found = Vec::new();
        collect_prints(source.tokens.clone(), &mut found);
        for (line, what) in found {
            let what = format!("`{what}` writes past the one place that does");
            let remedy = "print through `crate::terminal` or `crate::report`";
            findings.push(TidyFinding::error_finding(&source.path, line, what, remedy));
        }
    }
    findings
}

fn is_checked_path(path: &str) -> bool {
    let is_host = path.starts_with("host/") && path.contains("/src/");
    is_host && !path.starts_with(WRITER) && !CHILDREN.contains(&path)
}

fn collect_prints(tokens: TokenStream, found: &mut Vec<(usize, String)>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    for (at, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Group(group) => collect_prints(group.stream(), found),
            TokenTree::Ident(name) => {
                let text = name.to_string();
                let (before, after) =
                    (at.checked_sub(1).and_then(|at| tokens.get(at)), tokens.get(at + 1));
                // Checking whether a stream is a terminal writes nothing.
                let asks = token_word(tokens.get(at + 3)).is_some_and(|word| word == "is_terminal");
                let is_call = group_content(after, Delimiter::Parenthesis).is_some() && !asks;
                let is_declared = token_word(before).is_some_and(|word| word == "fn");
                let prints = MACROS.contains(&text.as_str()) && is_sign(after, '!')
                    || STREAMS.contains(&text.as_str())
                        && is_call
                        && !is_sign(before, '.')
                        && !is_declared
                    || DRAWERS.contains(&text.as_str());
                if prints {
                    found.push((name.span().start().line, text));
                }
            }
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tests::{format_findings, rust_source};

    #[track_caller]
    fn count_findings(path: &str, code: &str) -> usize {
        format_findings(&check_printing(&[rust_source(path, code)])).len()
    }

    #[test]
    fn printing_outside_the_terminal_module_is_found() {
        let code = "fn a() {\n    println!(\"a\");\n    io::stderr().write_all(b);\n}\n";
        assert_eq!(
            format_findings(&check_printing(&[rust_source("host/src/run.rs", code)])),
            [(2, "println"), (3, "stderr")].map(|(line, what)| format!(
                "host/src/run.rs:{line}: `{what}` writes past the one place that does, \
                 print through `crate::terminal` or `crate::report`"
            ))
        );
        for printing in
            ["eprint!(\"a\")", "std::io::stdout().lock()", "Term::buffered_stderr()", "stderr()"]
        {
            assert_eq!(
                count_findings("host/log/src/log.rs", &format!("fn a() {{ {printing}; }}")),
                1,
                "{printing}"
            );
        }
    }

    #[test]
    fn terminal_writer_tests_and_similar_names_are_allowed() {
        let code = "fn a() { println!(\"a\"); }";
        for free in [
            "host/src/terminal/writer.rs",
            "host/tests/binary/run.rs",
            "xtask/src/main.rs",
            CHILDREN[0],
        ] {
            assert_eq!(count_findings(free, code), 0, "{free}");
        }
        let alike = "/// println!\nfn a(stdout: u8) { command.stdout(Stdio::piped()); io::stdout().is_terminal(); let stderr = (1); print(stdout); }";
        assert_eq!(count_findings("host/src/run.rs", alike), 0);
    }
}
