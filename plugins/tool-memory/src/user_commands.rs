//! The command `memory`, with which the user lists, edits and removes memories.

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::types::CommandSpec;

use crate::record::{CONTENT_BYTES_MAX, MemoryRecord, MemoryScope, check_text};
use crate::scopes::{MemoryScopes, ScopesResult};

/// The command's name.
pub const NAME: &str = "memory";
/// The maximum number of memories that the list shows for each scope.
const LISTED_MAX: u32 = 100;

const HELP: &str = "memory list            what is remembered, the newest first
memory remove ID       forgets one for good
memory edit ID TEXT    gives one another content
memory help            this text

A model keeps memories with store_memory and reads them with retrieve_memories. Those of the scope
`project` are known in this workspace, those of `universal` everywhere.";

/// Returns the command's spec.
pub fn memory_command_spec() -> CommandSpec {
    CommandSpec {
        name: NAME.to_owned(),
        description: "Shows, changes or removes what is remembered: memory remove ID".to_owned(),
        parameters: json!({
            "type": "object",
            "properties": {
                "action": {
                    "enum": ["list", "remove", "edit", "help"],
                    "default": "list",
                    "description": "What to do.",
                },
                "id": { "type": "string", "description": "Which memory." },
                "text": { "type": "string", "x-capture-rest": true, "description": "Its new content." },
            },
            "additionalProperties": false,
        }),
        ..CommandSpec::default()
    }
}

/// Runs the command.
///
/// # Errors
/// An error if no memory has the id, or the files cannot be used.
pub fn run_memory_command(scopes: &MemoryScopes, arguments: &Value) -> Result<String> {
    let given = |name: &str| arguments[name].as_str().map(str::trim).filter(|it| !it.is_empty());
    let required = |name: &str| {
        let text = format!("`{name}` is missing");
        let error = || Error::new(ErrorKind::InvalidArguments, text);
        given(name).ok_or_else(|| error().with_hint("see `memory help`"))
    };
    match given("action").unwrap_or("list") {
        "remove" => {
            let id = required("id")?;
            let scope = scopes.remove_memory(id)?;
            Ok(format!("removed {id} ({})", scope.scope_name()))
        }
        "edit" => {
            let (id, text) = (required("id")?, required("text")?);
            check_text("text", text, CONTENT_BYTES_MAX)?;
            let scope = scopes.edit_memory(id, text)?;
            Ok(format!("changed {id} ({})", scope.scope_name()))
        }
        "help" => Ok(HELP.to_owned()),
        _ => list_memories(scopes),
    }
}

fn list_memories(scopes: &MemoryScopes) -> Result<String> {
    let ScopesResult { found, failed } = scopes.list_scopes(LISTED_MAX)?;
    let mut lines: Vec<String> = failed.into_iter().map(|error| error.message).collect();
    for (scope, (total, newest)) in found {
        if total == 0 {
            continue;
        }
        let heading = match scope {
            MemoryScope::Project => "of this workspace:",
            MemoryScope::Universal => "of all workspaces:",
        };
        lines.push(heading.to_owned());
        lines.extend(newest.iter().map(format_memory_line));
        if total > LISTED_MAX {
            lines.push(format!("  … and {} older ones", total - LISTED_MAX));
        }
    }
    Ok(if lines.is_empty() { "no memories".to_owned() } else { lines.join("\n") })
}

fn format_memory_line(memory: &MemoryRecord) -> String {
    let used = match memory.usage_count {
        0 => String::new(),
        count => format!(", used {count} times"),
    };
    let tags = memory.tags.join(", ");
    format!("  {}  [{tags}] {}{used}", memory.id, memory.description)
}
