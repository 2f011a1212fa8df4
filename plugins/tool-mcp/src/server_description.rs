//! A server's description of itself. It is requested once per connection and after each change, and
//! cached otherwise.
//!
//! The content is untrusted: it is limited, cleaned, and only ever treated as data.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jaato_plugin_sdk::serde::{Deserialize, Serialize};
use jaato_plugin_sdk::serde_json::{self, Map, Value};
use jaato_plugin_sdk::types::text::truncate_bytes;
use jaato_plugin_sdk::{Error, Result};
use rmcp::model::{
    ClientRequest, ListPromptsRequest, ListToolsRequest, PaginatedRequestParams, ServerResult,
};

use crate::connection::{McpConnection, ProtocolEra};
use crate::schema;

/// The maximum number of tools of all servers, and therefore of one. The host accepts 1,000 from a
/// plugin.
pub const TOOLS_MAX: usize = 900;
/// The maximum number of prompts of one server. The host accepts 200 commands in total.
pub const PROMPTS_MAX: usize = 50;
/// The maximum number of pages of a list.
const PAGES_MAX: usize = 100;
/// The maximum length of a tool's description, in bytes. The host accepts 16 KiB.
const DESCRIPTION_BYTES_MAX: usize = 8 * 1024;
/// The maximum length of a server's instructions.
pub const INSTRUCTIONS_BYTES_MAX: usize = 4 * 1024;
/// The maximum length of a name, title or line.
const LINE_BYTES_MAX: usize = 300;
/// The time limit of each list.
const LIST_TIME: Duration = Duration::from_secs(20);

/// The description of a server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(crate = "jaato_plugin_sdk::serde", default)]
pub struct ServerDescription {
    /// The server's protocol era.
    pub era: ProtocolEra,
    /// The protocol version.
    pub protocol: String,
    /// The server's name for itself. Not reliable.
    pub title: String,
    /// The server's instructions about its tools.
    pub instructions: String,
    /// Its tools.
    pub tools: Vec<RemoteTool>,
    /// Its prompts.
    pub prompts: Vec<RemotePrompt>,
    /// Whether it has resources.
    pub has_resources: bool,
    /// Problems of its lists, one per line.
    pub lines: Vec<String>,
    /// The number of tools and prompts that cannot be used.
    pub left_out: usize,
}

/// A tool as described by a server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(crate = "jaato_plugin_sdk::serde", default)]
pub struct RemoteTool {
    /// The server's name for the tool.
    pub name: String,
    /// The tool's description.
    pub description: String,
    /// The lowered schema of its arguments.
    pub schema: Value,
    /// The server's property names by the names that replace them in the schema.
    pub aliases: BTreeMap<String, String>,
    /// Whether the server declares repeated calls safe.
    pub may_repeat: bool,
    /// Whether the server declares that the tool only reads.
    pub reads_only: bool,
}

/// A prompt as described by a server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(crate = "jaato_plugin_sdk::serde", default)]
pub struct RemotePrompt {
    /// The server's name for the prompt.
    pub name: String,
    /// The prompt's description.
    pub description: String,
    /// The prompt's arguments.
    pub arguments: Vec<RemoteArgument>,
}

/// An argument of a prompt.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(crate = "jaato_plugin_sdk::serde", default)]
pub struct RemoteArgument {
    /// The argument's name.
    pub name: String,
    /// The argument's description.
    pub description: String,
    /// Whether the argument is required.
    pub required: bool,
}

/// A tool as written in the server's list. A broken tool does not affect the others.
#[derive(Debug, Default, Deserialize)]
#[serde(crate = "jaato_plugin_sdk::serde", default, rename_all = "camelCase")]
struct RawServerTool {
    name: String,
    title: Option<String>,
    description: Option<String>,
    input_schema: Map<String, Value>,
    annotations: Option<Map<String, Value>>,
    arguments: Option<Vec<RemoteArgument>>,
}

