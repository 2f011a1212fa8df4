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

/// How `exclude_patterns` combine with the default exclusions.
#[tool_type]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum ExcludeMode {
    /// `exclude_patterns` are added to the default exclusions.
    #[default]
    Extend,
    /// `exclude_patterns` replace the default exclusions.
    Replace,
}

/// `[plugins.tool-filesystem-query]`.
#[tool_type]
#[derive(Debug, Default)]
#[serde(default)]
struct FilesystemQueryConfig {
    /// Patterns of paths to exclude, as in `.gitignore`.
    #[schemars(extend("x-jaato-workspace" = true))]
    exclude_patterns: Vec<String>,
    /// `extend` adds `exclude_patterns` to the default exclusions, which apply outside git
    /// repositories; `replace` uses only `exclude_patterns`.
    #[schemars(extend("x-jaato-workspace" = true))]
    exclude_mode: ExcludeMode,
    /// Patterns of paths to include even if another pattern excludes them.
    #[schemars(extend("x-jaato-workspace" = true))]
    include_patterns: Vec<String>,
    /// Number of results for a call that does not set it. The default is 500.
    #[schemars(range(min = 1, max = 10000))]
    #[schemars(extend("x-jaato-workspace" = true))]
    max_results: Option<usize>,
    /// Larger files are skipped when a folder is searched. The default is 1024.
    #[schemars(range(min = 1, max = 1048576))]
    #[schemars(extend("x-jaato-workspace" = true))]
    max_file_size_kb: Option<u64>,
    /// Time limit of a search in seconds. The default is 30.
    #[schemars(range(min = 1, max = 3600))]
    #[schemars(extend("x-jaato-workspace" = true))]
    timeout_seconds: Option<u64>,
    /// Number of context lines around a match for a call that does not set it. The default is 0.
    #[schemars(range(min = 0, max = 50))]
    #[schemars(extend("x-jaato-workspace" = true))]
    context_lines: Option<usize>,
}

/// The plugin's state: the settings with defaults filled in.
#[derive(Debug, PartialEq, Eq)]
pub struct FilesystemQueryPlugin {
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

impl State for FilesystemQueryPlugin {
    async fn create(home: &Home, _saved: Option<Value>) -> Result<Self> {
        Ok(Self::from_config(home.config().await?))
    }

    fn describe(description: &mut Description) {
        description.config_schema =
            serde_json::to_value(schemars::schema_for!(FilesystemQueryConfig)).ok();
        let text = "Find files with glob_files and text with grep_content, not with the shell.";
        description.instructions = Some(text.to_owned());
    }
}

impl FilesystemQueryPlugin {
    fn from_config(config: FilesystemQueryConfig) -> Self {
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
    fn user_patterns_extend_or_replace_the_default_patterns() {
        let config = |value: Value| {
            FilesystemQueryPlugin::from_config(serde_json::from_value(value).unwrap())
        };
        let extended = config(json!({ "exclude_patterns": ["a"], "include_patterns": ["dist"] }));
        assert_eq!(extended.leave_out, ["a", "!dist"]);
        assert_eq!(extended.leave_out_unless_git[EXCLUDED.len()..], ["!dist"]);
        let replaced = config(json!({ "exclude_patterns": ["a"], "exclude_mode": "replace" }));
        assert_eq!((replaced.leave_out, replaced.leave_out_unless_git), (vec!["a".into()], vec![]));
        let none = config(json!({}));
        assert_eq!((none.results, none.context_lines, none.file_bytes_max), (500, 0, 1 << 20));
    }
}
