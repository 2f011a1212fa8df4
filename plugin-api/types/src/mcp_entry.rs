//! Variables that an entry of `.mcp.json` refers to, and those that the user agreed to send.
//!
//! The host and the plugin for MCP servers read entries alike: here are the syntax of a reference
//! and the form in which an entry is compared.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Variables that the user agreed to send to one server of a workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AgreedVariables {
    /// The server's key in the file.
    pub server: String,
    /// SHA-256 of the entry's [`canonical`] form, in lower case. An entry with another digest has
    /// no agreement.
    pub entry: String,
    /// The names of the variables.
    pub variables: BTreeSet<String>,
}

/// A reference to a variable: `${NAME}` or `${NAME:-default}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reference<'a> {
    /// All of it.
    pub whole: &'a str,
    /// The name of the variable.
    pub name: &'a str,
    /// The text that counts if the variable is not set.
    pub default: Option<&'a str>,
}

impl<'a> Reference<'a> {
    /// Reads the reference that a text begins with.
    pub fn at_start_of(text: &'a str) -> Option<Self> {
        let end = text.find('}')?;
        let whole = &text[..=end];
        let inside = whole.strip_prefix("${")?.strip_suffix('}')?;
        let (name, default) = match inside.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inside, None),
        };
        let is_letter = |c: char| c.is_ascii_alphabetic() || c == '_';
        let is_name =
            name.starts_with(is_letter) && name.chars().all(|c| is_letter(c) || c.is_ascii_digit());
        is_name.then_some(Self { whole, name, default })
    }
}

/// Returns the names of all variables that the texts of an entry refer to.
pub fn variables_of(entry: &Value) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut waiting = vec![entry];
    while let Some(value) = waiting.pop() {
        match value {
            Value::String(text) => {
                // Each `${` counts, also inside of another reference: too many names do no harm.
                let starts = text.match_indices("${");
                let found = starts.filter_map(|(at, _)| Reference::at_start_of(&text[at..]));
                names.extend(found.map(|reference| reference.name.to_owned()));
            }
            Value::Array(items) => waiting.extend(items),
            Value::Object(members) => waiting.extend(members.values()),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    names
}

/// Writes an entry so that two entries that say the same have one form: JSON with sorted keys.
pub fn canonical(entry: &Value) -> String {
    match entry {
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by_key(|(key, _)| *key);
            let members = members
                .into_iter()
                .map(|(key, value)| format!("{}:{}", Value::from(key.as_str()), canonical(value)));
            format!("{{{}}}", members.collect::<Vec<_>>().join(","))
        }
        Value::Array(items) => {
            format!("[{}]", items.iter().map(canonical).collect::<Vec<_>>().join(","))
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
            "oauth": { "clientSecret": "${${G}}" }, "${H}": 1,
        });
        let names: Vec<_> = variables_of(&entry).into_iter().collect();
        assert_eq!(names, ["A", "B", "C", "D", "G"]);
    }

    #[test]
    fn the_order_of_keys_makes_no_other_entry() {
        let text = canonical(&json!({ "b": [1, { "z": "\"", "a": null }], "a": true }));
        assert_eq!(text, r#"{"a":true,"b":[1,{"a":null,"z":"\""}]}"#);
        assert_eq!(canonical(&json!({ "a": 1, "b": 2 })), canonical(&json!({ "b": 2, "a": 1 })));
    }
}
