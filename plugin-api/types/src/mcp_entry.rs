//! Entries of `.mcp.json` in the formats of several programs, the variables that they refer to, and
//! the variables that the user agreed to send.
//!
//! The host and the MCP plugin interpret entries in the same way. Therefore this module defines
//! where a file lists its servers, the names of keys, the syntax of references, and the form in
//! which entries are compared.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// Variables that the user agreed to send to one MCP server of a workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AgreedVariables {
    /// The server's key in the file.
    pub server: String,
    /// SHA-256 of the entry's [`canonical_json`] form, in lower case. The agreement does not apply
    /// to an entry with another digest.
    pub entry: String,
    /// The names of the variables.
    pub variables: BTreeSet<String>,
}

/// The variable for the folder of the workspace, as in VS Code.
pub const WORKSPACE_FOLDER: &str = "workspaceFolder";
/// The variable for the user's home folder, as in VS Code.
pub const USER_HOME: &str = "userHome";

/// A reference to a variable: `${NAME}`, `${NAME:-default}` or, in VS Code's syntax, `${env:NAME}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VariableReference<'a> {
    /// The whole text of the reference.
    pub whole: &'a str,
    /// The name of the variable.
    pub name: &'a str,
    /// The value to use if the variable is not set.
    pub default: Option<&'a str>,
}

impl<'a> VariableReference<'a> {
    /// Parses the reference at the start of a text.
    pub fn parse_prefix(text: &'a str) -> Option<Self> {
        let end = text.find('}')?;
        let whole = &text[..=end];
        let inside = whole.strip_prefix("${")?.strip_suffix('}')?;
        let (name, default) = match inside.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inside, None),
        };
        let name = name.strip_prefix("env:").unwrap_or(name);
        let is_letter = |c: char| c.is_ascii_alphabetic() || c == '_';
        let is_name =
            name.starts_with(is_letter) && name.chars().all(|c| is_letter(c) || c.is_ascii_digit());
        is_name.then_some(Self { whole, name, default })
    }
}

