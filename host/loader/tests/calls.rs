//! Tests calls of a loaded plugin: answers, emissions, services, streams, shared and saved state.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::support::*;
use jaato_loader::{Facet, PIECE_BYTES_MAX, STREAMS_MAX, StartedPlugin, TASKS_MAX, WAITING_MAX};
use jaato_types::{ErrorKind, Frame};
use serde_json::json;

#[tokio::test]
async fn tool_call_returns_its_result_or_an_error() {
    let fixture = LoaderFixture::new();
    let instance = fixture.create_instance(&open_probe(), None).await;
    let arguments = json!({ "text": "a b", "line": 42 });
    assert_eq!(run_call(&instance, "echo", arguments.clone()).await, Ok(arguments.clone()));
    let in_place = instance
        .call_tool_in_place("echo", json_frame(&arguments), test_services())
        .unwrap()
        .unwrap();
    assert_eq!(parse_json_frame(&in_place.await.unwrap()), arguments);
    let error = run_call(&instance, "moon", json!({})).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::UnknownTool);
    let error = run_call(&instance, "echo", json!({ "text": 7 })).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::InvalidArguments);
}

#[tokio::test]
async fn tools_provider_gc_and_commands_share_one_state_and_instances_do_not() {
    let fixture = LoaderFixture::new();
    let plugin = fixture.start_plugin(&open_probe()).await;
    let instance = plugin.create_instance(test_services(), None).await.unwrap();
    assert!(
        instance.facets().has(Facet::Tool)
            && instance.facets().has(Facet::Gc)
            && instance.facets().has(Facet::Complete)
    );
    assert_eq!(run_call(&instance, "count", json!({})).await, Ok(json!({ "count": 1 })));
    let request = json!({ "v": 1, "model": "m", "messages": [], "tools": [] });
    let mut complete = instance.begin_completion(json_frame(&request), test_services()).unwrap();
    wait_for_output(&mut complete, "2").await;
    assert!(complete.answer().await.unwrap_err().message.contains("the count is 2"));
    let command = json!({ "name": "tell", "arguments": { "a": 1 } });
    let answer = instance
        .begin_operation("command", json_frame(&command), test_services())
        .unwrap()
        .answer()
        .await;
    let expected = json!({ "command": "tell", "arguments": { "a": 1 }, "count": 2 });
    assert_eq!(parse_json_frame(&answer.unwrap()), expected);
    let models = instance.begin_model_list(test_services()).unwrap().answer().await.unwrap();
    assert_eq!(parse_json_frame(&models), json!([]));
    let other = plugin.create_instance(test_services(), None).await.unwrap();
    assert_eq!(run_call(&other, "count", json!({})).await, Ok(json!({ "count": 1 })));
}

#[tokio::test]
async fn unknown_operation_is_refused_as_unknown() {
    let fixture = LoaderFixture::new();
    let instance = fixture.create_instance(&open_probe(), None).await;
    let call = instance.begin_operation("telepathy", Frame::empty(), test_services()).unwrap();
    assert_eq!(call.answer().await.unwrap_err().kind, ErrorKind::UnknownOperation);
}

#[tokio::test]
async fn saved_state_is_restored_and_refused_state_is_an_error() {
    let fixture = LoaderFixture::new();
    let plugin = fixture.start_plugin(&open_probe()).await;
    let first = plugin.create_instance(test_services(), None).await.unwrap();
    assert_eq!(first.save().await, Ok(None));
    run_call(&first, "count", json!({})).await.unwrap();
    run_call(&first, "count", json!({})).await.unwrap();
    let saved = first.save().await.unwrap().unwrap();
    assert_eq!(first.close().await.unwrap().unwrap(), saved);
    assert_eq!(first.save().await.unwrap_err().kind, ErrorKind::Cancelled);
    assert_eq!(first.close().await.unwrap_err().kind, ErrorKind::Cancelled);
    let second = plugin.create_instance(test_services(), Some(saved)).await.unwrap();
    assert_eq!(run_call(&second, "count", json!({})).await, Ok(json!({ "count": 3 })));
    for bad in [json!({ "refuse": true }), json!("text")] {
        let refused = plugin.create_instance(test_services(), Some(json_frame(&bad))).await;
        assert_eq!(refused.err().unwrap().kind, ErrorKind::Failed);
    }
}

