//! Tests conversations with the strict fake as Vertex AI.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use jaato_plugin_sdk::ErrorKind;
use jaato_plugin_sdk::serde_json::json;
use jaato_plugin_sdk::types::Message;
use jaato_vendors::google::{FakeGoogle, GoogleTurn};

use crate::vendor::{MODELS, example_turns, talk_with};

#[test]
fn vertex_requests_send_no_call_ids() {
    for model in MODELS {
        let config = json!({ "project": "my-project" });
        let mut talk = talk_with(model, config, FakeGoogle::new(example_turns()));
        let first = talk.ask(Message::user("look"));
        let second = talk.answer(&first);
        talk.answer(&second);
        let sent = talk.vendor.accepted_requests();
        assert!(!sent[2].to_string().contains("\"id\""), "{model}");
        let last = talk.host.http_requests().pop().unwrap().head;
        assert_eq!(
            last.url,
            format!(
                "https://aiplatform.googleapis.com/v1beta1/projects/my-project/locations/global/\
                 publishers/google/models/{model}:streamGenerateContent?alt=sse"
            )
        );
        assert_eq!(last.credential.as_deref(), Some("GOOGLE_OAUTH_ACCESS_TOKEN"));
    }
}

#[test]
fn vertex_accepts_an_api_key_without_a_project() {
    let vendor = FakeGoogle::new(example_turns()).with_credentials(&["GEMINI_API_KEY"]);
    let mut talk = talk_with("gemini-3.8-flash", json!({ "vertex": true }), vendor);
    let first = talk.ask(Message::user("look"));
    talk.answer(&first);
    let last = talk.host.http_requests().pop().unwrap().head;
    assert!(last.url.starts_with("https://aiplatform.googleapis.com/v1beta1/publishers/google/"));
    assert_eq!(last.credential.as_deref(), Some("GEMINI_API_KEY"));
}

#[test]
fn model_missing_in_a_region_hints_at_the_location_setting() {
    let config = json!({ "project": "p", "location": "us-central1" });
    let mut talk = talk_with("gemini-4-argon", config.clone(), FakeGoogle::new([]));
    talk.request.messages.push(Message::user("hi"));
    let error = talk.send().unwrap_err();
    assert_eq!(error.kind, ErrorKind::Provider);
    let hint = error.hint.unwrap();
    assert!(hint.contains("set `location` to it"), "{hint}");
    let mut older = talk_with("gemini-2.5-flash", config, FakeGoogle::new([GoogleTurn::text("a")]));
    older.ask(Message::user("hi"));
    let sent = older.host.http_requests().pop().unwrap().head;
    assert!(sent.url.starts_with("https://us-central1-aiplatform.googleapis.com/"), "{}", sent.url);
}

#[test]
fn vertex_model_list_has_names_and_known_context_windows() {
    let talk = talk_with("m", json!({ "project": "p" }), FakeGoogle::new([]));
    let models = talk.host.instance().unwrap().models().unwrap();
    let names: Vec<_> = models.iter().map(|info| info.name.as_str()).collect();
    assert!(names.contains(&"gemini-4-argon") && !names.contains(&"gemini-embedding-001"));
    let limits = models.iter().filter(|info| info.name.starts_with("gemini-"));
    assert!(limits.into_iter().all(|info| info.context_limit == Some(1_048_576)));
}
