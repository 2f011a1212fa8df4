//! What `.gitignore` and `.ignore` leave out of a tree.

use super::pattern::Pattern;

/// Lines of one file that are read: more are no rules of a person's.
const RULES_MAX: usize = 10_000;

/// The rules of one folder, for what is below it.
#[derive(Default)]
pub(super) struct Rules(Vec<Rule>);

struct Rule {
    pattern: Pattern,
    keeps: bool,
    folders_alone: bool,
}

/// What the rules say of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Said {
    Nothing,
    LeaveOut,
    Keep,
}

impl Rules {
    /// Adds the lines of a file; those behind win. What is no pattern is passed over, as git does.
    pub(super) fn add(&mut self, text: &str) {
        let lines = text.trim_start_matches('\u{feff}').lines().take(RULES_MAX);
        self.0.extend(lines.filter_map(rule));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Asks about a path below the rules' folder.
    pub(super) fn say(&self, path: &str, is_folder: bool) -> Said {
        let applies =
            |rule: &&Rule| (is_folder || !rule.folders_alone) && rule.pattern.matches(path);
        match self.0.iter().rev().find(applies) {
            Some(rule) if rule.keeps => Said::Keep,
            Some(_) => Said::LeaveOut,
            None => Said::Nothing,
        }
    }
}

fn rule(line: &str) -> Option<Rule> {
    let line = line.trim_end();
    if line.is_empty() || line.starts_with('#') {
        return None;
    }
    let (keeps, line) = match line.strip_prefix('!') {
        Some(rest) => (true, rest),
        None => (false, line),
    };
    let (folders_alone, line) = match line.strip_suffix('/') {
        Some(rest) => (true, rest),
        None => (false, line),
    };
    // With a slash it begins at the folder, else it is a name at any depth.
    let pattern = match line.strip_prefix('/') {
        Some(rest) => rest.to_owned(),
        None if line.contains('/') => line.to_owned(),
        None => format!("**/{line}"),
    };
    // Braces mean themselves there.
    let pattern = pattern.replace('{', "\\{").replace('}', "\\}");
    Some(Rule { pattern: Pattern::new(&pattern).ok()?, keeps, folders_alone })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_read_as_git_reads_them() {
        let mut rules = Rules::default();
        rules.add("# a comment\n\n*.log\n!keep.log\nbuild/\n/top\na/*.txt\n{x}\n[broken\n");
        let said = |path, is_folder| rules.say(path, is_folder);
        for path in ["a.log", "deep/er/a.log", "top", "a/b.txt", "{x}"] {
            assert_eq!(said(path, false), Said::LeaveOut, "{path}");
        }
        for path in ["deep/top", "a/b/c.txt", "build", "x", "b.rs"] {
            assert_eq!(said(path, false), Said::Nothing, "{path}");
        }
        assert_eq!(said("deep/build", true), Said::LeaveOut);
        assert_eq!(said("deep/keep.log", false), Said::Keep);
    }
}