/// Requests a server's description. Must run on the runtime.
///
/// # Errors
/// The server's error for its list of tools. If another list fails, only that list is missing.
pub async fn request_description(connection: &Arc<McpConnection>) -> Result<ServerDescription> {
    let info = Arc::clone(&connection.info);
    let capabilities = &info.capabilities;
    let mut lines = Vec::new();
    let mut tools = match capabilities.tools {
        Some(_) => list_all_pages(connection, ServerListKind::Tools, &mut lines).await?,
        None => Vec::new(),
    };
    let left_out = tools.len().saturating_sub(TOOLS_MAX);
    tools.truncate(TOOLS_MAX);
    let mut prompts = match capabilities.prompts {
        Some(_) => list_all_pages(connection, ServerListKind::Prompts, &mut lines)
            .await
            .unwrap_or_else(|error| {
                lines.push(format!("its prompts: {}", error.message));
                Vec::new()
            }),
        None => Vec::new(),
    };
    let left_out = left_out + prompts.len().saturating_sub(PROMPTS_MAX);
    prompts.truncate(PROMPTS_MAX);
    let title = info.server_info.as_ref().map(|it| format!("{} {}", it.name, it.version));
    let instructions = info.instructions.as_deref().unwrap_or_default();
    let described = ServerDescription {
        era: connection.era,
        protocol: info.protocol_version.to_string(),
        title: truncate_bytes(&title.unwrap_or_default(), LINE_BYTES_MAX),
        instructions: truncate_bytes(&plain_text(instructions), INSTRUCTIONS_BYTES_MAX),
        has_resources: capabilities.resources.is_some(),
        left_out,
        ..ServerDescription::default()
    };
    // Schemas may be large, so they are not processed on the thread that all servers share.
    let clean = move || described.with_lists(tools, prompts, lines);
    tokio::task::spawn_blocking(clean).await.map_err(|_| Error::failed("its lists were lost"))
}

/// Lists a server's tools only to update the connection. The offered tools change when the server
/// reports that its list has changed.
///
/// # Errors
/// The server's error.
pub async fn refresh_tools(connection: &McpConnection) -> Result<()> {
    list_all_pages(connection, ServerListKind::Tools, &mut Vec::new()).await.map(drop)
}

impl ServerDescription {
    /// Adds the content of the lists.
    fn with_lists(mut self, tools: Vec<Value>, prompts: Vec<Value>, lines: Vec<String>) -> Self {
        self.lines = lines;
        let mut names = BTreeSet::new();
        for value in tools {
            match parse_raw_tool(value, &mut names) {
                Ok(tool) => self.tools.push(tool.into_tool(&mut self.lines)),
                Err(why) => self.skip_item(format!("a tool is ignored: {why}")),
            }
        }
        let mut names = BTreeSet::new();
        for value in prompts {
            match parse_raw_tool(value, &mut names) {
                Ok(prompt) => self.prompts.push(prompt.into_prompt()),
                Err(why) => self.skip_item(format!("a prompt is ignored: {why}")),
            }
        }
        // Limits the lines that the user and the model see.
        self.lines.truncate(20);
        self
    }

    fn skip_item(&mut self, line: String) {
        self.left_out += 1;
        self.lines.push(line);
    }
}

fn parse_raw_tool(
    value: Value,
    names: &mut BTreeSet<String>,
) -> std::result::Result<RawServerTool, String> {
    let written: RawServerTool = serde_json::from_value(value)
        .map_err(|error| truncate_bytes(&error.to_string(), LINE_BYTES_MAX))?;
    if written.name.is_empty() || written.name.len() > 1024 {
        return Err("its name is empty or longer than 1024 bytes".to_owned());
    }
    match names.insert(written.name.clone()) {
        true => Ok(written),
        false => {
            Err(format!("`{}` is listed twice", truncate_bytes(&plain_text(&written.name), 80)))
        }
    }
}

impl RawServerTool {
    fn into_tool(self, lines: &mut Vec<String>) -> RemoteTool {
        let lowered = schema::lower_schema(&self.input_schema);
        if lowered.is_cut {
            lines.push(format!(
                "`{}`: its schema is simplified",
                truncate_bytes(&plain_text(&self.name), 80)
            ));
        }
        let hint = |name: &str| {
            let hint = self.annotations.as_ref().and_then(|it| it.get(name));
            hint.and_then(Value::as_bool) == Some(true)
        };
        RemoteTool {
            may_repeat: hint("readOnlyHint") || hint("idempotentHint"),
            reads_only: hint("readOnlyHint"),
            description: self.description_text(),
            name: self.name,
            schema: lowered.schema,
            aliases: lowered.aliases,
        }
    }

