//! Selects and shortens the tools for a small model: few parameters, short descriptions.

use jaato_plugin_sdk::types::{CompletionRequest, ToolSpec};
use serde_json::{Map, Value};

/// The host's tools that find other tools. A small model calls them instead of the right tool.
const FINDERS: [&str; 2] = ["list_tools", "get_tool_schemas"];

/// Returns the tools of a request by name, so that their order does not change the prompt's start.
///
/// A tool keeps the parameters that it requires and those of its first example, and all of these
/// become required. A tool without an example keeps all parameters. The grammar allows the model no
/// other ones.
pub fn shown_tools(request: &CompletionRequest) -> Vec<ToolSpec> {
    let is_finder = |tool: &&ToolSpec| FINDERS.contains(&tool.name.as_str());
    let has_others = !request.tools.iter().all(|tool| is_finder(&tool));
    let tools = request.tools.iter().filter(|tool| !(has_others && is_finder(tool)));
    let mut tools: Vec<ToolSpec> = tools.map(shorten_tool).collect();
    tools.sort_by(|a, b| a.name.cmp(&b.name));
    tools
}

fn shorten_tool(tool: &ToolSpec) -> ToolSpec {
    let mut tool = tool.clone();
    let ends = [". ", "; "].iter().filter_map(|end| tool.description.find(end));
    if let Some(end) = ends.min() {
        tool.description.truncate(end);
        tool.description.push('.');
    }
    let example = tool.examples.first().map(|example| &example.arguments);
    if let (Some(example), Some(schema)) = (example, tool.parameters.as_object_mut()) {
        keep_parameters(schema, example);
    }
    tool
}

fn keep_parameters(schema: &mut Map<String, Value>, example: &Map<String, Value>) {
    let mut names: Vec<Value> =
        schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) else {
        return;
    };
    let more = example.keys().filter(|name| properties.contains_key(*name));
    let more: Vec<Value> = more.map(|name| Value::from(name.as_str())).collect();
    names.extend(more.into_iter().filter(|name| !names.contains(name)).collect::<Vec<_>>());
    properties.retain(|name, _| names.iter().any(|kept| kept.as_str() == Some(name)));
    for (name, property) in properties.iter_mut().filter(|(name, _)| example.contains_key(*name)) {
        if let Some(Value::Array(types)) = property.get_mut("type")
            && !example.get(name).is_some_and(Value::is_null)
        {
            types.retain(|kind| kind != "null");
            if let [one] = types.as_slice() {
                property["type"] = one.clone();
            }
        }
    }
    schema.insert("required".to_owned(), Value::Array(names));
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn request_with_tools(tools: Value) -> CompletionRequest {
        let mut request = CompletionRequest::new(String::new(), Vec::new());
        request.tools = serde_json::from_value(tools).unwrap();
        request
    }

    #[test]
    fn tool_keeps_required_arguments_and_those_of_its_first_example() {
        let text = json!({"type": ["string", "null"]});
        let tools = shown_tools(&request_with_tools(json!([
            {"name": "edit", "description": "Change it. At once.", "parameters": {"type": "object",
                "properties": {"path": {"type": "string"}, "old": text, "other": text},
                "required": ["path"]},
                "examples": [{"phrase": "x", "arguments": {"path": "a", "old": "b"}}]},
            {"name": "bare", "description": "b", "parameters": {"type": "object",
                "properties": {"old": text}}},
        ])));
        assert_eq!((tools[0].name.as_str(), tools[1].name.as_str()), ("bare", "edit"));
        assert_eq!(tools[0].parameters["properties"], json!({"old": text}));
        assert_eq!(tools[1].description, "Change it.");
        let kept = json!({"path": {"type": "string"}, "old": {"type": "string"}});
        assert_eq!(tools[1].parameters["properties"], kept);
        assert_eq!(tools[1].parameters["required"], json!(["path", "old"]));
    }

    #[test]
    fn list_tools_is_shown_only_without_other_tools() {
        let named = |name: &str| json!({"name": name, "description": "", "parameters": {}});
        let names = |tools: Value| -> Vec<String> {
            shown_tools(&request_with_tools(tools))
                .iter()
                .map(|tool| tool.name.to_string())
                .collect()
        };
        assert_eq!(names(json!([named("list_tools"), named("a")])), ["a"]);
        assert_eq!(names(json!([named("list_tools")])), ["list_tools"]);
    }
}
