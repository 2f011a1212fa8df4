//! The tools that a profile chooses, by name, by plugin, or by the names that Claude Code uses.
//! Pure.

use jaato_plugin_sdk::task::ToolFacts;
use jaato_plugin_sdk::types::ToolName;

/// Claude Code's tools, and jaato's with the same purpose.
const CLAUDE_TOOLS: [(&str, &[&str]); 17] = [
    ("Agent", &["spawn_subagent"]),
    ("AskUserQuestion", &["request_clarification"]),
    ("Bash", &["cli_based_tool"]),
    ("BashOutput", &["getBackgroundTask"]),
    ("Edit", &["updateFile", "findAndReplace"]),
    ("Glob", &["glob_files"]),
    ("Grep", &["grep_content"]),
    ("KillShell", &["cancelBackgroundTask"]),
    ("LS", &["glob_files"]),
    ("MultiEdit", &["multiFileEdit"]),
    ("Read", &["readFile", "viewImage"]),
    ("Skill", &["use_prompt"]),
    ("Task", &["spawn_subagent"]),
    ("TodoWrite", &["createPlan", "startPlan", "setStepStatus", "completePlan"]),
    ("WebFetch", &["web_fetch"]),
    ("WebSearch", &["web_search"]),
    ("Write", &["writeNewFile", "updateFile"]),
];

/// The tools of a profile.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolChoice {
    /// Names, and prefixes that end with `*`. `None` if the profile does not name tools.
    pub names: Option<Vec<String>>,
    /// Plugins whose tools the subagent gets. `None` if the profile does not name plugins.
    pub plugins: Option<Vec<String>>,
    /// Names, and prefixes that end with `*`, of tools that the subagent does not get.
    pub denied: Vec<String>,
}

/// The tools of a subagent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SelectedTools {
    /// The names for `ChildOpen.tools`. `None` if the subagent gets all tools of its opener.
    pub names: Option<Vec<ToolName>>,
    /// Names and plugins of the profile that match no tool.
    pub missing: Vec<String>,
}

impl ToolChoice {
    /// Selects from the tools of the opener's session.
    pub fn select_tools(&self, session: &[ToolFacts]) -> SelectedTools {
        let takes_all = self.names.is_none() && self.plugins.is_none();
        if takes_all && self.denied.is_empty() {
            return SelectedTools::default();
        }
        let (words, plugins) = (as_slice(&self.names), as_slice(&self.plugins));
        let is_denied = |name: &str| self.denied.iter().any(|word| is_name_match(word, name));
        let is_chosen = |tool: &&ToolFacts| {
            let name = tool.name.as_str();
            let is_named = words.iter().any(|word| is_name_match(word, name))
                || plugins.iter().any(|plugin| is_plugin_match(plugin, &tool.source));
            (takes_all || is_named) && !is_denied(name)
        };
        let mut names: Vec<ToolName> =
            session.iter().filter(is_chosen).map(|tool| tool.name.clone()).collect();
        let has_tool =
            |word: &&String| session.iter().any(|it| is_name_match(word, it.name.as_str()));
        let has_plugin =
            |word: &&String| session.iter().any(|it| is_plugin_match(word, &it.source));
        let (later, missing): (Vec<_>, Vec<_>) =
            words.iter().filter(|word| !has_tool(word)).partition(|word| word.ends_with('*'));
        // A plugin may set the tools of such a pattern later.
        let later = later.into_iter().filter(|word| !is_denied(word.trim_end_matches('*')));
        names.extend(later.map(|word| ToolName::from(word.as_str())));
        let missing = missing.into_iter().chain(plugins.iter().filter(|it| !has_plugin(it)));
        SelectedTools { names: Some(names), missing: missing.cloned().collect() }
    }
}

/// Reads the names in a list of tools: each may be one of Claude Code's. The second result are
/// warnings.
pub fn parse_tool_names(words: &[String]) -> (Vec<String>, Vec<String>) {
    let (mut names, mut warnings) = (Vec::new(), Vec::new());
    for word in words.iter().map(|word| word.trim()).filter(|word| !word.is_empty()) {
        if word.contains('(') {
            warnings.push(format!(
                "tool '{word}' is left out, because a profile can only choose whole tools; use \
                 permission rules to restrict one"
            ));
            continue;
        }
        match CLAUDE_TOOLS.iter().find(|(name, _)| *name == word) {
            Some((_, own)) => names.extend(own.iter().map(|name| (*name).to_owned())),
            None => names.push(server_tools_pattern(word).unwrap_or_else(|| word.to_owned())),
        }
    }
    let mut seen = std::collections::BTreeSet::new();
    names.retain(|name| seen.insert(name.clone()));
    (names, warnings)
}