/// Returns the names of all variables to which the texts of an entry refer, both in the original
/// and in the standard format.
pub fn referenced_variables(entry: &Value) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let read = to_standard_entry(entry).map_or(Value::Null, Value::Object);
    let mut waiting = vec![entry, &read];
    while let Some(value) = waiting.pop() {
        match value {
            Value::String(text) => {
                // Each `${` counts, even inside another reference, because extra names do no harm.
                let starts = text.match_indices("${");
                let found =
                    starts.filter_map(|(at, _)| VariableReference::parse_prefix(&text[at..]));
                let found = found.map(|reference| reference.name);
                let found = found.filter(|name| ![WORKSPACE_FOLDER, USER_HOME].contains(name));
                names.extend(found.map(str::to_owned));
            }
            Value::Array(items) => waiting.extend(items),
            Value::Object(members) => waiting.extend(members.values()),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    names
}

/// Returns the path of keys to the servers of a file: `mcpServers`, as in most programs, `servers`
/// (VS Code), `mcp` (VS Code settings and opencode), or an empty path if each member is a server.
///
/// # Errors
/// If the file has another format. The error is a text for users.
pub fn servers_path(file: &Map<String, Value>) -> Result<Vec<String>, String> {
    if file.is_empty() {
        return Ok(vec!["mcpServers".to_owned()]);
    }
    let key = |wanted: &str| file.keys().find(|key| normalize_key(key) == wanted).cloned();
    let nested = |key: &str| file[key].get("servers").is_some_and(Value::is_object);
    let path = match (key("mcpservers").or_else(|| key("servers")), key("mcp"), key("mcp.servers"))
    {
        (Some(key), _, _) | (None, None, Some(key)) => vec![key],
        (None, Some(key), _) if nested(&key) => vec![key, "servers".to_owned()],
        (None, Some(key), _) => vec![key],
        (None, None, None) if file.values().all(is_server) => Vec::new(),
        (None, None, None) => return Err("it has no `mcpServers`".to_owned()),
    };
    Ok(path)
}

/// Returns the servers of a file.
///
/// # Errors
/// As for [`servers_path`], or if the value at that path is not an object.
pub fn server_entries(file: Map<String, Value>) -> Result<Map<String, Value>, String> {
    let path = servers_path(&file)?;
    let mut servers = Value::Object(file);
    for key in &path {
        servers = servers.get_mut(key).map(Value::take).unwrap_or_default();
    }
    match servers {
        Value::Null => Ok(Map::new()),
        Value::Object(servers) => Ok(servers),
        _ => Err(format!("`{}` is not an object", path.join("."))),
    }
}

fn is_server(value: &Value) -> bool {
    to_standard_entry(value)
        .is_ok_and(|entry| entry.contains_key("command") || entry.contains_key("url"))
}

/// The type of a value in an entry.
#[derive(Clone, Copy)]
enum EntryValueType {
    Text,
    /// A text, or a list of the command and its arguments.
    Command,
    Texts,
    TextMap,
    Flag,
    /// A flag with the opposite meaning.
    NotFlag,
    Milliseconds,
    Seconds,
    /// The name of a variable that holds a token.
    TokenVariable,
    /// Headers, each with the name of a variable that holds its value.
    HeaderVariables,
    Any,
}

/// Keys in lower case without `_` and `-`, with their standard name and type. From the
/// documentation of Claude Code, Claude Desktop, Cline, codex, Cursor, Gemini CLI, opencode, VS
/// Code and Windsurf.
const KEYS: [(&str, &str, EntryValueType); 33] = [
    ("type", "type", EntryValueType::Text),
    ("transport", "type", EntryValueType::Text),
    ("command", "command", EntryValueType::Command),
    ("cmd", "command", EntryValueType::Command),
    ("args", "args", EntryValueType::Texts),
    ("env", "env", EntryValueType::TextMap),
    ("environment", "env", EntryValueType::TextMap),
    ("envs", "env", EntryValueType::TextMap),
    ("envfile", "envFile", EntryValueType::Text),
    ("cwd", "cwd", EntryValueType::Text),
    ("url", "url", EntryValueType::Text),
    ("httpurl", "url", EntryValueType::Text),
    ("serverurl", "url", EntryValueType::Text),
    ("uri", "url", EntryValueType::Text),
    ("headers", "headers", EntryValueType::TextMap),
    ("httpheaders", "headers", EntryValueType::TextMap),
    ("envhttpheaders", "headers", EntryValueType::HeaderVariables),
    ("bearertokenenvvar", "headers", EntryValueType::TokenVariable),
    ("oauth", "oauth", EntryValueType::Any),
    ("timeout", "timeout", EntryValueType::Milliseconds),
    ("tooltimeoutsec", "timeout", EntryValueType::Seconds),
    ("startuptimeout", "startupTimeout", EntryValueType::Milliseconds),
    ("startuptimeoutms", "startupTimeout", EntryValueType::Milliseconds),
    ("startuptimeoutsec", "startupTimeout", EntryValueType::Seconds),
    ("tools", "tools", EntryValueType::Texts),
    ("includetools", "tools", EntryValueType::Texts),
    ("enabledtools", "tools", EntryValueType::Texts),
    ("excludetools", "excludeTools", EntryValueType::Texts),
    ("disabledtools", "excludeTools", EntryValueType::Texts),
    ("disabled", "disabled", EntryValueType::Flag),
    ("enabled", "disabled", EntryValueType::NotFlag),
    ("alwaysload", "alwaysLoad", EntryValueType::Flag),
    ("parallel", "parallel", EntryValueType::Flag),
];

/// Converts an entry from any supported program to jaato's names and types. Numbers and booleans
/// are accepted as texts, `null` values are dropped, and unknown keys are kept. If two keys have
/// the same meaning, the first one counts; headers are merged.
///
/// # Errors
/// If a value has the wrong type. The text names the key.
pub fn to_standard_entry(entry: &Value) -> Result<Map<String, Value>, String> {
    let Value::Object(entry) = entry else { return Err("it is not an object".to_owned()) };
    let mut standard = Map::new();
    for (key, value) in entry.iter().filter(|(_, value)| !value.is_null()) {
        let plain = normalize_key(key);
        let known = KEYS.iter().find(|(alias, _, _)| *alias == plain);
        let (name, kind) =
            known.map_or((key.as_str(), EntryValueType::Any), |known| (known.1, known.2));
        let wrong = |what: &str| format!("`{key}` is not {what}");
        let value = match kind {
            EntryValueType::Any => value.clone(),
            EntryValueType::Text if name == "type" => {
                normalize_transport(&value_to_text(value).ok_or(wrong("a string"))?).into()
            }
            EntryValueType::Text => value_to_text(value).ok_or(wrong("a string"))?.into(),
            EntryValueType::Command => match value {
                Value::Array(words) => {
                    let words = values_to_texts(words).ok_or(wrong("a string"))?;
                    let mut words = words.into_iter();
                    let command = words.next().unwrap_or_default();
                    let behind: Vec<Value> = words.collect();
                    if !behind.is_empty() {
                        standard.insert("args".to_owned(), behind.into());
                    }
                    command
                }
                _ => value.as_str().ok_or(wrong("a string"))?.into(),
            },
            EntryValueType::Texts => {
                let items = value.as_array().ok_or(wrong("a list"))?;
                values_to_texts(items).ok_or(wrong("a list of strings"))?.into()
            }
            EntryValueType::TextMap => {
                let members = value.as_object().ok_or(wrong("an object"))?;
                let members = members.iter().filter(|(_, value)| !value.is_null());
                let texts =
                    members.map(|(key, value)| Some((key.clone(), value_to_text(value)?.into())));
                Value::Object(texts.collect::<Option<_>>().ok_or(wrong("an object of strings"))?)
            }
            EntryValueType::Flag => value_to_flag(value).ok_or(wrong("`true` or `false`"))?.into(),
            EntryValueType::NotFlag => {
                (!value_to_flag(value).ok_or(wrong("`true` or `false`"))?).into()
            }
            EntryValueType::Milliseconds => value_to_number(value).ok_or(wrong("a number"))?.into(),
            EntryValueType::Seconds => {
                value_to_number(value).ok_or(wrong("a number"))?.saturating_mul(1000).into()
            }
            EntryValueType::TokenVariable => {
                let variable = value_to_text(value).ok_or(wrong("a string"))?;
                json!({ "Authorization": format!("Bearer ${{{variable}}}") })
            }
            EntryValueType::HeaderVariables => {
                let members = value.as_object().ok_or(wrong("an object"))?;
                let headers = members.iter().map(|(key, value)| {
                    Some((key.clone(), format!("${{{}}}", value_to_text(value)?).into()))
                });
                Value::Object(headers.collect::<Option<_>>().ok_or(wrong("an object of strings"))?)
            }
        };
        match (standard.get_mut(name), value) {
            (Some(Value::Object(all)), Value::Object(more)) if name == "headers" => {
                all.extend(more)
            }
            (Some(_), _) => {}
            (None, value) => drop(standard.insert(name.to_owned(), value)),
        }
    }
    Ok(standard)
}

/// Returns a key in the form of [`KEYS`].
fn normalize_key(key: &str) -> String {
    key.chars().filter(|c| !matches!(c, '_' | '-')).flat_map(char::to_lowercase).collect()
}

/// Returns the standard word for a transport. Unknown words are kept.
fn normalize_transport(word: &str) -> String {
    match normalize_key(word).as_str() {
        "stdio" | "local" => "stdio".to_owned(),
        "http" | "streamablehttp" | "streamable" | "remote" => "http".to_owned(),
        "sse" => "sse".to_owned(),
        _ => word.to_owned(),
    }
}

fn value_to_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

fn values_to_texts(values: &[Value]) -> Option<Vec<Value>> {
    values.iter().map(|value| Some(value_to_text(value)?.into())).collect()
}

fn value_to_flag(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(flag) => Some(*flag),
        _ => value.as_str()?.parse().ok(),
    }
}