    fn into_prompt(self) -> RemotePrompt {
        let description = truncate_bytes(&self.description_text(), LINE_BYTES_MAX);
        let arguments = self.arguments.unwrap_or_default().into_iter().take(20);
        RemotePrompt { description, name: self.name, arguments: arguments.collect() }
    }

    fn description_text(&self) -> String {
        let given = self.description.as_deref().filter(|it| !it.trim().is_empty());
        let text = given.or(self.title.as_deref()).unwrap_or(&self.name);
        truncate_bytes(&plain_text(text), DESCRIPTION_BYTES_MAX)
    }
}

#[derive(Clone, Copy)]
enum ServerListKind {
    Tools,
    Prompts,
}

/// Reads all pages of a list.
async fn list_all_pages(
    connection: &McpConnection,
    what: ServerListKind,
    lines: &mut Vec<String>,
) -> Result<Vec<Value>> {
    let (key, max) = match what {
        ServerListKind::Tools => ("tools", TOOLS_MAX),
        ServerListKind::Prompts => ("prompts", PROMPTS_MAX),
    };
    let mut all = Vec::new();
    let mut cursor: Option<String> = None;
    for _ in 0..PAGES_MAX {
        let params = PaginatedRequestParams::default().with_cursor(cursor.clone());
        let request = match what {
            ServerListKind::Tools => ListToolsRequest::with_param(params).into(),
            ServerListKind::Prompts => ListPromptsRequest::with_param(params).into(),
        };
        let (mut page, next) = request_page(connection, request, key).await?;
        all.append(&mut page);
        if all.len() > max {
            lines.push(format!("it has more than {max} {key}: only the first {max} are used"));
            return Ok(all);
        }
        // An empty cursor is valid, but the same cursor again would loop forever.
        if next.is_none() || next == cursor {
            return Ok(all);
        }
        cursor = next;
    }
    lines
        .push(format!("its list of {key} does not end: only the first {PAGES_MAX} pages are used"));
    Ok(all)
}

async fn request_page(
    connection: &McpConnection,
    request: ClientRequest,
    key: &str,
) -> Result<(Vec<Value>, Option<String>)> {
    let answer = connection.request_on_runtime(request, LIST_TIME, None).await?;
    // One broken entry makes the whole result unknown to `rmcp`, so each entry is read separately.
    let mut answer = match answer {
        ServerResult::CustomResult(custom) => custom.0,
        known => serde_json::to_value(known).map_err(|error| Error::failed(error.to_string()))?,
    };
    let next = answer["nextCursor"].as_str().map(str::to_owned);
    match take_member(&mut answer, key) {
        Value::Array(list) => Ok((list, next)),
        _ => Err(Error::failed(format!("the server answered without a list of {key}"))),
    }
}

/// Takes a value out of an object. Returns null for any other value, because indexing would panic.
pub fn take_member(value: &mut Value, key: &str) -> Value {
    value.get_mut(key).map(Value::take).unwrap_or_default()
}

/// Removes control characters and invisible characters, but keeps line breaks and tabs.
pub fn plain_text(text: &str) -> String {
    let is_bad = |c: char| {
        (c.is_control() && !matches!(c, '\n' | '\t'))
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
    };
    text.chars().filter(|&c| !is_bad(c)).collect()
}

#[cfg(test)]
mod tests {
    use jaato_plugin_sdk::serde_json::json;

    use super::*;

    #[test]
    fn broken_tool_description_affects_no_other_tool() {
        let tools = vec![
            json!({ "name": "good", "inputSchema": { "type": "object" }, "annotations": { "readOnlyHint": true } }),
            json!({ "name": 1 }),
            json!({ "inputSchema": {} }),
            json!({ "name": "good", "description": "again" }),
            json!({ "name": "bare", "title": "Bare", "description": "\u{1b}[2J\u{202e}x\nB" }),
        ];
        let described = ServerDescription::default().with_lists(tools, Vec::new(), Vec::new());
        let names: Vec<_> = described
            .tools
            .iter()
            .map(|it| (it.name.as_str(), it.description.as_str(), it.may_repeat))
            .collect();
        assert_eq!(names, [("good", "good", true), ("bare", "[2Jx\nB", false)]);
        assert_eq!(described.lines.len(), 3, "{:?}", described.lines);
    }
}
