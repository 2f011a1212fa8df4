//! Inspects the calls of a turn: repeated calls, failed calls, and the chance that another call is
//! needed.
//!
//! A small model tends to repeat a call instead of reading its result. The result would be the
//! same, and so would the next call, so the model must do something else. After a call that worked,
//! a repetition may be right: for example, tests run again after a file was changed.

use jaato_plugin_sdk::types::{Message, Role};
use serde_json::{Map, Value};

use crate::prompt::is_failed_result;

/// The maximum number of identical calls in a turn if the calls between them succeeded.
const TIMES_MAX: usize = 2;

/// The number of calls after which a turn seldom ends well.
const CALLS_LIKELY_MAX: usize = 6;

/// Returns true if the same call was made in this turn and no other call worked after it, or if it
/// was made too often.
pub fn is_repeated_call(messages: &[Message], name: &str, arguments: &Map<String, Value>) -> bool {
    let turn = current_turn(messages);
    let (mut times, mut last, mut may_differ) = (0, None, false);
    for message in turn {
        let mut others = message.tool_results().filter(|it| Some(&it.call_id) != last);
        may_differ |= others.any(|result| !is_failed_result(result));
        for call in message.tool_calls() {
            if call.name.as_str() == name && call.arguments.as_object() == Some(arguments) {
                (times, last, may_differ) = (times + 1, Some(&call.id), false);
            }
        }
    }
    times >= TIMES_MAX || (times > 0 && !may_differ)
}

/// Returns the number of calls at the end of the turn that failed in a row.
pub fn count_failures(messages: &[Message]) -> usize {
    let results = current_turn(messages).iter().rev().flat_map(Message::tool_results);
    results.take_while(|result| is_failed_result(result)).count()
}

/// Returns the weight that is added to the logits of tokens that begin a call, at the start of an
/// answer.
///
/// The numbers hold for the prompt with the four tools. They separate right from wrong in the tuned
/// tasks of `whole_tasks.json`. If the model stopped too early after a result, a call was behind
/// the best text by at most 1.3. If it was done, a call was behind by at least 2.1. A useless call
/// was ahead by at most 0.1 at the start of the turn, and by 0.7 after a failure. After many calls
/// the model has lost its way. Without a shell, tools look something up, and one result is usually
/// enough.
pub fn call_weight(messages: &[Message], has_shell: bool) -> f32 {
    let made = current_turn(messages).iter().flat_map(Message::tool_results).count();
    match (made, count_failures(messages)) {
        (0, _) if has_shell => -0.5,
        (0, _) => 0.0,
        (CALLS_LIKELY_MAX.., _) => -3.0,
        (_, 0) if has_shell => 1.7,
        _ => -1.0,
    }
}

/// Returns the messages since the last user message.
fn current_turn(messages: &[Message]) -> &[Message] {
    &messages[messages.iter().rposition(|message| message.role == Role::User).unwrap_or(0)..]
}

#[cfg(test)]
mod tests {
    use jaato_plugin_sdk::types::{Part, ToolCall, ToolResult};
    use serde_json::json;

    use super::*;

    /// Returns a turn with these calls. Calls that begin with `!` fail.
    fn turn_with_calls(commands: &[&str]) -> Vec<Message> {
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
    fn check_turn(commands: &[&str], expected: (bool, usize)) {
        let messages = turn_with_calls(commands);
        let arguments = json!({"command": "ls"});
        let is_repeated = is_repeated_call(&messages, "shell", arguments.as_object().unwrap());
        assert_eq!((is_repeated, count_failures(&messages)), expected, "{commands:?}");
    }

    #[test]
    fn another_call_is_likely_after_success_but_not_after_many() {
        let weights = [&[][..], &["ls"], &["!ls"], &["!ls", "a"], &["a"; CALLS_LIKELY_MAX]];
        let of =
            |has_shell| weights.map(|commands| call_weight(&turn_with_calls(commands), has_shell));
        assert_eq!(of(true), [-0.5, 1.7, -1.0, 1.7, -3.0]);
        assert_eq!(of(false), [0.0, -1.0, -1.0, -1.0, -3.0]);
    }

    #[test]
    fn call_is_repeated_without_success_since_or_the_third_time() {
        check_turn(&[], (false, 0));
        check_turn(&["ls"], (true, 0));
        check_turn(&["!ls"], (true, 1));
        check_turn(&["ls -a"], (false, 0));
        check_turn(&["ls", "make"], (false, 0));
        check_turn(&["!ls", "!make"], (true, 2));
        check_turn(&["!ls", "!make", "touch a", "!make"], (false, 1));
        check_turn(&["ls", "make", "ls", "make"], (true, 0));
        let mut earlier = turn_with_calls(&["!ls"]);
        earlier.push(Message::user("again"));
        assert!(!is_repeated_call(
            &earlier,
            "shell",
            json!({"command": "ls"}).as_object().unwrap()
        ));
        assert_eq!(count_failures(&earlier), 0);
    }
}
