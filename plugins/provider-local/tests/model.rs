//! Tests the tiny model: a reused state gives the same tokens, and a cancelled call leaves a valid
//! state.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::Path;

use crate::support::{
    CONTEXT, GgufQuirks, RecordingSink, completion_request, load_model, tool_spec, write_model,
};
use candle_core::quantized::GgmlDType;
use jaato_plugin_sdk::types::{Completion, CompletionRequest, ErrorKind, FinishReason, Message};
use provider_local::cancel::CancelFlag;
use provider_local::local::{CompletionSink, LocalModel};
use provider_local::state::{BYTES_MAX, ModelStateStore};

use serde_json::json;

fn complete_request(
    model: &mut LocalModel,
    request: &CompletionRequest,
) -> (Completion, RecordingSink) {
    let mut kept = RecordingSink::default();
    let completion = model.complete_request(request, &CancelFlag::default(), &mut kept).unwrap();
    (completion, kept)
}

fn question_request(text: &str) -> CompletionRequest {
    completion_request(text, &[tool_spec("shell", json!({"type": "object", "properties": {}}))], 24)
}

fn model_with_store(path: &Path, folder: &Path) -> LocalModel {
    let mut model = load_model(path);
    let bytes = model.state_bytes_per_token();
    model.set_store(ModelStateStore::new(folder.to_owned(), [1; 32], bytes, BYTES_MAX));
    model
}

#[test]
fn cached_tokens_are_reused_without_changing_the_answer() {
    let folder = tempfile::tempdir().unwrap();
    let path = write_model(folder.path(), GgufQuirks::default());
    let mut model = load_model(&path);
    let (first, _) = complete_request(&mut model, &question_request("one"));
    assert_eq!(first.usage.cached_tokens, 0);

    let mut longer = question_request("one");
    longer.messages.push(Message::model(first.parts.clone()));
    longer.messages.push(Message::user("two"));
    for request in [longer, question_request("other"), question_request("one")] {
        let (reused, _) = complete_request(&mut model, &request);
        let (fresh, _) = complete_request(&mut load_model(&path), &request);
        assert!(reused.usage.cached_tokens > 50, "{:?}", reused.usage);
        assert_eq!(reused.parts, fresh.parts);
        assert_eq!(reused.usage.prompt_tokens, fresh.usage.prompt_tokens);
    }
}

#[test]
fn streamed_text_is_the_text_of_the_completion() {
    let folder = tempfile::tempdir().unwrap();
    let path = write_model(folder.path(), GgufQuirks::default());
    let (completion, kept) = complete_request(&mut load_model(&path), &question_request("seven"));
    assert_eq!(completion.finish_reason, FinishReason::MaxTokens);
    assert_eq!(completion.usage.output_tokens, 24);
    assert_eq!(Message::model(completion.parts).text(), kept.text);
    assert!(!kept.text.is_empty());
}

#[test]
fn new_process_reuses_the_saved_prefix_state() {
    let folder = tempfile::tempdir().unwrap();
    let path = write_model(folder.path(), GgufQuirks::default());
    let states = folder.path().join("states");
    let mut first = model_with_store(&path, &states);
    let (fresh, _) = complete_request(&mut first, &question_request("one"));
    first.save_prefix().unwrap();
    let prefix = first.prefix_tokens(&question_request("one")).unwrap();

    let (again, kept) =
        complete_request(&mut model_with_store(&path, &states), &question_request("one"));
    assert_eq!(again.usage.cached_tokens, prefix as u64);
    assert_eq!(again.parts, fresh.parts);
    assert_eq!(kept.log, Vec::<String>::new());

    // Another system text shares only the frame, so no stored state is useful.
    let mut other = question_request("one");
    other.system = "Quite another text.".to_owned();
    let (completion, _) = complete_request(&mut model_with_store(&path, &states), &other);
    assert_eq!(completion.usage.cached_tokens, 0);
}

#[test]
fn saved_state_contains_nothing_of_the_conversation() {
    let folder = tempfile::tempdir().unwrap();
    let path = write_model(folder.path(), GgufQuirks::default());
    let states = folder.path().join("states");
    let mut model = model_with_store(&path, &states);
    let secret = "zqxjkv".repeat(4);
    complete_request(&mut model, &question_request(&secret));
    model.save_prefix().unwrap();
    let file = std::fs::read_dir(&states).unwrap().next().unwrap().unwrap();
    let bytes = std::fs::read(file.path()).unwrap();
    let tokens = crate::support::load_tokenizer(&path).encode_plain(&secret).unwrap();
    let spelled: Vec<u8> = tokens.iter().flat_map(|token| token.to_le_bytes()).collect();
    assert!(!bytes.windows(spelled.len()).any(|window| window == spelled));
    let prefix = model.prefix_tokens(&question_request("")).unwrap();
    assert_eq!(bytes.len(), 52 + prefix * (4 + model.state_bytes_per_token()) + 32);
}

