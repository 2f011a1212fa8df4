//! Files with calls and their expected decisions: tests of the user's rules.

use std::path::Path;

use serde_json::{Map, Value as Json};

use crate::error::ConfigError;
use crate::file::read_config_text;
use crate::toml_tree::{self, TomlNode, TomlValue};

/// One call and its expected decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleCase {
    /// The line at which it begins.
    pub line: usize,
    /// The tool.
    pub tool: String,
    /// Its arguments.
    pub arguments: Json,
    /// `allow`, `ask` or `deny`.
    pub expected: String,
    /// The kind of the agent that makes the call. The default is `main`.
    pub agent_type: String,
    /// The agent's name.
    pub agent_name: String,
}

/// The tool of a case that has only a command.
const COMMAND_TOOL: &str = "cli_based_tool";

/// Reads the cases of a file: `[[cases]]` with `expect`, and `command`, or `tool` and `arguments`.
///
/// # Errors
/// When the file cannot be read, or a case is not valid.
pub fn read_cases(path: &Path) -> Result<Vec<RuleCase>, ConfigError> {
    let failed = |cause: String| ConfigError::Edit { path: path.to_owned(), cause };
    let text =
        read_config_text(path)?.ok_or_else(|| failed("the file does not exist".to_owned()))?;
    let entries = toml_tree::parse_toml(path, &text)?;
    let mut cases = Vec::new();
    for (name, node) in &entries {
        let (true, TomlValue::Array(items)) = (name == "cases", &node.value) else {
            return Err(failed(format!(
                "line {}: `{name}` is not a list of `[[cases]]`",
                node.line
            )));
        };
        for item in items {
            let TomlValue::Table(entries) = &item.value else {
                return Err(failed(format!("line {}: a case is a section", item.line)));
            };
            cases.push(parse_case(entries, item.line).map_err(failed)?);
        }
    }
    if cases.is_empty() {
        return Err(failed("it has no `[[cases]]`".to_owned()));
    }
    Ok(cases)
}

fn parse_case(entries: &[(String, TomlNode)], line: usize) -> Result<RuleCase, String> {
    let line = entries.iter().map(|(_, node)| node.line).min().unwrap_or(line);
    let (mut tool, mut arguments, mut command, mut expected) = (None, None, None, None);
    let (mut agent_type, mut agent_name) = ("main".to_owned(), String::new());
    for (name, node) in entries {
        let text = || match &node.value {
            TomlValue::Text(text) => Ok(text.clone()),
            other => {
                Err(format!("line {}: `{name}` is {}, not a text", node.line, other.describe()))
            }
        };
        match name.as_str() {
            "tool" => tool = Some(text()?),
            "command" => command = Some(text()?),
            "expect" => expected = Some(text()?),
            "agent_type" => agent_type = text()?,
            "agent_name" => agent_name = text()?,
            "arguments" => arguments = node.value.to_json().filter(Json::is_object),
            other => return Err(format!("line {}: `{other}` is unknown", node.line)),
        }
    }
    let expected = expected.ok_or_else(|| format!("line {line}: the case has no `expect`"))?;
    if !["allow", "ask", "deny"].contains(&expected.as_str()) {
        return Err(format!(
            "line {line}: `expect` is `{expected}`; it must be allow, ask or deny"
        ));
    }
    let mut of_command = Map::new();
    let (tool, arguments) = match (tool, command, arguments) {
        (tool, Some(command), None) => {
            of_command.insert("command".to_owned(), command.into());
            (tool.unwrap_or_else(|| COMMAND_TOOL.to_owned()), Json::Object(of_command))
        }
        (Some(tool), None, arguments) => (tool, arguments.unwrap_or_else(|| of_command.into())),
        _ => {
            return Err(format!(
                "line {line}: a case has a `command`, or a `tool` with `arguments`"
            ));
        }
    };
    Ok(RuleCase { line, tool, arguments, expected, agent_type, agent_name })
}
