//! The scripted model: it knows only what the request has, and counts what it missed.

use parking_lot::Mutex;
use serde_json::{Value, json};

use super::conversation::{PlantedConversation, PlantedStep};
use crate::bench::agent::script::ScriptedAnswer;
use crate::bench::agent::server::content_text;

/// The tool that finds what was collected.
const RECALL: &str = "recall";

/// The longest good summary.
const SUMMARY_BYTES_MAX: usize = 2_000;

/// How the model summarizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SummaryKind {
    /// Each sentence with a number.
    Good,
    /// Always the same text, without any fact.
    Empty,
}

/// What the model got.
#[derive(Debug, Clone, Copy, Default)]
pub struct SeenFacts {
    pub facts: usize,
    pub facts_sent: usize,
    pub facts_recalled: usize,
    pub constraints: usize,
    /// Constraints that were in the first request with a question.
    pub constraints_sent: usize,
    pub calls_again: usize,
    /// The size of the history in the first request with a question.
    pub last_bytes: usize,
    /// The size of all messages until then.
    pub all_bytes: usize,
}

/// The model.
pub struct ForgetfulModel {
    conversation: PlantedConversation,
    summaries: SummaryKind,
    seen: Mutex<SeenFacts>,
}

impl ForgetfulModel {
    pub fn new(conversation: PlantedConversation, summaries: SummaryKind) -> Self {
        Self { conversation, summaries, seen: Mutex::default() }
    }

    /// Returns what it got so far.
    pub fn seen_facts(&self) -> SeenFacts {
        *self.seen.lock()
    }

    /// Returns true if it was asked for every fact.
    pub fn has_been_asked_all(&self) -> bool {
        self.seen_facts().facts == self.conversation.facts.len()
    }

