//! Notices calls that lead nowhere: one that was made already, and many that fail.
//!
//! A small model likes to make the same call again instead of reading its result. The result would
//! be the same, and so would be the next call: it must do something else. After a call that worked
//! the same one may be right: tests run again once a file is changed.

use jaato_plugin_sdk::types::{Message, Role};
use serde_json::{Map, Value};

use crate::prompt::failed;

/// Times that the same call may be made in a turn if calls between worked.
const TIMES_MAX: usize = 2;

/// Returns true if the same call was made in this turn and no other call worked after it, or if it
/// was made often.
pub fn is_repeated(messages: &[Message], name: &str, arguments: &Map<String, Value>) -> bool {
    let turn = turn(messages);
    let (mut times, mut last, mut may_differ) = (0, None, false);
    for message in turn {
        let mut others = message.tool_results().filter(|it| Some(&it.call_id) != last);
        may_differ |= others.any(|result| !failed(result));
        for call in message.tool_calls() {
            if call.name.as_str() == name && call.arguments.as_object() == Some(arguments) {
                (times, last, may_differ) = (times + 1, Some(&call.id), false);
            }
        }
    }
    times >= TIMES_MAX || (times > 0 && !may_differ)
}

/// Returns how many of the last calls of the turn failed in a row.
pub fn failures(messages: &[Message]) -> usize {
    let results = turn(messages).iter().rev().flat_map(Message::tool_results);
    results.take_while(|result| failed(result)).count()
}

/// Returns what came since the user said something.
fn turn(messages: &[Message]) -> &[Message] {
    &messages[messages.iter().rposition(|message| message.role == Role::User).unwrap_or(0)..]
}

#[cfg(test)]
mod tests {
    use jaato_plugin_sdk::types::{Part, ToolCall, ToolResult};
    use serde_json::json;

    use super::*;

    /// A turn with calls; those that begin with `!` fail.
    fn calls(commands: &[&str]) -> Vec<Message> {
        let call = |(index, command): (usize, &&str)| {
            let is_error = command.starts_with('!');
            let arguments = json!({"command": command.trim_start_matches('!')});
            let call_id = format!("c{index}").as_str().into();
            let call = ToolCall::new(format!("c{index}").as_str(), "shell", arguments);
            let result = ToolResult { call_id, is_error, ..ToolResult::default() };
            [Message::model(vec![Part::ToolCall(call)]), Message::tool([result])]
        };
        let turn = commands.iter().enumerate().flat_map(call);
        std::iter::once(Message::user("do it")).chain(turn).collect()
    }

    #[track_caller]
    fn check(commands: &[&str], expected: (bool, usize)) {
        let messages = calls(commands);
        let arguments = json!({"command": "ls"});
        let is_repeated = is_repeated(&messages, "shell", arguments.as_object().unwrap());
        assert_eq!((is_repeated, failures(&messages)), expected, "{commands:?}");
    }

    #[test]
    fn a_call_is_repeated_where_nothing_worked_since_and_a_third_time() {
        check(&[], (false, 0));
        check(&["ls"], (true, 0));
        check(&["!ls"], (true, 1));
        check(&["ls -a"], (false, 0));
        check(&["ls", "make"], (false, 0));
        check(&["!ls", "!make"], (true, 2));
        check(&["!ls", "!make", "touch a", "!make"], (false, 1));
        check(&["ls", "make", "ls", "make"], (true, 0));
        let mut earlier = calls(&["!ls"]);
        earlier.push(Message::user("again"));
        assert!(!is_repeated(&earlier, "shell", json!({"command": "ls"}).as_object().unwrap()));
        assert_eq!(failures(&earlier), 0);
    }
}