/// Splits a list with commas, except inside of parentheses.
pub fn split_at_commas(text: &str) -> Vec<String> {
    let mut depth = 0_usize;
    let is_end = |sign: char| {
        match sign {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        sign == ',' && depth == 0
    };
    text.split(is_end).map(|word| word.trim().to_owned()).filter(|it| !it.is_empty()).collect()
}

/// Returns the pattern for all tools of an MCP server, if the word names a server: `mcp__git`.
fn server_tools_pattern(word: &str) -> Option<String> {
    let server = word.strip_prefix("mcp__")?;
    (!server.contains("__") && !server.ends_with('*')).then(|| format!("{word}__*"))
}

fn is_name_match(word: &str, name: &str) -> bool {
    match word.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => word == name,
    }
}

/// Returns true if a word of `plugins` means the plugin with this source: `web_search(preload)` and
/// `tool-web-search` mean `web-search`.
fn is_plugin_match(word: &str, source: &str) -> bool {
    let short = |name: &str| {
        let name = name.trim().strip_suffix("(preload)").unwrap_or(name).trim().replace('_', "-");
        match name.strip_prefix("tool-").unwrap_or(&name) {
            "prompt-library" => "prompts".to_owned(),
            name => name.to_owned(),
        }
    };
    short(word) == short(source)
}

fn as_slice(words: &Option<Vec<String>>) -> &[String] {
    words.as_deref().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session_tools() -> Vec<ToolFacts> {
        let tools = [
            ("cli_based_tool", "cli"),
            ("readFile", "file-edit"),
            ("updateFile", "file-edit"),
            ("web_search", "web-search"),
            ("mcp__git__log", "mcp"),
            ("mcp__git__push", "mcp"),
            ("moon", "tool-moon"),
        ];
        let facts = |(name, source): (&str, &str)| {
            let mut facts = ToolFacts::default();
            (facts.name, facts.source) = (ToolName::from(name), source.to_owned());
            facts
        };
        tools.map(facts).to_vec()
    }

    fn parse_word_list(words: &str) -> Option<Vec<String>> {
        (words != "-").then(|| words.split_whitespace().map(str::to_owned).collect())
    }

    #[track_caller]
    fn check_selection(names: &str, plugins: &str, denied: &str, expected: &str, missing: &str) {
        let denied = parse_word_list(denied).unwrap_or_default();
        let choice =
            ToolChoice { names: parse_word_list(names), plugins: parse_word_list(plugins), denied };
        let selected = choice.select_tools(&session_tools());
        let names = selected.names.map(|names| {
            names.iter().map(|name| name.as_str().to_owned()).collect::<Vec<_>>().join(" ")
        });
        assert_eq!(names.as_deref().unwrap_or("-"), expected);
        assert_eq!(selected.missing.join(" "), missing);
    }

    #[test]
    fn tools_are_selected_by_name_plugin_and_pattern() {
        check_selection("-", "-", "", "-", "");
        check_selection("", "-", "", "", "");
        check_selection("readFile none", "-", "", "readFile", "none");
        check_selection("mcp__git__*", "-", "", "mcp__git__log mcp__git__push", "");
        check_selection(
            "*",
            "-",
            "web*",
            "cli_based_tool readFile updateFile mcp__git__log mcp__git__push moon",
            "",
        );
        check_selection("mcp__later__*", "-", "", "mcp__later__*", "");
        check_selection("mcp__later__*", "-", "mcp__*", "", "");
        check_selection(
            "-",
            "file_edit(preload) tool-web-search moon none",
            "",
            "readFile updateFile web_search moon",
            "none",
        );
        check_selection("readFile", "cli", "", "cli_based_tool readFile", "");
        check_selection(
            "-",
            "-",
            "mcp__* moon web_search updateFile",
            "cli_based_tool readFile",
            "",
        );
    }

    #[test]
    fn claude_tool_names_become_names_of_jaato() {
        let words = split_at_commas(
            "Read, Grep,, Bash(git add:*, git log), mcp__git, mcp__a__b, moon, Write,Edit",
        );
        let (names, warnings) = parse_tool_names(&words);
        let expected = [
            "readFile",
            "viewImage",
            "grep_content",
            "mcp__git__*",
            "mcp__a__b",
            "moon",
            "writeNewFile",
            "updateFile",
            "findAndReplace",
        ];
        assert_eq!(names, expected);
        assert_eq!(warnings.len(), 1);
        assert!(
            warnings[0].starts_with("tool 'Bash(git add:*, git log)' is left out"),
            "{warnings:?}"
        );
    }
}
