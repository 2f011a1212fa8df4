//! Tests the options of a request: stop texts, schemas and streaming.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::sync::Arc;

use crate::support::{
    GgufQuirks, RandomFloats, RecordingSink, completion_request, tool_spec, write_model,
};
use jaato_plugin_sdk::types::{
    Completion, CompletionRequest, Error, ErrorKind, FinishReason, Message, Result,
};
use provider_local::cancel::CancelFlag;
use provider_local::engine::InferenceEngine;
use provider_local::grammar::{CallGrammar, call_text};
use provider_local::local::LocalModel;
use provider_local::tokenizer::ModelTokenizer;
use serde_json::{Value, json};

/// An engine that prefers to say its script, one byte per token, and then anything.
struct ScriptedEngine {
    tokenizer: Arc<ModelTokenizer>,
    script: Vec<u32>,
    random: RandomFloats,
    prompt_len: usize,
    len: usize,
}

impl InferenceEngine for ScriptedEngine {
    fn context_limit(&self) -> usize {
        100_000
    }
    fn len(&self) -> usize {
        self.len
    }
    fn forward_tokens(&mut self, tokens: &[u32], _cancel: &CancelFlag) -> Result<Vec<f32>> {
        // Prompts arrive in long pieces, and decoded tokens in short ones.
        if self.len == 0 || tokens.len() > 60 {
            self.prompt_len = self.len + tokens.len();
        }
        self.len += tokens.len();
        let vocabulary = self.tokenizer.vocabulary_len();
        let mut logits: Vec<f32> = (0..vocabulary).map(|_| self.random.next()).collect();
        if let Some(&token) = self.script.get(self.len - self.prompt_len) {
            logits[token as usize] = 9.0;
        }
        Ok(logits)
    }
    fn truncate_cache(&mut self, len: usize) {
        self.len = len;
    }
    fn state_bytes_per_token(&self) -> usize {
        0
    }
    fn save_state(&self, _len: usize) -> Result<Vec<u8>> {
        Err(Error::failed("a speaker has no state"))
    }
    fn load_state(&mut self, _bytes: &[u8], _stored: usize, _len: usize) -> Result<()> {
        Err(Error::failed("a speaker has no state"))
    }
}

/// Answers a request with an engine that prefers to say `script` and then end.
fn complete_script(
    script: &str,
    seed: u64,
    request: &CompletionRequest,
) -> (Result<Completion>, RecordingSink) {
    let folder = tempfile::tempdir().unwrap();
    let tokenizer =
        crate::support::load_tokenizer(&write_model(folder.path(), GgufQuirks::default()));
    let mut tokens: Vec<u32> = Vec::new();
    for byte in script.chars() {
        tokens.extend(tokenizer.encode_plain(&byte.to_string()).unwrap());
    }
    if !script.is_empty() {
        tokens.push(tokenizer.turn_end());
    }
    let engine = ScriptedEngine {
        tokenizer: Arc::clone(&tokenizer),
        script: tokens,
        random: RandomFloats(seed),
        prompt_len: 0,
        len: 0,
    };
    let grammar = CallGrammar::new(&tokenizer).unwrap();
    let mut model = LocalModel::new(Box::new(engine), tokenizer, grammar);
    let mut kept = RecordingSink::default();
    let completion = model.complete_request(request, &CancelFlag::default(), &mut kept);
    (completion, kept)
}

fn question_request() -> CompletionRequest {
    completion_request("go", &[], 400)
}

#[track_caller]
fn check_stop(script: &str, stops: &[&str], expected: &str) {
    let mut request = question_request();
    request.options.stop = stops.iter().map(|text| (*text).to_owned()).collect();
    let (completion, kept) = complete_script(script, 1, &request);
    let completion = completion.unwrap();
    assert_eq!(completion.finish_reason, FinishReason::Stop);
    assert_eq!(kept.text, expected, "streamed");
    assert_eq!(Message::model(completion.parts).text(), expected);
}

#[test]
fn answer_ends_before_a_stop_text_split_over_tokens() {
    check_stop("one END two", &["END"], "one ");
    check_stop("one END two", &["TWO", " E"], "one");
    check_stop("one €, two", &["€"], "one ");
    check_stop("END", &["END"], "");
}

#[test]
fn partial_stop_text_is_shown() {
    check_stop("one EN two E", &["END"], "one EN two E");
    check_stop("EENEND", &["END"], "EEN");
    // Whitespace before an answer is not part of it.
    check_stop("\n\none\n\ntwo", &["\n\n"], "one");
}

