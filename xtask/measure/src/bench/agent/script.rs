//! The answers of the scripted model, in the format of OpenAI's chat completions, whole or as a
//! stream with the same content.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

/// The tool to call. The yardstick's shell has the same name.
pub const TOOL: &str = "cli_based_tool";

/// The model's last message. An agent that prints it has finished the conversation.
pub const LAST_WORDS: &str = "all of it is done";

/// The text before the model hangs.
pub const BEFORE_HANGING: &str = "let me think";

/// Chooses the answer to a request from its body.
pub type AnswerChooser = Arc<dyn Fn(&Value) -> ScriptedAnswer + Send + Sync>;

/// The answers of a conversation.
#[derive(Clone)]
pub struct ModelScript {
    /// The answers in order, unless there is a chooser.
    pub answers: Vec<ScriptedAnswer>,
    pub chooser: Option<AnswerChooser>,
    /// The delay of each answer, so that the memory between requests can be observed.
    pub pause: Duration,
}

/// One answer of the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScriptedAnswer {
    /// Parallel calls of the shell.
    Calls(Vec<String>),
    /// This many parallel calls of another tool.
    Tool { name: String, arguments: Value, count: usize },
    /// The last message of a turn.
    Text(String),
    /// A stream that starts but never continues.
    Hang,
}

impl ModelScript {
    /// Returns a script with one shell command per step, then the last message.
    pub fn with_command_per_step(commands: &[&str]) -> Self {
        let mut answers: Vec<ScriptedAnswer> = commands
            .iter()
            .map(|&command| ScriptedAnswer::Calls(vec![command.to_owned()]))
            .collect();
        answers.push(ScriptedAnswer::final_message());
        Self::from_answers(answers)
    }

    /// Returns a script with the same call of another tool, `count` times in parallel in each step,
    /// then the last message.
    pub fn with_tool_calls(name: &str, arguments: &Value, count: usize, steps: usize) -> Self {
        let call =
            ScriptedAnswer::Tool { name: name.to_owned(), arguments: arguments.clone(), count };
        let mut answers = vec![call; steps];
        answers.push(ScriptedAnswer::final_message());
        Self::from_answers(answers)
    }

    /// Returns a script with all calls in one answer, then the last message.
    pub fn with_parallel_commands(commands: &[&str]) -> Self {
        let calls = commands.iter().map(|&command| command.to_owned()).collect();
        Self::from_answers(vec![ScriptedAnswer::Calls(calls), ScriptedAnswer::final_message()])
    }

    /// Returns a script whose answers depend on the whole request.
    pub fn from_chooser(chooser: AnswerChooser) -> Self {
        Self { chooser: Some(chooser), ..Self::from_answers(Vec::new()) }
    }

    /// Returns a script with these answers.
    pub fn from_answers(answers: Vec<ScriptedAnswer>) -> Self {
        Self { answers, chooser: None, pause: Duration::ZERO }
    }

    /// Delays each answer.
    pub fn with_pause(self, pause: Duration) -> Self {
        Self { pause, ..self }
    }

    /// Returns the answer to a request with this many tool results. They determine the position in
    /// the conversation, so the server keeps no state.
    pub fn answer_after(&self, results: usize) -> Option<&ScriptedAnswer> {
        let mut seen = 0;
        for answer in &self.answers {
            if seen == results {
                return Some(answer);
            }
            seen += match answer {
                ScriptedAnswer::Calls(calls) => calls.len(),
                ScriptedAnswer::Tool { count, .. } => *count,
                ScriptedAnswer::Text(_) | ScriptedAnswer::Hang => return None,
            };
        }
        None
    }
}

impl ScriptedAnswer {
    /// Ends the conversation.
    pub fn final_message() -> Self {
        Self::Text(LAST_WORDS.to_owned())
    }
}

/// A request as far as its answer depends on it.
#[derive(Debug, Clone, Copy)]
pub struct AnsweredRequest {
    /// Makes the ids of calls unique.
    pub number: usize,
    /// Its size, reported as usage.
    pub tokens: usize,
}

/// Returns the whole answer as one object, or `None` for an answer that hangs.
pub fn response_body(answer: &ScriptedAnswer, request: AnsweredRequest) -> Option<String> {
    let (message, reason) = match answer {
        ScriptedAnswer::Calls(_) | ScriptedAnswer::Tool { .. } => {
            let calls = tool_calls_json(answer, request.number);
            (json!({ "role": "assistant", "content": null, "tool_calls": calls }), "tool_calls")
        }
        ScriptedAnswer::Text(text) => (json!({ "role": "assistant", "content": text }), "stop"),
        ScriptedAnswer::Hang => return None,
    };
    let choice = json!({ "index": 0, "message": message, "finish_reason": reason });
    Some(response_object("chat.completion", &json!([choice]), &usage_json(request)).to_string())
}

