//! Tests plugins with unusual demands on the boundary: a hundred tools, much output, a gc with a
//! state, images. `host/worker/src/serve/unusual_plugins.rs` runs the same plugins in a worker, and
//! the binary's own tests in a session.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "support/blobs.rs"]
mod blobs;

use std::sync::Arc;

use self::blobs::FakeBlobs;
use crate::support::*;
use jaato_loader::{EngineServices, Instance, describe_plugin};
use jaato_types::{Completion, Delta, ErrorKind, Frame, GcPlan, Message, Part};
use serde_json::json;

#[test]
fn a_hundred_tools_are_described() {
    let description = describe_plugin(&open_fixture("many")).unwrap();
    let names: Vec<&str> = description.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!((names.len(), names[0], names[99]), (100, "say00", "stream_lines"));
    assert!(names.is_sorted());
}

#[tokio::test]
async fn hundred_concurrent_calls_reach_a_hundred_tools() {
    let fixture = LoaderFixture::new();
    let instance = fixture.create_instance(&open_fixture("many"), None).await;
    let ask = |number: usize| {
        let instance = &instance;
        async move {
            let answer =
                run_call(instance, &format!("say{number:02}"), json!({ "text": "moon" })).await;
            assert_eq!(answer.as_ref().unwrap()["name"], format!("Say{number:02}"));
            answer.unwrap()["calls"].as_u64().unwrap()
        }
    };
    let mut counts = futures_util::future::join_all((0..99).map(ask)).await;
    counts.sort_unstable();
    assert_eq!(counts, (1..=99).collect::<Vec<u64>>());
    assert_eq!(with_timeout(instance.close()).await, Ok(Some(json_frame(&json!(99)))));
}

#[tokio::test]
async fn a_hundred_thousand_lines_arrive_whole_and_in_order() {
    let fixture = LoaderFixture::new();
    let instance = fixture.create_instance(&open_fixture("many"), None).await;
    let mut call = begin_call(&instance, "stream_lines", json!({ "lines": 100_000 }));
    let mut lines = 0_u32;
    while let Some(emission) = with_timeout(call.next_emission()).await {
        let line = format!("line {lines} of a hundred tools' output\n");
        assert_eq!(parse_output(&emission), line);
        lines += 1;
    }
    let answer = parse_json_frame(&with_timeout(call.answer()).await.unwrap());
    assert_eq!(answer, json!({ "shown": 100_000 }));
    assert_eq!(lines, 100_000);
}

async fn run_plan(instance: &Instance, prompts: &[&str]) -> GcPlan {
    let turn = |name: &&str| [Message::user(*name), Message::model(vec![Part::text("yes")])];
    let messages: Vec<Message> = prompts.iter().flat_map(turn).collect();
    let request = json!({
        "v": 1, "reason": "manual", "messages": messages, "context_limit": 9, "total_tokens": 9,
    });
    let call = instance.begin_plan(json_frame(&request), test_services()).unwrap();
    Frame::read(&with_timeout(call.answer()).await.unwrap()).unwrap()
}

#[tokio::test]
async fn a_gc_recalls_what_an_earlier_instance_dropped() {
    let fixture = LoaderFixture::new();
    let plugin = fixture.start_plugin(&open_fixture("recalls")).await;
    let first = plugin.create_instance(test_services(), None).await.unwrap();
    assert_eq!(run_plan(&first, &["sun", "moon"]).await.drop, [0, 1]);
    let saved = with_timeout(first.close()).await.unwrap();
    let second = plugin.create_instance(test_services(), saved).await.unwrap();
    let summary = run_plan(&second, &["moon", "star"]).await.summary.unwrap().text();
    assert_eq!(summary, "[2 earlier prompts, dropped in 2 steps: sun; moon]");
    let refused =
        plugin.create_instance(test_services(), Some(json_frame(&json!({ "prompts": 7 })))).await;
    let error = refused.err().unwrap();
    assert_eq!(error.kind, ErrorKind::Failed);
    assert!(error.message.starts_with("what was dropped before cannot be read"), "{error}");
}

/// Returns one answer: the kinds of its emissions, and the completion.
async fn run_completion(
    instance: &Instance,
    services: Arc<dyn EngineServices>,
    messages: &[Message],
) -> (Vec<&'static str>, Completion) {
    let request = json!({ "v": 1, "model": "canvas", "messages": messages });
    let mut call = instance.begin_completion(json_frame(&request), services).unwrap();
    let mut emitted = Vec::new();
    while let Some(emission) = with_timeout(call.next_emission()).await {
        emitted.push(match Frame::read(&emission).unwrap() {
            Delta::Thought { .. } => "thought",
            Delta::Text { .. } => "text",
            Delta::Notice { .. } => "notice",
            other => panic!("emitted {other:?}"),
        });
    }
    (emitted, Frame::read(&with_timeout(call.answer()).await.unwrap()).unwrap())
}

#[tokio::test]
async fn provider_streams_thoughts_and_stores_images_as_blobs() {
    let fixture = LoaderFixture::new();
    let instance = fixture.create_instance(&open_fixture("paints"), None).await;
    let blobs = FakeBlobs::default();
    let lend = || Arc::new(blobs.clone());
    let prompt = Message::user("paint");
    let (emitted, first) = run_completion(&instance, lend(), std::slice::from_ref(&prompt)).await;
    assert_eq!(emitted, ["thought", "thought", "thought", "thought", "text", "notice", "notice"]);
    assert_eq!(blobs.sizes(), [120_015, 120_015]);
    let part = json!({ "type": "data", "mime_type": "image/x-portable-pixmap", "blob": "b-1" });
    assert_eq!(json!(first.parts)[3], part);
    let history = [prompt.clone(), Message::model(first.parts), prompt];
    let (_, second) = run_completion(&instance, lend(), &history).await;
    let said = Message::model(second.parts).text();
    assert_eq!(said, "I saw 240030 bytes of images and paint 2 more.");
}