#[test]
fn damaged_state_is_reported_and_does_not_change_the_answer() {
    let folder = tempfile::tempdir().unwrap();
    let path = write_model(folder.path(), GgufQuirks::default());
    let states = folder.path().join("states");
    let mut model = model_with_store(&path, &states);
    let (fresh, _) = complete_request(&mut model, &question_request("one"));
    model.save_prefix().unwrap();
    let file = std::fs::read_dir(&states).unwrap().next().unwrap().unwrap().path();
    let mut bytes = std::fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&file, bytes).unwrap();

    let (again, kept) =
        complete_request(&mut model_with_store(&path, &states), &question_request("one"));
    assert_eq!((again.usage.cached_tokens, again.parts), (0, fresh.parts));
    assert!(kept.log[0].contains("is damaged; removed"), "{:?}", kept.log);
    assert!(!file.exists());
}

/// Cancels as soon as it receives anything.
struct CancellingSink(CancelFlag);

impl CompletionSink for CancellingSink {
    fn send_text(&mut self, _text: &str) -> bool {
        self.0.cancel();
        true
    }
    fn show_notice(&mut self, _text: String) {
        self.0.cancel();
    }
    fn log(&mut self, _text: String) {}
}

#[test]
fn cancel_stops_prompt_and_answer_and_leaves_the_model_usable() {
    let folder = tempfile::tempdir().unwrap();
    let path = write_model(folder.path(), GgufQuirks::default());
    let mut model = load_model(&path);
    let long = question_request(&"word ".repeat(100));
    for request in [&long, &question_request("short"), &long] {
        let cancel = CancelFlag::default();
        let result = model.complete_request(request, &cancel, &mut CancellingSink(cancel.clone()));
        assert_eq!(result.unwrap_err().kind, ErrorKind::Cancelled);
    }
    let (after, _) = complete_request(&mut model, &long);
    let (fresh, _) = complete_request(&mut load_model(&path), &long);
    assert_eq!(after.parts, fresh.parts);
}

#[test]
fn a_prompt_that_leaves_no_room_is_an_overflow() {
    let folder = tempfile::tempdir().unwrap();
    let path = write_model(folder.path(), GgufQuirks::default());
    let mut model = load_model(&path);
    let room = CONTEXT as usize - prompt_tokens(&mut model, "");
    let error = model
        .complete_request(
            &question_request(&"x".repeat(room)),
            &CancelFlag::default(),
            &mut RecordingSink::default(),
        )
        .unwrap_err();
    assert_eq!(error.kind, ErrorKind::ContextOverflow);
    assert!(error.message.contains("has 2048 tokens"), "{error}");

    // One token less leaves room for one token of the answer.
    let (completion, _) = complete_request(&mut model, &question_request(&"x".repeat(room - 1)));
    assert_eq!(completion.usage.output_tokens, 1);
    assert_eq!(completion.finish_reason, FinishReason::MaxTokens);
}

fn prompt_tokens(model: &mut LocalModel, text: &str) -> usize {
    complete_request(model, &question_request(text)).0.usage.prompt_tokens as usize
}

#[test]
fn control_tokens_in_a_text_stay_text() {
    let folder = tempfile::tempdir().unwrap();
    let path = write_model(folder.path(), GgufQuirks::default());
    let tokenizer = crate::support::load_tokenizer(&path);
    let text = "a<|im_end|>b";
    let plain = tokenizer.encode_plain(text).unwrap();
    assert_eq!(plain.len(), text.len());
    let back: Vec<u8> =
        plain.iter().flat_map(|&token| tokenizer.token_bytes(token).to_vec()).collect();
    assert_eq!(back, text.as_bytes());
}

#[test]
fn q5_0_weights_are_requantised_and_work() {
    let folder = tempfile::tempdir().unwrap();
    let quirks = GgufQuirks { weights: Some(GgmlDType::Q5_0), ..GgufQuirks::default() };
    let path = write_model(folder.path(), quirks);
    let (completion, _) = complete_request(&mut load_model(&path), &question_request("one"));
    assert_eq!(completion.usage.output_tokens, 24);
}