#[tokio::test]
async fn all_emissions_arrive_before_an_immediate_answer() {
    let fixture = LoaderFixture::new();
    let instance = fixture.create_instance(&open_probe(), None).await;
    let mut call = begin_call(&instance, "emit", json!({ "pieces": 1000, "bytes": 3 }));
    let mut seen = 0;
    while let Some(emission) = with_timeout(call.next_emission()).await {
        assert_eq!(parse_output(&emission), "xxx");
        seen += 1;
    }
    assert_eq!(seen, 1000);
    assert_eq!(parse_json_frame(&call.answer().await.unwrap()), json!({ "taken": 1000 }));
}

#[tokio::test]
async fn call_that_emits_more_than_the_limit_fails() {
    let fixture = LoaderFixture::new();
    let instance = fixture.create_instance(&open_probe(), None).await;
    let error =
        run_call(&instance, "emit", json!({ "pieces": 40, "bytes": 1 << 20 })).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::LimitReached, "{error}");
    assert!(run_call(&instance, "emit", json!({ "pieces": 31, "bytes": 1 << 20 })).await.is_ok());
}

#[tokio::test]
async fn services_answer_refuse_and_know_the_calling_plugin() {
    let fixture = LoaderFixture::new();
    let instance = fixture.create_instance(&open_probe(), None).await;
    let ask = |operation: &str| {
        let arguments = json!({ "operation": operation });
        let instance = &instance;
        async move { run_call(instance, "ask", arguments).await }
    };
    assert_eq!(ask("echo").await, Ok(json!({ "answer": { "from": "probe" } })));
    let caller = json!({ "plugin": "fixture-probe", "kind": "Call" });
    assert_eq!(ask("caller").await, Ok(json!({ "answer": caller })));
    assert_eq!(ask("sleep").await, Ok(json!({ "answer": "slept" })));
    assert_eq!(ask("refuse").await.unwrap_err().kind, ErrorKind::PermissionDenied);
    assert_eq!(ask("moon").await.unwrap_err().kind, ErrorKind::UnknownOperation);
}

#[tokio::test]
async fn a_stream_is_read_in_pieces_and_dropped_waits_lose_nothing() {
    let fixture = LoaderFixture::new();
    let instance = fixture.create_instance(&open_probe(), None).await;
    let sum = PIECES.iter().sum::<usize>();
    let max = PIECE_BYTES_MAX;
    for drop_waits in [false, true] {
        let arguments = json!({ "operation": "pieces", "drop_waits": drop_waits });
        let answer = run_call(&instance, "read", arguments).await.unwrap();
        let sizes = [1, max, max, 1, max, max, max, 200_000 - 3 * max, 7];
        assert_eq!(answer, json!({ "sizes": sizes, "sum": sum }), "drop_waits: {drop_waits}");
    }
    let broken = json!({ "operation": "broken", "drop_waits": false });
    assert_eq!(run_call(&instance, "read", broken).await.unwrap_err().kind, ErrorKind::Io);
    drop(instance);
}

#[tokio::test]
async fn plugin_that_declares_tools_but_has_none_is_refused_with_a_hint() {
    let fixture = LoaderFixture::new();
    let error =
        StartedPlugin::start(&fixture.executor, &open_fixture("vanished")).await.err().unwrap();
    assert!(error.to_string().contains("exports tools but has none\nhint: add `tool!("), "{error}");
}

#[tokio::test]
async fn executor_hop_completes_a_thousand_times() {
    let fixture = LoaderFixture::new();
    for _ in 0..1000 {
        with_timeout(fixture.executor.run_empty_future()).await;
    }
}

#[tokio::test]
async fn background_tasks_streams_and_sleeps_of_a_context_are_limited() {
    let fixture = LoaderFixture::new();
    let wish = json!({ "background_tasks": TASKS_MAX + 1 });
    let instance = fixture.create_instance(&open_probe(), Some(wish)).await;
    let taken = run_call(&instance, "background", json!({})).await;
    assert_eq!(taken, Ok(json!({ "taken": TASKS_MAX })));
    let open = |count: usize| run_call(&instance, "open_many", json!({ "count": count }));
    let all = json!({ "open": STREAMS_MAX, "refusal": null });
    assert_eq!(open(STREAMS_MAX).await, Ok(all));
    let one_less = json!({ "open": STREAMS_MAX, "refusal": "limit_reached" });
    assert_eq!(open(STREAMS_MAX + 1).await, Ok(one_less));
    for count in [WAITING_MAX, WAITING_MAX + 1] {
        let waiting = run_call(&instance, "sleep_many", json!({ "count": count })).await;
        assert_eq!(waiting, Ok(json!({ "waiting": WAITING_MAX })));
    }
    with_timeout(instance.close()).await.unwrap();
    drop(instance);
    fixture.assert_no_live_objects();
}
