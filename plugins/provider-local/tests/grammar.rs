//! Tests that for any logits, a call is valid JSON for its tool's schema.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::sync::Arc;

use crate::support::{GgufQuirks, RandomFloats, tool_spec, write_model};
use jaato_plugin_sdk::types::{Error, FinishReason, Result, ToolSpec};
use provider_local::cancel::CancelFlag;
use provider_local::decode::{DecodingInputs, LocalModelAnswer, ToolCallPermission, decode_answer};
use provider_local::engine::InferenceEngine;
use provider_local::grammar::{CallFormat, CallGrammar, call_text};
use provider_local::sampler::TokenSampler;
use provider_local::stop::StopTexts;
use provider_local::tokenizer::ModelTokenizer;
use serde_json::{Value, json};

/// An engine that prefers to say `script`, and then anything.
struct BabblingEngine<'a> {
    tokenizer: &'a ModelTokenizer,
    script: Vec<u32>,
    random: RandomFloats,
    said: usize,
}

impl BabblingEngine<'_> {
    fn next_logits(&mut self) -> Vec<f32> {
        let mut logits: Vec<f32> =
            (0..self.tokenizer.vocabulary_len()).map(|_| self.random.next()).collect();
        if let Some(&token) = self.script.get(self.said) {
            logits[token as usize] = 10.0;
        }
        logits
    }
}

impl InferenceEngine for BabblingEngine<'_> {
    fn context_limit(&self) -> usize {
        100_000
    }
    fn len(&self) -> usize {
        self.said
    }
    fn forward_tokens(&mut self, tokens: &[u32], cancel: &CancelFlag) -> Result<Vec<f32>> {
        cancel.check_cancelled()?;
        self.said += tokens.len();
        Ok(self.next_logits())
    }
    fn truncate_cache(&mut self, len: usize) {
        self.said = len;
    }
    fn state_bytes_per_token(&self) -> usize {
        0
    }
    fn save_state(&self, _len: usize) -> Result<Vec<u8>> {
        Err(Error::failed("a babbler has no state"))
    }
    fn load_state(&mut self, _bytes: &[u8], _stored: usize, _len: usize) -> Result<()> {
        Err(Error::failed("a babbler has no state"))
    }
}

struct BabblingModel {
    tokenizer: Arc<ModelTokenizer>,
    grammar: CallGrammar,
    _folder: tempfile::TempDir,
}

impl BabblingModel {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let tokenizer =
            crate::support::load_tokenizer(&write_model(folder.path(), GgufQuirks::default()));
        let grammar = CallGrammar::new(&tokenizer).unwrap();
        Self { tokenizer, grammar, _folder: folder }
    }

    /// Produces the answer of an engine that begins with `script`. Returns the answer and the
    /// streamed text.
    fn produce_answer(
        &self,
        tools: &[ToolSpec],
        script: &str,
        seed: u64,
        temperature: f32,
    ) -> (LocalModelAnswer, String) {
        let format = CallFormat::new(&tools.iter().collect::<Vec<_>>());
        let decoding = DecodingInputs {
            tokenizer: &self.tokenizer,
            grammar: &self.grammar,
            format: &format,
            tokens_max: 6000,
            calls: ToolCallPermission::Allowed(0.0),
            stops: &StopTexts::default(),
            schema: None,
            cancel: &CancelFlag::default(),
        };
        let script = self.tokenizer.encode_plain(script).unwrap();
        let mut engine = BabblingEngine {
            tokenizer: &self.tokenizer,
            script,
            random: RandomFloats(seed),
            said: 0,
        };
        let mut streamed = String::new();
        let logits = engine.next_logits();
        let sampler = TokenSampler::new(temperature, seed);
        let mut sink = |text: &str| {
            streamed.push_str(text);
            true
        };
        let answer = decode_answer(&mut engine, logits, sampler, &decoding, &mut sink).unwrap();
        (answer, streamed)
    }
}

fn answer_schemas() -> Vec<Value> {
    vec![
        json!({"type": "object", "properties": {}, "additionalProperties": false}),
        json!({"type": "object", "properties": {
            "aspect": {"type": "string", "enum": ["os", "arch", "all"]}}}),
        json!({"type": "object", "required": ["path", "content"], "additionalProperties": false,
            "properties": {"path": {"type": "string", "maxLength": 9}, "content": {"type": "string"}}}),
        json!({"type": "object", "required": ["b"], "properties": {
            "a": {"type": "integer", "minimum": -3, "maximum": 12},
            "b": {"type": "boolean"},
            "c": {"type": ["string", "null"], "maxLength": 4},
            "d": {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 9}, "maxItems": 3}}}),
        json!({"type": "object", "required": ["x \"y\"\n"], "properties": {
            "x \"y\"\n": {"const": 7}, "ä": {"enum": [1, null, "zwei"]}}}),
        json!({"type": "object", "required": ["at"], "properties": {"at": {"$ref": "#/$defs/point"}},
            "$defs": {"point": {"type": "object", "required": ["x"], "additionalProperties": false,
                "properties": {"x": {"type": "integer", "minimum": 0, "maximum": 99}}}}}),
        json!({"anyOf": [
            {"type": "object", "required": ["id"], "additionalProperties": false,
                "properties": {"id": {"type": "integer", "minimum": 1, "maximum": 9}}},
            {"type": "object", "required": ["on"], "additionalProperties": false,
                "properties": {"on": {"type": "boolean"}}}]}),
    ]
}