#[test]
fn stop_text_inside_call_arguments_is_ignored() {
    let schema = json!({ "type": "object", "required": ["x"],
        "properties": { "x": { "type": "string", "maxLength": 5 } } });
    let mut request = completion_request("go", &[tool_spec("shell", schema)], 400);
    request.options.stop = vec!["END".to_owned()];
    let script = call_text("shell", &json!({ "x": "END" }));
    let (completion, kept) = complete_script(&script, 1, &request);
    assert_eq!(completion.unwrap().finish_reason, FinishReason::ToolUse);
    assert_eq!((kept.calls, kept.text.as_str()), (1, ""));
}

#[test]
fn unstreamed_answer_is_one_piece_and_equals_the_streamed_one() {
    struct PieceCollector(Vec<String>);
    impl provider_local::local::CompletionSink for PieceCollector {
        fn send_text(&mut self, text: &str) -> bool {
            self.0.push(text.to_owned());
            true
        }
        fn show_notice(&mut self, _text: String) {}
        fn log(&mut self, _text: String) {}
    }
    let folder = tempfile::tempdir().unwrap();
    let path = write_model(folder.path(), GgufQuirks::default());
    let ask = |stream: Option<bool>| {
        let mut request = question_request();
        (request.options.stream, request.options.max_output_tokens) = (stream, Some(24));
        let mut pieces = PieceCollector(Vec::new());
        let mut model = crate::support::load_model(&path);
        let completion =
            model.complete_request(&request, &CancelFlag::default(), &mut pieces).unwrap();
        (completion, pieces.0)
    };
    let (streamed, pieces) = ask(None);
    let (whole, one) = ask(Some(false));
    assert!(pieces.len() > 1);
    assert_eq!((whole, one), (streamed, vec![pieces.concat()]));
}

#[test]
fn random_sampling_depends_only_on_the_seed() {
    let folder = tempfile::tempdir().unwrap();
    let path = write_model(folder.path(), GgufQuirks::default());
    let ask = |seed: Option<u64>| {
        let mut request = question_request();
        request.options.temperature = Some(1.5);
        (request.options.seed, request.options.max_output_tokens) = (seed, Some(24));
        let mut model = crate::support::load_model(&path);
        model
            .complete_request(&request, &CancelFlag::default(), &mut RecordingSink::default())
            .unwrap()
            .parts
    };
    assert_eq!(ask(Some(1)), ask(Some(1)));
    assert_ne!(ask(Some(1)), ask(Some(2)));
    assert_eq!(ask(None), ask(None));
}

fn answer_schemas() -> Vec<Value> {
    vec![
        json!({ "type": "object", "required": ["a", "b"], "additionalProperties": false,
            "properties": { "a": { "type": "integer", "minimum": 0, "maximum": 9 },
                "b": { "type": "array", "maxItems": 2, "items": { "enum": ["x", "y"] } } } }),
        json!({ "type": "integer", "minimum": -5, "maximum": 1500 }),
        json!({ "enum": ["yes", "no", "`"] }),
        json!({ "type": "boolean" }),
    ]
}

#[test]
fn answer_always_matches_its_output_schema() {
    for schema in answer_schemas() {
        let validator = jsonschema::validator_for(&schema).unwrap();
        for (seed, script) in (0..6).zip(["", "hello", "```json", "", "{", "7"]) {
            let mut request = question_request();
            request.options.output_schema = Some(schema.clone());
            request.options.temperature = Some(if seed % 2 == 0 { 0.0 } else { 1.0 });
            let (completion, kept) = complete_script(script, seed, &request);
            let completion = completion.unwrap();
            assert_eq!(completion.finish_reason, FinishReason::Stop, "{schema} {}", kept.text);
            let text = Message::model(completion.parts).text();
            assert_eq!(text, kept.text);
            let value = serde_json::from_str(&text).unwrap();
            assert!(validator.is_valid(&value), "{schema}: {text}");
        }
    }
}

#[test]
fn an_answer_with_a_schema_may_still_be_a_call() {
    let tools = [tool_spec("shell", json!({ "type": "object", "properties": {} }))];
    let mut request = completion_request("go", &tools, 400);
    request.options.output_schema = Some(answer_schemas().remove(0));
    let (completion, kept) = complete_script(&call_text("shell", &json!({})), 1, &request);
    assert_eq!(completion.unwrap().finish_reason, FinishReason::ToolUse);
    assert_eq!((kept.calls, kept.text.as_str()), (1, ""));
    let (completion, kept) = complete_script("{\"a\": 3", 1, &request);
    let completion = completion.unwrap();
    assert_eq!((completion.finish_reason, kept.calls), (FinishReason::Stop, 0));
    assert!(kept.text.starts_with("{\"a\": 3"), "{}", kept.text);
}

#[test]
fn unsupported_output_schema_is_an_error() {
    let mut request = question_request();
    request.options.output_schema = Some(json!({ "type": "array", "uniqueItems": true }));
    let error = complete_script("", 1, &request).0.unwrap_err();
    assert_eq!(error.kind, ErrorKind::InvalidArguments);
    assert!(error.message.starts_with("the local model does not support"), "{error}");
}
