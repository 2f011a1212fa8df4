//! The files, hosts and command lines that a tool call touches, as declared by the tool's schema.
//!
//! In a tool's parameters, the keyword [`KEYWORD`] of a property declares what its strings are. It
//! applies to all strings below the property, unless a nested property has its own. Rules about
//! files, hosts and commands use the result ([`ToolCallTargets`]) instead of guessing from argument
//! names. The host removes the keyword from the schema before a model sees it.
//!
//! Invariant: each string of the arguments appears in a [`ToolCallTargets`] or is declared as plain
//! text.

mod walk;

use std::collections::BTreeSet;

use serde_json::Value;

use walk::{SchemaPosition, SchemaTrust, SchemaWalk};

/// The JSON Schema keyword that declares what a string is.
pub const KEYWORD: &str = "x-jaato-touches";

/// The kind of a declared string.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum ArgumentUse {
    /// The path of a file or folder that the tool reads: `"read"`.
    Read,
    /// A path that the tool writes, moves or deletes: `"write"`.
    Write,
    /// A folder that the tool reads recursively: `"search_root"`.
    SearchRoot,
    /// A pattern of file names, relative to the search roots of the call, or to the working
    /// directory if the call has no search roots: `"pattern"`.
    Pattern,
    /// A host or a URL: `"host"`.
    Host,
    /// A command line: `"command"`.
    Command,
    /// A patch in the format `*** Begin Patch`, which names the files that it writes: `"patch"`.
    Patch,
    /// Plain text, with the reason: `{"text": "REASON"}`.
    Text(String),
}

/// The declared and undeclared strings of one call's arguments, in the order of the arguments.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolCallTargets {
    /// Paths that the call reads.
    pub reads: Vec<String>,
    /// Paths that the call writes, moves or deletes.
    pub writes: Vec<String>,
    /// Folders that the call reads recursively.
    pub search_roots: Vec<String>,
    /// Patterns of file names, relative to each search root, or to the working directory if the
    /// call has no search roots.
    pub patterns: Vec<String>,
    /// Hosts and URLs.
    pub hosts: Vec<String>,
    /// Command lines.
    pub commands: Vec<String>,
    /// Strings that the schema does not declare. Each may be a path, a host or a command line.
    pub undeclared: Vec<UndeclaredString>,
    /// Whether the arguments have too many values to read, so that the call may touch anything.
    pub everything: bool,
}

/// A string that the schema does not declare.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct UndeclaredString {
    /// The name of the nearest property. Empty at the top level.
    pub name: String,
    /// The string.
    pub text: String,
}

impl ArgumentUse {
    /// Parses the keyword's value. Returns `None` for an unknown word and for an empty reason.
    pub fn parse(value: &Value) -> Option<Self> {
        match value {
            Value::String(word) => match word.as_str() {
                "read" => Some(Self::Read),
                "write" => Some(Self::Write),
                "search_root" => Some(Self::SearchRoot),
                "pattern" => Some(Self::Pattern),
                "host" => Some(Self::Host),
                "command" => Some(Self::Command),
                "patch" => Some(Self::Patch),
                _ => None,
            },
            Value::Object(object) => {
                let reason = object.get("text")?.as_str()?.trim();
                let is_alone = object.len() == 1 && !reason.is_empty();
                is_alone.then(|| Self::Text(reason.to_owned()))
            }
            _ => None,
        }
    }

    /// Returns a word for how the tool uses the string.
    pub fn use_word(&self) -> &str {
        match self {
            Self::Read => "read",
            Self::Write => "written",
            Self::SearchRoot => "searched",
            Self::Pattern => "file pattern",
            Self::Host => "contacted",
            Self::Command => "run",
            Self::Patch => "patch",
            Self::Text(_) => "text",
        }
    }
}

impl ToolCallTargets {
    /// Collects the strings of a call's arguments according to the tool's schema.
    pub fn from_arguments(schema: &Value, arguments: &Value) -> Self {
        SchemaWalk::new(schema, SchemaTrust::Declarations).visit_arguments(arguments)
    }

    /// Collects the strings of a call's arguments if the author of the schema is not trusted. All
    /// of them are undeclared. The schema only determines which property names the caller did not
    /// choose.
    pub fn from_foreign_arguments(schema: &Value, arguments: &Value) -> Self {
        SchemaWalk::new(schema, SchemaTrust::Nothing).visit_arguments(arguments)
    }

    /// Returns true if the schema declares all strings, so that the lists are complete.
    pub fn is_complete(&self) -> bool {
        !self.everything && self.undeclared.is_empty()
    }

    fn record_target(&mut self, kind: Option<&ArgumentUse>, name: &str, text: &str) {
        let list = match kind {
            Some(ArgumentUse::Read) => &mut self.reads,
            Some(ArgumentUse::Write) => &mut self.writes,
            Some(ArgumentUse::SearchRoot) => &mut self.search_roots,
            Some(ArgumentUse::Pattern) => &mut self.patterns,
            Some(ArgumentUse::Host) => &mut self.hosts,
            Some(ArgumentUse::Command) => &mut self.commands,
            Some(ArgumentUse::Patch) => {
                let paths = text.lines().filter_map(parse_patched_path);
                return self.writes.extend(paths.map(str::to_owned));
            }
            Some(ArgumentUse::Text(_)) => return,
            None => {
                let (name, text) = (name.to_owned(), text.to_owned());
                return self.undeclared.push(UndeclaredString { name, text });
            }
        };
        list.push(text.to_owned());
    }
}

/// Parses the path in a line of a patch. A context line that looks like a header counts as one, so
/// that no header is missed.
fn parse_patched_path(line: &str) -> Option<&str> {
    let header = line.trim().strip_prefix("*** ")?;
    let words = ["Add File:", "Delete File:", "Update File:", "Move to:"];
    let path = words.into_iter().find_map(|word| header.strip_prefix(word))?.trim();
    (!path.is_empty()).then_some(path)
}

/// Returns the places where a schema accepts strings that the caller chooses, such as
/// `operations[].path`, with their declared kinds.
pub fn declared_strings(schema: &Value) -> BTreeSet<(String, Option<ArgumentUse>)> {
    let mut found = BTreeSet::new();
    let mut walk = SchemaWalk::new(schema, SchemaTrust::Declarations);
    walk.visit_schema("", &SchemaPosition { schema: Some(schema), kind: None }, 0, &mut found);
    found
}

/// Returns the places where a schema accepts strings that it does not declare. Empty if the schema
/// declares everything.
pub fn undeclared_strings(schema: &Value) -> Vec<String> {
    let strings = declared_strings(schema).into_iter();
    strings.filter(|(_, kind)| kind.is_none()).map(|(place, _)| place).collect()
}

/// Removes the keyword from a schema. Returns true if it was there.
pub fn strip_use_keyword(schema: &mut Value) -> bool {
    // `any` would stop at the first match.
    let strip_all = |was_there: bool, below: &mut Value| strip_use_keyword(below) || was_there;
    match schema {
        Value::Object(object) => {
            let was_there = object.shift_remove(KEYWORD).is_some();
            object.values_mut().fold(was_there, strip_all)
        }
        Value::Array(items) => items.iter_mut().fold(false, strip_all),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Returns a schema without the keyword.
pub fn without_use_keyword(schema: &Value) -> Value {
    let mut schema = schema.clone();
    strip_use_keyword(&mut schema);
    schema
}

#[cfg(test)]
mod tests;
