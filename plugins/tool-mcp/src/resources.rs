//! The resources of servers. One tool lists them, and another reads one.

use std::sync::Arc;

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::serde_json;
use jaato_plugin_sdk::types::text::truncate_bytes;
use rmcp::model::{
    ClientRequest, ListResourceTemplatesRequest, ListResourcesRequest, PaginatedRequestParams,
    ServerResult,
};

use crate::call::{self, McpRequest};
use crate::call_context::McpCallContext;
use crate::content::McpContent;
use crate::server::McpServer;
use crate::server_description::{plain_text, take_member};

/// The name of the tool that lists resources.
pub const LIST: &str = "mcp_list_resources";
/// The name of the tool that reads a resource.
pub const READ: &str = "mcp_read_resource";

/// The maximum number of resources listed in one response.
const LISTED_MAX: usize = 200;
/// The maximum length of a line about a resource.
const LINE_BYTES_MAX: usize = 300;

/// Describes both tools. `origin` identifies the servers that have resources.
pub fn resource_tool_specs(origin: &str) -> [ToolSpec; 2] {
    let server = json!({ "type": "string", "description": "The server's name." });
    let spec = |name: &str, description: &str, properties: Value, required: &[&str]| ToolSpec {
        name: name.into(),
        description: description.to_owned(),
        parameters: json!({
            "type": "object", "properties": properties, "required": required,
            "additionalProperties": false,
        }),
        // A server answers the call, and only that server knows what a URI refers to.
        foreign: true,
        origin: origin.to_owned(),
        category: crate::names::CATEGORY.to_owned(),
        ..ToolSpec::default()
    };
    let cursor = json!({ "type": "string", "description": "To continue the list: `next` of the last result." });
    [
        spec(
            LIST,
            "List an MCP server's resources (documents and data) and URI templates.",
            json!({ "server": server, "cursor": cursor }),
            &["server"],
        ),
        spec(
            READ,
            "Read a resource of an MCP server by its URI.",
            json!({ "server": server, "uri": { "type": "string", "description": "The URI, as listed." } }),
            &["server", "uri"],
        ),
    ]
}

/// Runs one of the tools.
///
/// # Errors
/// The server's error.
pub async fn run_resource_tool(
    cx: &Reporter,
    server: &Arc<McpServer>,
    name: &str,
    arguments: &Value,
    site: Arc<dyn McpCallContext>,
) -> Result<Output> {
    match name {
        READ => {
            let uri = arguments["uri"].as_str().unwrap_or_default().to_owned();
            let mut answer =
                call::send_mcp_request(server, &McpRequest::Resource { uri }, Some(site)).await?;
            let mut content = McpContent::default();
            if let Value::Array(contents) = take_member(&mut answer, "contents") {
                contents.into_iter().take(LISTED_MAX).for_each(|it| content.add_resource(it));
            }
            Ok(Output::json(content.into_tool_result(cx, READ).await?))
        }
        _ => list_resources(server, arguments["cursor"].as_str().map(str::to_owned)).await,
    }
}

async fn list_resources(server: &Arc<McpServer>, cursor: Option<String>) -> Result<Output> {
    let connection = server.wait_until_connected().await?;
    let time = server.entry.timeout;
    let is_first = cursor.is_none();
    let params = PaginatedRequestParams::default().with_cursor(cursor);
    let request: ClientRequest = ListResourcesRequest::with_param(params).into();
    let answer = server_result_to_json(connection.request(request, time, None).await?)?;
    let mut told = json!({ "resources": shorten_entries(&answer["resources"], "uri") });
    if let Some(next) = answer["nextCursor"].as_str() {
        told["next"] = next.into();
    }
    if is_first {
        let params = PaginatedRequestParams::default();
        let request: ClientRequest = ListResourceTemplatesRequest::with_param(params).into();
        // Most servers have no templates, and some do not know this request.
        if let Ok(answer) = connection.request(request, time, None).await {
            let templates = shorten_entries(
                &server_result_to_json(answer)?["resourceTemplates"],
                "uriTemplate",
            );
            if !templates.is_empty() {
                told["templates"] = Value::Array(templates);
            }
        }
    }
    Ok(Output::json(told))
}

fn server_result_to_json(answer: ServerResult) -> Result<Value> {
    match answer {
        ServerResult::CustomResult(custom) => Ok(custom.0),
        known => serde_json::to_value(known).map_err(|error| Error::failed(error.to_string())),
    }
}

/// Keeps only the fields that help the model choose an entry.
fn shorten_entries(list: &Value, address: &str) -> Vec<Value> {
    let keys = [address, "name", "title", "description", "mimeType"];
    let entry = |entry: &Value| {
        let known = keys.iter().filter_map(|key| {
            let text = entry[*key].as_str()?;
            // A shortened URI would be invalid.
            let text = if *key == address {
                text.to_owned()
            } else {
                truncate_bytes(&plain_text(text), LINE_BYTES_MAX)
            };
            Some(((*key).to_owned(), Value::from(text)))
        });
        Value::Object(known.collect())
    };
    list.as_array().into_iter().flatten().take(LISTED_MAX).map(entry).collect()
}
