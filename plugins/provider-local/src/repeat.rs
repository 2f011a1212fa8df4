//! Notices a call that was answered already in the same turn.
//!
//! A small model likes to make the same call again instead of reading its result. The result would
//! be the same, and so would be the next call: it must say something instead.

use jaato_plugin_sdk::types::{Message, Role};
use serde_json::{Map, Value};

/// Tells whether the same call has a result, not an error, since the user last said something.
pub fn is_repeated(messages: &[Message], name: &str, arguments: &Map<String, Value>) -> bool {
    let turn = messages.iter().rposition(|message| message.role == Role::User).unwrap_or(0);
    let turn = &messages[turn..];
    let mut same = turn
        .iter()
        .flat_map(Message::tool_calls)
        .filter(|call| call.name.as_str() == name && call.arguments.as_object() == Some(arguments));
    same.any(|call| {
        let mut results = turn.iter().flat_map(Message::tool_results);
        results.any(|result| result.call_id == call.id && !result.is_error)
    })
}

#[cfg(test)]
mod tests {
    use jaato_plugin_sdk::types::{Part, ToolCall, ToolResult};
    use serde_json::json;

    use super::*;

    fn turn(arguments: &Value, is_error: bool) -> Vec<Message> {
        let id = jaato_plugin_sdk::types::CallId::from("c");
        let call = ToolCall::new(id.clone(), "shell", arguments.clone());
        let result = ToolResult {
            call_id: id,
            name: "shell".into(),
            content: Map::new(),
            is_error,
            ..ToolResult::default()
        };
        vec![
            Message::user("do it"),
            Message::model(vec![Part::ToolCall(call)]),
            Message::tool([result]),
        ]
    }

    #[track_caller]
    fn check(messages: &[Message], name: &str, expected: bool) {
        let arguments = json!({"command": "ls"});
        assert_eq!(is_repeated(messages, name, arguments.as_object().unwrap()), expected);
    }

    #[test]
    fn only_the_same_call_of_this_turn_that_worked_is_a_repetition() {
        let ls = json!({"command": "ls"});
        check(&turn(&ls, false), "shell", true);
        check(&turn(&ls, false), "other", false);
        check(&turn(&json!({"command": "ls -a"}), false), "shell", false);
        check(&turn(&ls, true), "shell", false);
        let mut earlier = turn(&ls, false);
        earlier.push(Message::user("again"));
        check(&earlier, "shell", false);
        check(&[], "shell", false);
    }
}
