//! Tests the list of models on a fake host.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use jaato_plugin_sdk::serde_json::{Value, json};
use jaato_plugin_sdk::types::Message;
use jaato_vendors::ModelConversation;
use jaato_vendors::ollama::{FakeOllama, OllamaTurn};

use crate::vendor::talk_with;

/// Returns each model's name, window and number of supported image types.
fn list_models(talk: &ModelConversation<FakeOllama>) -> Vec<(String, u64, usize)> {
    let models = talk.host.instance().unwrap().models().unwrap();
    let seen = |it: &Option<Vec<String>>| it.as_ref().unwrap().len();
    models
        .iter()
        .map(|it| (it.name.clone(), it.context_limit.unwrap(), seen(&it.accepts)))
        .collect()
}

fn talk_to_usual_models(server: FakeOllama, config: Value) -> ModelConversation<FakeOllama> {
    talk_with("qwen3:8b", server, config)
}

#[test]
fn installed_chat_models_are_listed_with_their_requested_context_size() {
    let all = |sizes: [u64; 7]| {
        let names = [
            "qwen3:8b",
            "qwen3-vl:8b",
            "gemma3:4b",
            "gpt-oss:20b",
            "tiny:latest",
            "tuned:1b",
            "big:cloud",
        ];
        let sees = [0, 2, 2, 0, 0, 0, 0];
        let rows = names.into_iter().zip(sizes).zip(sees);
        rows.map(|((name, size), sees)| (name.to_owned(), size, sees)).collect::<Vec<_>>()
    };
    let expected = all([32_768, 32_768, 32_768, 32_768, 2_048, 8_192, 202_752]);
    assert_eq!(list_models(&talk_to_usual_models(FakeOllama::new([]), json!({}))), expected);
    let expected = all([4_096, 4_096, 4_096, 4_096, 2_048, 4_096, 4_096]);
    assert_eq!(
        list_models(&talk_to_usual_models(FakeOllama::new([]), json!({ "context_tokens": 4_096 }))),
        expected
    );
}

#[test]
fn actual_context_size_is_listed_after_the_first_request() {
    let server = FakeOllama::new([OllamaTurn::text("a")]).with_context_max(3_000);
    let mut talk = talk_to_usual_models(server, json!({}));
    assert_eq!(list_models(&talk)[0].1, 32_768);
    talk.ask(Message::user("hi"));
    assert_eq!(list_models(&talk)[0].1, 3_000);
    assert_eq!(list_models(&talk)[1].1, 32_768);
}
