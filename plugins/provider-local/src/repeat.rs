//! Notices a call that was answered already in the same turn.
//!
//! A small model likes to make the same call again instead of reading its result. The result would
//! be the same, and so would be the next call: it must say something instead. After another call
//! the same one may be right: tests run again once a file is changed.

use jaato_plugin_sdk::types::{Message, Role, ToolCall};
use serde_json::{Map, Value};

/// Times that the same call may be made in a turn with other calls between.
const TIMES_MAX: usize = 2;

/// Tells whether the same call was the last one since the user said something, or was made often.
pub fn is_repeated(messages: &[Message], name: &str, arguments: &Map<String, Value>) -> bool {
    let turn = messages.iter().rposition(|message| message.role == Role::User).unwrap_or(0);
    let is_same = |call: &&ToolCall| {
        call.name.as_str() == name && call.arguments.as_object() == Some(arguments)
    };
    let calls: Vec<&ToolCall> = messages[turn..].iter().flat_map(Message::tool_calls).collect();
    calls.last().is_some_and(is_same) || calls.iter().copied().filter(is_same).count() >= TIMES_MAX
}

#[cfg(test)]
mod tests {
    use jaato_plugin_sdk::types::Part;
    use serde_json::json;

    use super::*;

    fn turn(commands: &[&str]) -> Vec<Message> {
        let call = |command: &&str| {
            let call = ToolCall::new("c".into(), "shell", json!({"command": command}));
            Message::model(vec![Part::ToolCall(call)])
        };
        std::iter::once(Message::user("do it")).chain(commands.iter().map(call)).collect()
    }

    #[track_caller]
    fn check(messages: &[Message], name: &str, expected: bool) {
        let arguments = json!({"command": "ls"});
        assert_eq!(is_repeated(messages, name, arguments.as_object().unwrap()), expected);
    }

    #[test]
    fn a_call_is_repeated_at_once_or_a_third_time() {
        check(&turn(&["ls"]), "shell", true);
        check(&turn(&["ls"]), "other", false);
        check(&turn(&["ls -a"]), "shell", false);
        check(&turn(&["ls", "make"]), "shell", false);
        check(&turn(&["ls", "make", "ls", "make"]), "shell", true);
        let mut earlier = turn(&["ls"]);
        earlier.push(Message::user("again"));
        check(&earlier, "shell", false);
        check(&[], "shell", false);
    }
}
