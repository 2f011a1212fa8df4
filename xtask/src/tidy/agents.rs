//! What `AGENTS.md` tells agents is true: its chores, paths and variables exist.

use super::{Finding, TextFile};

const FILE: &str = "AGENTS.md";

/// Where the table of chores stands.
const CHORES: &str = "xtask/src/chores.rs";

/// What it must speak of.
const SECTIONS: &[&str] = &["## Commands", "## Architecture", "## Variables"];

/// Variables of others, which no source of ours has to name.
const THEIRS: &[&str] = &["UPDATE_EXPECT"];

/// Finds sections that are missing, and what is named and not there.
pub fn check(files: &[TextFile]) -> Vec<Finding> {
    let Some(file) = files.iter().find(|file| file.path == FILE) else {
        let remedy = "write one: commands, architecture, variables";
        return vec![Finding::error(FILE, 0, "it is missing", remedy)];
    };
    let missing = SECTIONS.iter().filter(|section| !file.text.lines().any(|l| l == **section));
    let mut findings: Vec<Finding> = missing
        .map(|section| Finding::error(FILE, 0, format!("it has no `{section}`"), "add it"))
        .collect();
    for (at, line) in file.text.lines().enumerate() {
        for what in wrong(line, files) {
            findings.push(Finding::error(FILE, at + 1, what, "name what is there"));
        }
    }
    findings
}

fn wrong(line: &str, files: &[TextFile]) -> Vec<String> {
    let mut found = Vec::new();
    if let Some(chore) = line.strip_prefix("$ cargo xtask ").and_then(|l| l.split(' ').next())
        && !is_chore(chore, files)
    {
        found.push(format!("there is no chore `{chore}`"));
    }
    let row = line.strip_prefix("| `").and_then(|rest| rest.split('`').next());
    if let Some(variable) = row.filter(|name| !THEIRS.contains(name)) {
        let quoted = format!("\"{variable}\"");
        if !files.iter().any(|file| file.path.ends_with(".rs") && file.text.contains(&quoted)) {
            found.push(format!("no source reads `{variable}`"));
        }
    }
    for path in line.split('`').skip(1).step_by(2).filter(|code| is_path(code)) {
        let folder = format!("{}/", path.trim_end_matches(['/', '*']).trim_end_matches('/'));
        if !files.iter().any(|file| file.path == path || file.path.starts_with(&folder)) {
            found.push(format!("there is no `{path}`"));
        }
    }
    found
}

fn is_chore(name: &str, files: &[TextFile]) -> bool {
    let table = files.iter().find(|file| file.path == CHORES);
    table.is_some_and(|table| table.text.contains(&format!("name: \"{name}\",")))
}

fn is_path(code: &str) -> bool {
    code.contains('/') && !code.contains([' ', '=']) && !code.starts_with('/')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tests::{file, lines};

    #[track_caller]
    fn check_text(text: &str, expected: &[&str]) {
        let text = format!("## Commands\n## Architecture\n## Variables\n{text}\n");
        let source = file("host/a/src/b.rs", "const V: &str = \"JAATO_MOON\";");
        let chores = file(CHORES, "Chore {\n    name: \"test\",\n}");
        assert_eq!(lines(&check(&[file(FILE, &text), source, chores])), expected);
    }

    #[test]
    fn what_is_there_may_be_named() {
        check_text("$ cargo xtask test NAME", &[]);
        check_text("| `JAATO_MOON` | the moon |", &[]);
        check_text("`host/*`, `host/a/src/b.rs`, `host/a`, `cargo xtask run`", &[]);
    }

    #[test]
    fn chores_variables_and_paths_that_are_gone_are_found() {
        check_text(
            "$ cargo xtask fly",
            &["AGENTS.md:4: there is no chore `fly`, name what is there"],
        );
        check_text(
            "| `JAATO_SUN` | x |",
            &["AGENTS.md:4: no source reads `JAATO_SUN`, name what is there"],
        );
        check_text("`host/b/*`", &["AGENTS.md:4: there is no `host/b/*`, name what is there"]);
    }

    #[test]
    fn it_must_be_there_with_its_sections() {
        assert_eq!(check(&[]).len(), 1);
        assert_eq!(check(&[file(FILE, "## Commands\n")]).len(), 2);
    }
}
