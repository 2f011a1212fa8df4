//! Unwraps calls inside a call. OpenAI's models sometimes call their internal wrapper as if it were
//! a tool. Pure.

use jaato_plugin_sdk::serde_json::{Map, Value};
use jaato_plugin_sdk::types::ToolCall;

/// The wrapper's name, and the forms to which models shorten it.
const WRAPPERS: [&str; 3] = ["multi_tool_use.parallel", "multi_tool_use_parallel", "parallel"];

/// The prefix of tool names inside the wrapper.
const NAMESPACE: &str = "functions.";

/// Returns the calls inside a wrapper, or the call itself. An unreadable wrapper is kept, so that
/// the model gets the error of an unknown tool.
pub fn unwrap_calls(call: ToolCall) -> Vec<ToolCall> {
    let inner = WRAPPERS.contains(&call.name.as_str()).then(|| inner_calls(&call)).flatten();
    inner.unwrap_or_else(|| vec![call])
}

fn inner_calls(call: &ToolCall) -> Option<Vec<ToolCall>> {
    let uses = call.arguments["tool_uses"].as_array().filter(|uses| !uses.is_empty())?;
    let one = |(number, one): (usize, &Value)| {
        // A real tool may have the wrapper's name, but gets other arguments.
        let name = one["recipient_name"].as_str()?.strip_prefix(NAMESPACE)?;
        let arguments = match &one["parameters"] {
            Value::Null => Value::Object(Map::new()),
            given => given.clone(),
        };
        Some(ToolCall::new(format!("{}-{number}", call.id.as_str()), name, arguments))
    };
    uses.iter().enumerate().map(one).collect()
}

#[cfg(test)]
mod tests {
    use jaato_plugin_sdk::serde_json::json;

    use super::*;

    #[test]
    fn calls_inside_a_wrapper_call_are_unwrapped() {
        let uses = json!({ "tool_uses": [
            { "recipient_name": "functions.look", "parameters": { "at": "a" } },
            { "recipient_name": "functions.look" },
        ] });
        for name in WRAPPERS {
            let calls = unwrap_calls(ToolCall::new("c", name, uses.clone()));
            let expected = [
                ToolCall::new("c-0", "look", json!({ "at": "a" })),
                ToolCall::new("c-1", "look", json!({})),
            ];
            assert_eq!(calls, expected, "{name}");
        }
    }

    #[test]
    fn other_calls_are_not_unwrapped() {
        for (name, arguments) in [
            ("look", json!({ "tool_uses": [{ "recipient_name": "functions.x" }] })),
            ("parallel", json!({ "tool_uses": [] })),
            ("parallel", json!({ "tool_uses": [{ "parameters": {} }] })),
            ("parallel", json!({ "tool_uses": [{ "recipient_name": "look" }] })),
            ("parallel", json!("{")),
        ] {
            let call = ToolCall::new("c", name, arguments);
            assert_eq!(unwrap_calls(call.clone()), [call]);
        }
    }
}