    /// Answers a request.
    pub fn answer_request(&self, body: &Value) -> ScriptedAnswer {
        let messages = body["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
        let texts: Vec<String> = messages.iter().map(message_text).collect();
        if body["tools"].as_array().is_none_or(Vec::is_empty) {
            return ScriptedAnswer::Text(self.write_summary(&texts));
        }
        let prompt = messages.iter().rposition(|message| {
            message["role"] == "user"
                && self.conversation.turn_of_prompt(&content_text(&message["content"])).is_some()
        });
        let Some(prompt) = prompt else {
            return ScriptedAnswer::Text("This request has no prompt.".to_owned());
        };
        let is_system =
            |message: &Value| message["role"] == "system" || message["role"] == "developer";
        let before: Vec<&str> = (0..prompt)
            .filter(|&at| !is_system(&messages[at]))
            .map(|at| texts[at].as_str())
            .collect();
        let results = &texts[prompt + 1..];
        self.answer_step(&texts[prompt], &before.join("\n"), results, has_recall_tool(body))
    }

    fn answer_step(
        &self,
        prompt: &str,
        before: &str,
        results: &[String],
        recalls: bool,
    ) -> ScriptedAnswer {
        let Some(turn) = self.conversation.turn_of_prompt(prompt) else {
            return ScriptedAnswer::Text(String::new());
        };
        let mut seen = self.seen.lock();
        seen.all_bytes += results.last().map_or(turn.prompt.len(), String::len);
        match &turn.step {
            PlantedStep::Run { command, .. } if results.is_empty() => {
                seen.all_bytes += command.len();
                ScriptedAnswer::Calls(vec![command.clone()])
            }
            PlantedStep::Answer(answer) | PlantedStep::Run { answer, .. } => {
                seen.all_bytes += answer.len();
                ScriptedAnswer::Text(answer.clone())
            }
            PlantedStep::Check { name } => {
                if !before.contains(name) {
                    seen.calls_again += 1;
                }
                ScriptedAnswer::Text("It has run.".to_owned())
            }
            PlantedStep::Ask { fact } => {
                let fact = &self.conversation.facts[*fact];
                if let Some(result) = results.last() {
                    seen.facts_recalled += usize::from(result.contains(&fact.text));
                    return ScriptedAnswer::Text("I have looked.".to_owned());
                }
                if seen.facts == 0 {
                    let is_sent = |text: &&String| before.contains(text.as_str());
                    seen.constraints = self.conversation.constraints.len();
                    seen.constraints_sent =
                        self.conversation.constraints.iter().filter(is_sent).count();
                    seen.last_bytes = before.len();
                }
                seen.facts += 1;
                if before.contains(&fact.text) {
                    seen.facts_sent += 1;
                } else if recalls {
                    let arguments = json!({ "query": fact.words });
                    return ScriptedAnswer::Tool { name: RECALL.to_owned(), arguments, count: 1 };
                }
                ScriptedAnswer::Text("I have looked.".to_owned())
            }
        }
    }

    fn write_summary(&self, texts: &[String]) -> String {
        match self.summaries {
            SummaryKind::Empty => "The user and the assistant worked on the project.".to_owned(),
            SummaryKind::Good => {
                let sentences = texts.iter().flat_map(|text| text.split_inclusive(['.', '\n']));
                let mut summary = String::new();
                for sentence in sentences.map(str::trim) {
                    let is_fact = sentence.contains(|letter: char| letter.is_ascii_digit());
                    if is_fact && summary.len() + sentence.len() < SUMMARY_BYTES_MAX {
                        summary.push_str(sentence);
                        summary.push('\n');
                    }
                }
                summary
            }
        }
    }
}

fn has_recall_tool(body: &Value) -> bool {
    let tools = body["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
    tools.iter().any(|tool| tool["function"]["name"] == RECALL)
}

/// Returns a message's text and the arguments of its calls.
fn message_text(message: &Value) -> String {
    let mut text = content_text(&message["content"]);
    for call in message["tool_calls"].as_array().into_iter().flatten() {
        text.push('\n');
        text.push_str(call["function"]["arguments"].as_str().unwrap_or_default());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model_request(messages: &Value) -> Value {
        json!({ "messages": messages, "tools": [{ "function": { "name": RECALL } }] })
    }

    #[test]
    fn a_fact_counts_if_the_request_or_one_recall_has_it() {
        let conversation = PlantedConversation::all_conversations().remove(0);
        let asks: Vec<String> = conversation
            .turns
            .iter()
            .filter(|turn| matches!(turn.step, PlantedStep::Ask { .. }))
            .map(|turn| turn.prompt.clone())
            .collect();
        let facts: Vec<String> = conversation.facts.iter().map(|fact| fact.text.clone()).collect();
        let model = ForgetfulModel::new(conversation, SummaryKind::Empty);
        let user = |text: &str| json!({ "role": "user", "content": text });
        model.answer_request(&model_request(&json!([user(&facts[0]), user(&asks[0])])));
        let call = model.answer_request(&model_request(&json!([user(&asks[1])])));
        assert!(matches!(call, ScriptedAnswer::Tool { .. }), "{call:?}");
        let result = json!({ "role": "tool", "content": facts[1] });
        model.answer_request(&model_request(&json!([user(&asks[1]), result])));
        let seen = model.seen_facts();
        assert_eq!((seen.facts, seen.facts_sent, seen.facts_recalled), (2, 1, 1));
    }

    #[test]
    fn a_command_runs_again_without_a_trace_of_it() {
        let conversation = PlantedConversation::all_conversations().remove(0);
        let check = conversation.turns.iter().find_map(|turn| match &turn.step {
            PlantedStep::Check { name } => Some((turn.prompt.clone(), name.clone())),
            _ => None,
        });
        let (prompt, name) = check.unwrap();
        let model = ForgetfulModel::new(conversation, SummaryKind::Empty);
        let user = |text: &str| json!({ "role": "user", "content": text });
        model.answer_request(&model_request(&json!([
            user(&format!("`{name}` ended with 0")),
            user(&prompt)
        ])));
        assert_eq!(model.seen_facts().calls_again, 0);
        model.answer_request(&model_request(&json!([user(&prompt)])));
        assert_eq!(model.seen_facts().calls_again, 1);
    }
}
