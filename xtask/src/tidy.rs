//! `tidy`: checks the project's own rules that no compiler checks.
//!
//! Each rule is a pure function from the gathered data to findings. This module only gathers the
//! data, calls the rules in order, and prints. Each rule needs a test in which it fails.

mod dependencies;
mod folders;
mod layout;
mod phrases;
mod printing;
mod references;
mod rust_source;
mod type_names;
mod unsafe_places;
mod wording;

use std::ffi::OsString;
use std::fmt;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};

use self::rust_source::RustSource;
use crate::child;
use crate::workspace::CargoWorkspace;

/// Prefixes of paths that a terminal program will replace. Their language is not checked.
const BEING_REPLACED: &[&str] =
    &["host/src/ask", "host/src/chat", "host/src/lines", "host/src/terminal", "host/src/view"];

/// A violation of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TidyFinding {
    /// The file or folder below the root, with `/`.
    path: String,
    /// The line in the file, from 1, or 0 for the whole file.
    line: usize,
    what: String,
    /// How to fix it.
    remedy: String,
    weight: FindingSeverity,
}

/// Whether a finding fails the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FindingSeverity {
    Error,
    Warning,
}

impl TidyFinding {
    fn error_finding(
        path: impl Into<String>,
        line: usize,
        what: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        let (path, what, remedy) = (path.into(), what.into(), remedy.into());
        Self { path, line, what, remedy, weight: FindingSeverity::Error }
    }
}

impl fmt::Display for TidyFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.weight == FindingSeverity::Warning {
            f.write_str("warning: ")?;
        }
        f.write_str(&self.path)?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
        }
        write!(f, ": {}, {}", self.what, self.remedy)
    }
}

/// A text file of the checkout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextFile {
    /// The path below the root, with `/`.
    pub path: String,
    pub text: String,
}

/// Runs the chore.
pub fn run_tidy(words: Vec<OsString>) -> Result<ExitCode> {
    if let Some(argument) = lexopt::Parser::from_args(words).next()? {
        return Err(argument.unexpected().into());
    }
    check_workspace(&CargoWorkspace::load()?)?;
    Ok(ExitCode::SUCCESS)
}

/// Applies all rules, prints the findings, and fails if there is an error.
pub fn check_workspace(workspace: &CargoWorkspace) -> Result<()> {
    let files = text_files(&workspace.root)?;
    let mut findings = find_violations(workspace, &files);
    findings.sort_by(|a, b| (&a.path, a.line).cmp(&(&b.path, b.line)));
    for finding in &findings {
        println!("{finding}");
    }
    let errors = findings.iter().filter(|finding| finding.weight == FindingSeverity::Error).count();
    if errors > 0 {
        bail!("tidy found {errors} violations");
    }
    Ok(())
}

fn find_violations(workspace: &CargoWorkspace, files: &[TextFile]) -> Vec<TidyFinding> {
    let (sources, mut findings) = rust_sources(files);
    findings.extend(dependencies::check_dependencies(&workspace.packages));
    findings.extend(dependencies::find_unused_rows(&workspace.packages));
    findings.extend(layout::check_layout(files));
    findings.extend(phrases::check_phrases(files));
    findings.extend(wording::check_wording(files));
    findings.extend(printing::check_printing(&sources));
    findings.extend(folders::check_folders(&sources));
    findings.extend(unsafe_places::check_unsafe_places(&sources, &workspace.packages));
    findings.extend(type_names::check_type_names(&sources));
    findings.extend(references::check_references(files));
    findings
}

fn rust_sources(files: &[TextFile]) -> (Vec<RustSource>, Vec<TidyFinding>) {
    let (mut sources, mut findings) = (Vec::new(), Vec::new());
    for file in files.iter().filter(|file| file.path.ends_with(".rs")) {
        match RustSource::parse(file) {
            Ok(source) => sources.push(source),
            Err(finding) => findings.push(finding),
        }
    }
    (sources, findings)
}

/// Returns the files that git tracks or would add, so that violations are found before the commit.
fn text_files(root: &Path) -> Result<Vec<TextFile>> {
    let mut git = std::process::Command::new("git");
    git.current_dir(root).args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
    let list = child::command_stdout(&mut git).context("tidy needs the files that git knows")?;
    let mut files = Vec::new();
    for path in list.split('\0').filter(|path| !path.is_empty()) {
        // A file may be deleted but not yet committed as deleted.
        let Ok(bytes) = std::fs::read(root.join(path)) else { continue };
        if let Ok(text) = String::from_utf8(bytes) {
            files.push(TextFile { path: path.to_owned(), text });
        }
    }
    // An unmerged file is listed more than once.
    files.dedup_by(|a, b| a.path == b.path);
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a file for a rule's test.
    pub fn text_file(path: &str, text: &str) -> TextFile {
        TextFile { path: path.to_owned(), text: text.to_owned() }
    }

    /// Returns a parsed source for a rule's test.
    pub fn rust_source(path: &str, text: &str) -> RustSource {
        RustSource::parse(&text_file(path, text)).unwrap()
    }

    /// Formats findings as users see them.
    pub fn format_findings(findings: &[TidyFinding]) -> Vec<String> {
        findings.iter().map(TidyFinding::to_string).collect()
    }

    #[test]
    fn a_finding_names_file_line_fault_and_remedy() {
        let mut finding = TidyFinding::error_finding("a/b.rs", 7, "it is wrong", "mend it");
        assert_eq!(finding.to_string(), "a/b.rs:7: it is wrong, mend it");
        finding.weight = FindingSeverity::Warning;
        finding.line = 0;
        assert_eq!(finding.to_string(), "warning: a/b.rs: it is wrong, mend it");
    }

    #[test]
    fn a_file_that_is_not_rust_is_a_finding_and_the_others_are_still_read() {
        let files = [
            text_file("a.rs", "fn (\n\"open"),
            text_file("b.rs", "fn b() {}"),
            text_file("c.md", "("),
        ];
        let (sources, findings) = rust_sources(&files);
        assert_eq!(sources.len(), 1);
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].path, "a.rs");
    }
}
