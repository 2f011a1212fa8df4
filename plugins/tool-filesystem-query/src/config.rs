//! The `[plugins.tool-filesystem-query]` settings.

use std::time::Duration;

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::{schemars, serde_json};

/// The maximum number of results that a call may ask for.
pub const RESULTS_MAX: usize = 10_000;

/// The maximum number of context lines around a match.
pub const CONTEXT_LINES_MAX: usize = 50;

/// The default exclusions outside of git repositories: files that programs build, cache or
/// download. In a repository, its `.gitignore` files exclude them.
#[rustfmt::skip]
const EXCLUDED: [&str; 40] = [
    ".git", ".svn", ".hg", ".bzr",
    "node_modules", "bower_components", ".npm", ".yarn",
    "__pycache__", ".venv", "venv", ".tox", ".nox", ".mypy_cache", ".pytest_cache", ".ruff_cache",
    "*.egg-info", ".eggs",
    "dist", "build", "out", "target", "_build",
    ".idea", ".vscode", ".eclipse", "*.swp", "*.swo",
    "htmlcov", ".coverage", "coverage",
    "*.min.js", "*.min.css",
    "package-lock.json", "yarn.lock", "poetry.lock", "Pipfile.lock",
    ".DS_Store", "Thumbs.db",
    // jaato's own files.
    ".jaato",
];

/// What becomes of the patterns that are left out by default.
#[tool_type]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum ExcludeMode {
    /// `exclude_patterns` come beside them.
    #[default]
    Extend,
    /// `exclude_patterns` take their place.
    Replace,
}

/// `[plugins.tool-filesystem-query]`.
#[tool_type]
#[derive(Debug, Default)]
#[serde(default)]
struct Config {
    /// Patterns of what is left out, as in `.gitignore`.
    #[schemars(extend("x-jaato-workspace" = true))]
    exclude_patterns: Vec<String>,
    /// `extend`: they come beside the default ones, which hold outside of git repositories;
    /// `replace`: they take their place.
    #[schemars(extend("x-jaato-workspace" = true))]
    exclude_mode: ExcludeMode,
    /// Patterns of what is looked at although another pattern leaves it out.
    #[schemars(extend("x-jaato-workspace" = true))]
    include_patterns: Vec<String>,
    /// Results of a call that does not say how many it wants; 500 without it.
    #[schemars(range(min = 1, max = 10000))]
    #[schemars(extend("x-jaato-workspace" = true))]
    max_results: Option<usize>,
    /// Larger files are passed over when a folder is searched; 1024 without it.
    #[schemars(range(min = 1, max = 1048576))]
    #[schemars(extend("x-jaato-workspace" = true))]
    max_file_size_kb: Option<u64>,
    /// Seconds that a search may take; 30 without it.
    #[schemars(range(min = 1, max = 3600))]
    #[schemars(extend("x-jaato-workspace" = true))]
    timeout_seconds: Option<u64>,
    /// Lines around a match for a call that does not say how many it wants; none without it.
    #[schemars(range(min = 0, max = 50))]
    #[schemars(extend("x-jaato-workspace" = true))]
    context_lines: Option<usize>,
}

/// The plugin's state: the settings with defaults filled in.
#[derive(Debug, PartialEq, Eq)]
pub struct Query {
    /// Patterns of excluded paths, as in `.gitignore`.
    pub leave_out: Vec<String>,
    /// Patterns of paths that are excluded only outside of git repositories.
    pub leave_out_unless_git: Vec<String>,
    /// The default number of results of a call.
    pub results: usize,
    /// The default number of context lines around a match.
    pub context_lines: usize,
    /// Larger files are skipped.
    pub file_bytes_max: u64,
    /// The time limit of a search.
    pub time_limit: Duration,
}

impl State for Query {
    async fn create(home: &Home, _saved: Option<Value>) -> Result<Self> {
        Ok(Self::of(home.config().await?))
    }

    fn describe(description: &mut Description) {
        description.config_schema = serde_json::to_value(schemars::schema_for!(Config)).ok();
        let text = "Find files with glob_files and text with grep_content, not with the shell.";
        description.instructions = Some(text.to_owned());
    }
}

impl Query {
    fn of(config: Config) -> Self {
        let defaults = match config.exclude_mode {
            ExcludeMode::Extend => &EXCLUDED[..],
            ExcludeMode::Replace => &[],
        };
        // The last matching pattern wins.
        let with_kept = |mut patterns: Vec<String>| {
            if !patterns.is_empty() {
                patterns.extend(config.include_patterns.iter().map(|it| format!("!{it}")));
            }
            patterns
        };
        Self {
            leave_out_unless_git: with_kept(defaults.iter().map(ToString::to_string).collect()),
            leave_out: with_kept(config.exclude_patterns),
            results: config.max_results.unwrap_or(500).clamp(1, RESULTS_MAX),
            context_lines: config.context_lines.unwrap_or(0).min(CONTEXT_LINES_MAX),
            file_bytes_max: config.max_file_size_kb.unwrap_or(1024).saturating_mul(1024),
            time_limit: Duration::from_secs(config.timeout_seconds.unwrap_or(30).clamp(1, 3600)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_of_the_user_come_beside_the_default_ones_or_in_their_place() {
        let config = |value: Value| Query::of(serde_json::from_value(value).unwrap());
        let extended = config(json!({ "exclude_patterns": ["a"], "include_patterns": ["dist"] }));
        assert_eq!(extended.leave_out, ["a", "!dist"]);
        assert_eq!(extended.leave_out_unless_git[EXCLUDED.len()..], ["!dist"]);
        let replaced = config(json!({ "exclude_patterns": ["a"], "exclude_mode": "replace" }));
        assert_eq!((replaced.leave_out, replaced.leave_out_unless_git), (vec!["a".into()], vec![]));
        let none = config(json!({}));
        assert_eq!((none.results, none.context_lines, none.file_bytes_max), (500, 0, 1 << 20));
    }
}