/// Returns the answer as server-sent events, or the start of an answer that hangs.
pub fn streamed_body(answer: &ScriptedAnswer, request: AnsweredRequest) -> String {
    let mut text = String::new();
    let mut event = |choices: Value, usage: Value| {
        let chunk = response_object("chat.completion.chunk", &choices, &usage);
        // Writing to a string cannot fail.
        let _ = write!(text, "data: {chunk}\n\n");
    };
    let choice = |delta: Value, reason: Value| json!([{ "index": 0, "delta": delta, "finish_reason": reason }]);
    event(choice(json!({ "role": "assistant", "content": "" }), Value::Null), Value::Null);
    let reason = match answer {
        ScriptedAnswer::Calls(_) | ScriptedAnswer::Tool { .. } => {
            for (index, mut call) in tool_calls_json(answer, request.number).into_iter().enumerate()
            {
                call["index"] = json!(index);
                event(choice(json!({ "tool_calls": [call] }), Value::Null), Value::Null);
            }
            "tool_calls"
        }
        ScriptedAnswer::Text(text) => {
            event(choice(json!({ "content": text }), Value::Null), Value::Null);
            "stop"
        }
        ScriptedAnswer::Hang => {
            event(choice(json!({ "content": BEFORE_HANGING }), Value::Null), Value::Null);
            return text;
        }
    };
    event(choice(json!({}), json!(reason)), Value::Null);
    event(json!([]), usage_json(request));
    text.push_str("data: [DONE]\n\n");
    text
}

fn tool_calls_json(answer: &ScriptedAnswer, request: usize) -> Vec<Value> {
    let call = |(index, (name, arguments)): (usize, (&str, String))| {
        json!({
            "id": format!("call_{request}_{index}"),
            "type": "function",
            "function": { "name": name, "arguments": arguments },
        })
    };
    let called: Vec<(&str, String)> = match answer {
        ScriptedAnswer::Calls(commands) => {
            let of_shell = |command| (TOOL, json!({ "command": command }).to_string());
            commands.iter().map(of_shell).collect()
        }
        ScriptedAnswer::Tool { name, arguments, count } => {
            vec![(name, arguments.to_string()); *count]
        }
        ScriptedAnswer::Text(_) | ScriptedAnswer::Hang => Vec::new(),
    };
    called.into_iter().enumerate().map(call).collect()
}

fn response_object(object: &str, choices: &Value, usage: &Value) -> Value {
    json!({
        "id": "chatcmpl-bench",
        "object": object,
        "created": 1_700_000_000,
        "model": "scripted",
        "choices": choices,
        "usage": usage,
    })
}

fn usage_json(request: AnsweredRequest) -> Value {
    let prompt = request.tokens;
    json!({ "prompt_tokens": prompt, "completion_tokens": 10, "total_tokens": prompt + 10 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn next_scripted_answer_depends_on_the_number_of_results() {
        let script = ModelScript::with_command_per_step(&["a", "b"]);
        assert_eq!(script.answer_after(0), Some(&ScriptedAnswer::Calls(vec!["a".to_owned()])));
        assert_eq!(script.answer_after(1), Some(&ScriptedAnswer::Calls(vec!["b".to_owned()])));
        assert_eq!(script.answer_after(2), Some(&ScriptedAnswer::final_message()));
        assert_eq!(script.answer_after(3), None);
        let script = ModelScript::with_parallel_commands(&["a", "b"]);
        assert_eq!(script.answer_after(1), None, "one of two results is missing");
        assert_eq!(script.answer_after(2), Some(&ScriptedAnswer::final_message()));
    }

    #[test]
    fn whole_and_streamed_answers_say_the_same() {
        let answer = ScriptedAnswer::Calls(vec!["echo 1".to_owned(), "echo \"2\"".to_owned()]);
        let request = AnsweredRequest { number: 3, tokens: 100 };
        let whole: Value = serde_json::from_str(&response_body(&answer, request).unwrap()).unwrap();
        let calls = whole["choices"][0]["message"]["tool_calls"].as_array().unwrap();
        let text = streamed_body(&answer, request);
        let mut pieces = Vec::new();
        for line in text.lines().filter_map(|line| line.strip_prefix("data: {")) {
            let chunk: Value = serde_json::from_str(&format!("{{{line}")).unwrap();
            pieces.extend(chunk["choices"][0]["delta"]["tool_calls"][0].as_object().cloned());
        }
        for (index, (call, piece)) in calls.iter().zip(&pieces).enumerate() {
            assert_eq!(piece["index"], index);
            assert_eq!((&piece["id"], &piece["function"]), (&call["id"], &call["function"]));
        }
        assert_eq!((calls.len(), pieces.len()), (2, 2));
        assert!(text.ends_with("data: [DONE]\n\n"), "{text}");
    }

    #[test]
    fn an_answer_that_hangs_has_a_beginning_and_no_end() {
        let request = AnsweredRequest { number: 0, tokens: 100 };
        assert_eq!(response_body(&ScriptedAnswer::Hang, request), None);
        let text = streamed_body(&ScriptedAnswer::Hang, request);
        assert!(text.contains(BEFORE_HANGING) && !text.contains("[DONE]"), "{text}");
    }
}
