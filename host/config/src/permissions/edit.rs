//! Adds rules to a `permissions.toml` and removes them, and keeps its comments, order and layout.

use std::path::Path;

use toml_edit::{ArrayOfTables, DocumentMut, Item, Table, value};

use crate::edit::replace_file;
use crate::error::ConfigError;
use crate::file::read_config_text;

/// The key of a rule that applies while the definition of another program's tool stays the same.
/// Written by jaato.
pub const DEFINITION_KEY: &str = "definition";

/// A rule that the user adds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewRule {
    /// `allow`, `ask` or `deny`.
    pub decision: String,
    /// The keys of the rule with their texts, in the order in which they are written.
    pub keys: Vec<(String, String)>,
}

/// Returns the text with the rule at its end. Returns `None` if the text already has it.
///
/// # Errors
/// The problem with the text.
pub fn add_rule(text: &str, rule: &NewRule) -> Result<Option<String>, String> {
    let mut document = parse_document(text)?;
    if document.is_empty() {
        document.insert("version", value(1));
    }
    let mut table = Table::new();
    table.insert("decision", value(&rule.decision));
    for (name, text) in &rule.keys {
        match name.strip_prefix("argument.") {
            Some(name) => {
                let argument = table.entry("argument").or_insert_with(|| {
                    let mut table = Table::new();
                    table.set_dotted(true);
                    Item::Table(table)
                });
                let argument = argument.as_table_mut().ok_or("`argument` is not a section")?;
                argument.insert(name, value(text));
            }
            None => _ = table.insert(name, value(text)),
        }
    }
    let rules =
        document.entry("rules").or_insert_with(|| Item::ArrayOfTables(ArrayOfTables::new()));
    let rules = rules.as_array_of_tables_mut().ok_or("`rules` is written as a list in brackets")?;
    if rules.iter().any(|known| are_same_rule(known, &table)) {
        return Ok(None);
    }
    // The user allowed a changed tool again, so the rule for its previous definition is obsolete.
    let earlier = rules.iter().position(|known| is_earlier(known, &table));
    match earlier.and_then(|at| rules.get_mut(at)) {
        Some(known) => *known = table,
        None => rules.push(table),
    }
    Ok(Some(document.to_string()))
}

/// Returns true if a rule differs from a new one only in the tool's definition.
fn is_earlier(known: &Table, new: &Table) -> bool {
    let mut known = known.clone();
    known.remove(DEFINITION_KEY).is_some()
        && new.get(DEFINITION_KEY).is_some_and(|now| {
            known.insert(DEFINITION_KEY, now.clone());
            are_same_rule(&known, new)
        })
}

/// Returns the text without the rule of this number, counted from 1.
///
/// # Errors
/// The problem with the text, or that the rule does not exist.
pub fn remove_rule(text: &str, number: usize) -> Result<String, String> {
    let mut document = parse_document(text)?;
    let rules = document.get_mut("rules").and_then(Item::as_array_of_tables_mut);
    let rules = rules.ok_or("it has no rules")?;
    if number == 0 || number > rules.len() {
        return Err(format!("it has {} rules, but no rule {number}", rules.len()));
    }
    rules.remove(number - 1);
    Ok(document.to_string())
}

/// Changes a file of the user: reads it, edits it, writes it next to the old one, and renames it. A
/// missing file counts as empty. Returns true if it changed.
///
/// # Errors
/// When the file cannot be read or written, or the edit fails.
pub fn edit_rules(
    path: &Path,
    edit: impl FnOnce(&str) -> Result<Option<String>, String>,
) -> Result<bool, ConfigError> {
    let failed = |cause: String| ConfigError::Edit { path: path.to_owned(), cause };
    let text = read_config_text(path)?.unwrap_or_default();
    let Some(text) = edit(&text).map_err(failed)? else { return Ok(false) };
    replace_file(path, &text).map_err(|error| failed(error.to_string()))?;
    Ok(true)
}

fn parse_document(text: &str) -> Result<DocumentMut, String> {
    text.parse().map_err(|error: toml_edit::TomlError| error.message().to_owned())
}

/// Returns true if two rules mean the same, however they are written.
fn are_same_rule(one: &Table, other: &Table) -> bool {
    fn sorted_entries(table: &Table) -> Vec<(String, String)> {
        let mut keys: Vec<(String, String)> = Vec::new();
        for (name, item) in table.iter() {
            match item.as_table_like() {
                Some(inner) => {
                    for (inner_name, item) in inner.iter() {
                        let text = item.as_str().map_or_else(|| item.to_string(), str::to_owned);
                        keys.push((format!("{name}.{inner_name}"), text));
                    }
                }
                None => {
                    let text = item.as_str().map_or_else(|| item.to_string(), str::to_owned);
                    keys.push((name.to_owned(), text.trim().to_owned()));
                }
            }
        }
        keys.sort();
        keys
    }
    sorted_entries(one) == sorted_entries(other)
}