#[test]
fn random_weights_still_make_valid_calls() {
    let stage = BabblingModel::new();
    for (index, schema) in answer_schemas().into_iter().enumerate() {
        let validator = jsonschema::validator_for(&schema).unwrap();
        let tools = [tool_spec("use_it", schema.clone()), tool_spec("user", schema)];
        for seed in 0..12 {
            let temperature = if seed % 2 == 0 { 0.0 } else { 1.0 };
            let (answer, streamed) = stage.produce_answer(&tools, "```json", seed, temperature);
            let (name, arguments) = answer.call.unwrap_or_else(|| {
                panic!("schema {index}, seed {seed}: {} {:?}", answer.text, answer.finish_reason)
            });
            assert!(["use_it", "user"].contains(&name.as_str()));
            let arguments = Value::Object(arguments);
            assert!(validator.is_valid(&arguments), "schema {index}: {arguments}");
            assert_eq!(answer.finish_reason, FinishReason::ToolUse);
            assert_eq!((streamed.as_str(), answer.text.as_str()), ("", ""));
        }
    }
}

#[test]
fn call_after_text_is_found_without_showing_its_json() {
    let stage = BabblingModel::new();
    let tools = [tool_spec("shell", json!({"type": "object", "properties": {}}))];
    let script = format!("Let me `look`:\n\n{}", call_text("shell", &json!({})));
    let (answer, streamed) = stage.produce_answer(&tools, &script, 3, 0.0);
    assert_eq!(streamed, "Let me `look`:\n\n");
    assert_eq!(answer.text, streamed);
    assert_eq!(answer.call.unwrap().0, "shell");
}

#[test]
fn blank_lines_before_an_answer_or_a_call_are_dropped() {
    let stage = BabblingModel::new();
    let tools = [tool_spec("shell", json!({"type": "object", "properties": {}}))];
    let script = format!("\n \n{}", call_text("shell", &json!({})));
    let (answer, streamed) = stage.produce_answer(&tools, &script, 3, 0.0);
    assert_eq!((answer.text.as_str(), streamed.as_str()), ("", ""));
    assert!(answer.call.is_some());
    let (answer, streamed) = stage.produce_answer(&tools, "\n\nWell. ", 3, 0.0);
    assert!(answer.text.starts_with("Well. ") && answer.text == streamed);
}

#[test]
fn json_that_is_not_a_call_stays_text() {
    let stage = BabblingModel::new();
    let tools = [tool_spec("shell", json!({"type": "object", "properties": {}}))];
    for script in [
        "Here:\n```json\n{\n  \"age\": 3\n}\n```\nDone.<END>",
        "```js\nlet a = `ä€`;\n```<END>",
        "{\"name\": \"shell\"}<END>",
        "a ``` b ```json<END>",
    ] {
        let script_text = script.trim_end_matches("<END>");
        let mut tokens = stage.tokenizer.encode_plain(script_text).unwrap();
        tokens.push(stage.tokenizer.turn_end());
        let format = CallFormat::new(&tools.iter().collect::<Vec<_>>());
        let decoding = DecodingInputs {
            tokenizer: &stage.tokenizer,
            grammar: &stage.grammar,
            format: &format,
            tokens_max: 500,
            calls: ToolCallPermission::Allowed(0.0),
            stops: &StopTexts::default(),
            schema: None,
            cancel: &CancelFlag::default(),
        };
        let mut engine = BabblingEngine {
            tokenizer: &stage.tokenizer,
            script: tokens,
            random: RandomFloats(5),
            said: 0,
        };
        let mut streamed = String::new();
        let logits = engine.next_logits();
        let mut sink = |text: &str| {
            streamed.push_str(text);
            true
        };
        let answer =
            decode_answer(&mut engine, logits, TokenSampler::new(0.0, 0), &decoding, &mut sink)
                .unwrap();
        assert_eq!(answer.finish_reason, FinishReason::Stop);
        assert_eq!((answer.text.as_str(), streamed.as_str()), (script_text, script_text));
        assert!(answer.call.is_none());
    }
}

#[test]
fn truncated_call_is_neither_a_call_nor_text() {
    let stage = BabblingModel::new();
    let tools = [tool_spec(
        "write",
        json!({"type": "object", "required": ["text"],
        "properties": {"text": {"type": "string", "minLength": 9000}}}),
    )];
    let (answer, streamed) = stage.produce_answer(&tools, "```json", 1, 0.0);
    assert_eq!(answer.finish_reason, FinishReason::MaxTokens);
    assert_eq!((answer.call, answer.text.as_str(), streamed.as_str()), (None, "", ""));
}

#[test]
fn tokens_forced_by_the_grammar_are_not_computed() {
    let stage = BabblingModel::new();
    let tools = [tool_spec("shell", json!({"type": "object", "properties": {}}))];
    let (answer, _) = stage.produce_answer(&tools, "```json", 1, 0.0);
    let written = stage.tokenizer.encode_plain("```json").unwrap().len();
    assert_eq!(answer.fed, written - 1, "everything after the fence was forced");
    let bytes: Vec<u8> = answer
        .tokens
        .iter()
        .flat_map(|&token| stage.tokenizer.token_bytes(token).to_vec())
        .collect();
    assert_eq!(String::from_utf8(bytes).unwrap(), call_text("shell", &json!({})));
}

#[test]
fn without_tools_everything_is_text() {
    let stage = BabblingModel::new();
    let script = call_text("shell", &json!({}));
    let (answer, _) = stage.produce_answer(&[], &script, 9, 0.0);
    assert!(answer.text.starts_with(&script) && answer.call.is_none());
}
