//! Tests a model that repeats itself: calls, failures, sentences of the examples.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::sync::Arc;

use crate::support::{GgufQuirks, RecordingSink, completion_request, tool_spec, write_model};
use jaato_plugin_sdk::types::{
    Completion, CompletionRequest, Error, FinishReason, Message, Part, Result, ToolCall,
    ToolResult, ToolSpec,
};
use provider_local::cancel::CancelFlag;
use provider_local::engine::InferenceEngine;
use provider_local::grammar::{CallGrammar, call_text};
use provider_local::local::LocalModel;
use provider_local::prompt::example_answers;
use provider_local::tokenizer::ModelTokenizer;
use serde_json::{Map, json};

/// An engine that says its script after every prompt. Its second choice is an `o`.
struct RepeatingEngine {
    tokenizer: Arc<ModelTokenizer>,
    script: Vec<u32>,
    prompt_len: usize,
    len: usize,
}

impl InferenceEngine for RepeatingEngine {
    fn context_limit(&self) -> usize {
        100_000
    }
    fn len(&self) -> usize {
        self.len
    }
    fn forward_tokens(&mut self, tokens: &[u32], _cancel: &CancelFlag) -> Result<Vec<f32>> {
        self.len += tokens.len();
        // Prompts are long, and decoded tokens arrive in short pieces.
        if tokens.len() > 60 || self.prompt_len > self.len {
            self.prompt_len = self.len;
        }
        let mut logits = vec![0.0; self.tokenizer.vocabulary_len()];
        let next = self.script.get(self.len - self.prompt_len).copied();
        logits[next.unwrap_or(self.tokenizer.turn_end()) as usize] = 9.0;
        logits[self.tokenizer.encode_plain("o")?[0] as usize] = 1.0;
        Ok(logits)
    }
    fn truncate_cache(&mut self, len: usize) {
        (self.len, self.prompt_len) = (len, usize::MAX);
    }
    fn state_bytes_per_token(&self) -> usize {
        0
    }
    fn save_state(&self, _len: usize) -> Result<Vec<u8>> {
        Err(Error::failed("a parrot has no state"))
    }
    fn load_state(&mut self, _bytes: &[u8], _stored: usize, _len: usize) -> Result<()> {
        Err(Error::failed("a parrot has no state"))
    }
}

/// Returns a model that says `script` after every prompt.
fn repeating_model(script: &str) -> LocalModel {
    let folder = tempfile::tempdir().unwrap();
    let tokenizer =
        crate::support::load_tokenizer(&write_model(folder.path(), GgufQuirks::default()));
    let script = tokenizer.encode_plain(script).unwrap();
    let engine =
        RepeatingEngine { tokenizer: Arc::clone(&tokenizer), script, prompt_len: 0, len: 0 };
    let grammar = CallGrammar::new(&tokenizer).unwrap();
    LocalModel::new(Box::new(engine), tokenizer, grammar)
}

fn tool_specs(names: &[&str]) -> Vec<ToolSpec> {
    let bare = |name: &&str| tool_spec(name, json!({"type": "object", "properties": {}}));
    names.iter().map(bare).collect()
}

/// Adds a call of each tool and its result to a request.
fn add_calls(request: &mut CompletionRequest, names: &[&str], is_error: bool, text: &str) {
    for name in names {
        let id = format!("c{}", request.messages.len());
        let call = ToolCall::new(id.as_str(), *name, json!({}));
        let content = Map::from_iter([("stdout".to_owned(), json!(text))]);
        let mut result = ToolResult::new(call.id.clone(), call.name.clone(), content);
        result.is_error = is_error;
        let call = Message::model(vec![Part::ToolCall(call)]);
        request.messages.extend([call, Message::tool([result])]);
    }
}

#[track_caller]
fn complete_request(
    model: &mut LocalModel,
    request: &CompletionRequest,
) -> (Completion, RecordingSink) {
    let mut kept = RecordingSink::default();
    (model.complete_request(request, &CancelFlag::default(), &mut kept).unwrap(), kept)
}

const TASK: &str = "list the files, all of them, and then the folders";

#[test]
fn the_second_of_two_equal_calls_becomes_text() {
    let mut model = repeating_model(&call_text("shell", &json!({})));
    let mut request = completion_request(TASK, &tool_specs(&["shell"]), 200);
    let (first, kept) = complete_request(&mut model, &request);
    assert_eq!((first.finish_reason, kept.calls), (FinishReason::ToolUse, 1));

    add_calls(&mut request, &["shell"], false, "a, b, c");
    let (second, kept) = complete_request(&mut model, &request);
    assert_eq!((second.finish_reason, kept.calls), (FinishReason::Stop, 0));
    assert!(kept.text.starts_with('o') && kept.log.len() == 1, "{:?} {:?}", kept.text, kept.log);
    assert_eq!(Message::model(second.parts).text(), kept.text);
}

#[test]
fn repeated_failed_call_becomes_a_command_then_text() {
    let mut model = repeating_model(&call_text("edit", &json!({})));
    let mut request =
        completion_request(TASK, &tool_specs(&["cli_based_tool", "edit", "other"]), 200);
    add_calls(&mut request, &["edit"], true, "no such text");
    let (second, _) = complete_request(&mut model, &request);
    assert_eq!(second.parts[0].as_tool_call().unwrap().name.as_str(), "cli_based_tool");

    add_calls(&mut request, &["cli_based_tool", "other", "cli_based_tool"], true, "no");
    let (last, kept) = complete_request(&mut model, &request);
    assert_eq!((last.finish_reason, kept.calls), (FinishReason::Stop, 0), "{:?}", last.parts);
}

#[test]
fn answer_copied_from_an_example_is_generated_again() {
    let (phrase, copied) = example_answers().nth(1).unwrap();
    let mut model = repeating_model(copied);
    let tools = tool_specs(&["cli_based_tool"]);
    let (plain, kept) = complete_request(&mut model, &completion_request(TASK, &tools, 200));
    assert_eq!(kept.log.len(), 1, "{:?}", kept.log);
    // The model reads a prompt without the sentence, and its answer to that counts.
    assert_eq!((kept.text.as_str(), Message::model(plain.parts).text().as_str()), (copied, copied));
    let (asked, kept) = complete_request(&mut model, &completion_request(phrase, &tools, 200));
    assert!(kept.log.is_empty(), "{:?}", kept.log);
    assert!(asked.usage.prompt_tokens > 3 * plain.usage.prompt_tokens);
}

#[test]
fn long_result_is_shown_as_head_and_tail() {
    let mut model = repeating_model("done");
    let mut request = completion_request(TASK, &tool_specs(&["shell"]), 200);
    let mut read = |text: &str| {
        request.messages.truncate(1);
        add_calls(&mut request, &["shell"], false, text);
        complete_request(&mut model, &request).0.usage.prompt_tokens
    };
    let (short, long) = (read("a"), read(&"line\n".repeat(4000)));
    assert!((700..800).contains(&(long - short)), "{short} {long}");
}