/// Returns a number, which may be written as a text. Decimal places are dropped.
fn value_to_number(value: &Value) -> Option<u64> {
    let number = match value {
        Value::String(text) => text.trim().parse().ok()?,
        _ => value.as_f64()?,
    };
    (number >= 0.0).then_some(number as u64)
}

/// Returns the canonical form of an entry, JSON with sorted keys, so that equal entries have the
/// same text.
pub fn canonical_json(entry: &Value) -> String {
    match entry {
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by_key(|(key, _)| *key);
            let members = members.into_iter().map(|(key, value)| {
                format!("{}:{}", Value::from(key.as_str()), canonical_json(value))
            });
            format!("{{{}}}", members.collect::<Vec<_>>().join(","))
        }
        Value::Array(items) => {
            format!("[{}]", items.iter().map(canonical_json).collect::<Vec<_>>().join(","))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => entry.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn variables_are_found_wherever_an_entry_has_text() {
        let entry = json!({
            "url": "http://x/${A}?${B:-${C}}", "headers": { "X": "${D}" }, "args": ["$E", "${1F}"],
            "oauth": { "clientSecret": "${${G}} ${env:I} ${workspaceFolder}" }, "${H}": 1,
        });
        let names: Vec<_> = referenced_variables(&entry).into_iter().collect();
        assert_eq!(names, ["A", "B", "C", "D", "G", "I"]);
    }

    #[track_caller]
    fn assert_standard_entry(entry: Value, expected: Value) {
        assert_eq!(to_standard_entry(&entry).map(Value::Object), Ok(expected));
    }

    #[test]
    fn mcp_entries_of_other_programs_are_converted() {
        let codex = json!({
            "url": "https://e.example", "bearer_token_env_var": "KEY", "startup_timeout_sec": 20.5,
            "http_headers": { "A": "b" }, "env_http_headers": { "C": "D" }, "enabled": true,
        });
        let headers = json!({ "Authorization": "Bearer ${KEY}", "A": "b", "C": "${D}" });
        let expected = json!({
            "url": "https://e.example", "headers": headers, "startupTimeout": 20000,
            "disabled": false,
        });
        assert_eq!(referenced_variables(&codex), ["D", "KEY"].map(str::to_owned).into());
        assert_standard_entry(codex, expected);
        let opencode =
            json!({ "type": "local", "command": ["bun", "x", 1], "environment": { "A": 1 } });
        let expected =
            json!({ "type": "stdio", "args": ["x", "1"], "command": "bun", "env": { "A": "1" } });
        assert_standard_entry(opencode, expected);
        assert_standard_entry(
            json!({ "httpUrl": "http://a", "url": "http://b" }),
            json!({ "url": "http://a" }),
        );
        assert_standard_entry(
            json!({ "type": "streamable_http", "serverUrl": "u" }),
            json!({ "type": "http", "url": "u" }),
        );
        assert_standard_entry(
            json!({ "env": null, "timeout": "60000", "enabled": "false" }),
            json!({ "timeout": 60000, "disabled": true }),
        );
        assert_standard_entry(json!({ "alwaysAllow": ["a"] }), json!({ "alwaysAllow": ["a"] }));
        assert_eq!(
            to_standard_entry(&json!({ "env": [] })),
            Err("`env` is not an object".to_owned())
        );
        assert_eq!(
            to_standard_entry(&json!({ "timeout": -1 })),
            Err("`timeout` is not a number".to_owned())
        );
        assert_eq!(
            to_standard_entry(&json!({ "command": {} })),
            Err("`command` is not a string".to_owned())
        );
    }

    #[test]
    fn mcp_servers_are_found_under_the_keys_of_other_programs() {
        let servers = json!({ "a": { "command": "x" } });
        for file in [
            json!({ "mcpServers": servers }),
            json!({ "mcp_servers": servers, "model": "m" }),
            json!({ "servers": servers, "inputs": [] }),
            json!({ "mcp": servers }),
            json!({ "mcp": { "servers": servers } }),
            json!({ "mcp.servers": servers }),
            servers.clone(),
        ] {
            let found = server_entries(file.as_object().unwrap().clone());
            assert_eq!(found.map(Value::Object), Ok(servers.clone()), "{file}");
        }
        let of = |file: Value| server_entries(file.as_object().unwrap().clone());
        assert_eq!(of(json!({})), Ok(Map::new()));
        assert_eq!(of(json!({ "mcpServers": null })), Ok(Map::new()));
        assert_eq!(of(json!({ "mcpServers": 1 })), Err("`mcpServers` is not an object".to_owned()));
        assert_eq!(of(json!({ "tools": {} })), Err("it has no `mcpServers`".to_owned()));
    }

    #[test]
    fn key_order_does_not_change_the_canonical_json() {
        let text = canonical_json(&json!({ "b": [1, { "z": "\"", "a": null }], "a": true }));
        assert_eq!(text, r#"{"a":true,"b":[1,{"a":null,"z":"\""}]}"#);
        assert_eq!(
            canonical_json(&json!({ "a": 1, "b": 2 })),
            canonical_json(&json!({ "b": 2, "a": 1 }))
        );
    }
}
