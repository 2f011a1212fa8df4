//! A model that makes the same call again has to say something instead.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::sync::Arc;

use crate::support::{Kept, Quirks, request, tool, write_model};
use jaato_plugin_sdk::types::{Error, FinishReason, Message, Result, ToolResult};
use provider_local::cancel::CancelFlag;
use provider_local::engine::Engine;
use provider_local::grammar::{CallGrammar, call_text};
use provider_local::local::LocalModel;
use provider_local::tokenizer::Tokenizer;
use serde_json::{Map, json};

/// Says its script after every prompt; second choice is an `o`.
struct Parrot {
    tokenizer: Arc<Tokenizer>,
    script: Vec<u32>,
    prompt_len: usize,
    len: usize,
}

impl Engine for Parrot {
    fn context_limit(&self) -> usize {
        100_000
    }
    fn len(&self) -> usize {
        self.len
    }
    fn forward(&mut self, tokens: &[u32], _cancel: &CancelFlag) -> Result<Vec<f32>> {
        self.len += tokens.len();
        // Prompts are long, what is decoded comes in pieces.
        if tokens.len() > 60 {
            self.prompt_len = self.len;
        }
        let mut logits = vec![0.0; self.tokenizer.vocabulary_len()];
        let next = self.script.get(self.len - self.prompt_len).copied();
        logits[next.unwrap_or(self.tokenizer.turn_end()) as usize] = 2.0;
        logits[self.tokenizer.encode_plain("o")?[0] as usize] = 1.0;
        Ok(logits)
    }
    fn truncate(&mut self, len: usize) {
        self.len = len;
    }
    fn state_bytes_per_token(&self) -> usize {
        0
    }
    fn save(&self, _len: usize) -> Result<Vec<u8>> {
        Err(Error::failed("a parrot has no state"))
    }
    fn load(&mut self, _bytes: &[u8], _stored: usize, _len: usize) -> Result<()> {
        Err(Error::failed("a parrot has no state"))
    }
}

#[test]
fn the_second_of_two_equal_calls_becomes_text() {
    let folder = tempfile::tempdir().unwrap();
    let tokenizer = crate::support::tokenizer(&write_model(folder.path(), Quirks::default()));
    let script = tokenizer.encode_plain(&call_text("shell", &json!({}))).unwrap();
    let engine = Parrot { tokenizer: Arc::clone(&tokenizer), script, prompt_len: 0, len: 0 };
    let grammar = CallGrammar::new(&tokenizer).unwrap();
    let mut model = LocalModel::new(Box::new(engine), tokenizer, grammar);
    let tools = [tool("shell", json!({"type": "object", "properties": {}}))];
    let mut request = request("list the files, all of them, and then the folders", &tools, 200);

    let mut kept = Kept::default();
    let first = model.complete(&request, &CancelFlag::default(), &mut kept).unwrap();
    assert_eq!((first.finish_reason, kept.calls), (FinishReason::ToolUse, 1));

    let call = first.parts[0].as_tool_call().unwrap().clone();
    let content = Map::from_iter([("files".to_owned(), json!("a, b, c"))]);
    let result = ToolResult::new(call.id, call.name, content);
    request.messages.extend([Message::model(first.parts), Message::tool([result])]);
    let mut kept = Kept::default();
    let second = model.complete(&request, &CancelFlag::default(), &mut kept).unwrap();
    assert_eq!((second.finish_reason, kept.calls), (FinishReason::Stop, 0));
    assert!(kept.text.starts_with('o') && kept.log.len() == 1, "{:?} {:?}", kept.text, kept.log);
    assert_eq!(Message::model(second.parts).text(), kept.text);
}
