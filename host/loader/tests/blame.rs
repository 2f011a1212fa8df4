//! Tests who is to blame: the plugin for its panics and bad frames, the host for panics of
//! services.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::support::*;
use jaato_loader::Facet;
use jaato_types::{Error, ErrorKind, Frame};
use serde_json::json;

#[tokio::test]
async fn plugin_panic_fails_only_its_call_and_reports_text_and_place() {
    let fixture = LoaderFixture::new();
    let instance = fixture.create_instance(&open_probe(), None).await;
    let places = [
        ("now", "boom now"),
        ("after_await", "boom after an await"),
        ("job", "boom in a job"),
        ("payload", "a panic without a text"),
        ("no_text", "a panic without a text"),
    ];
    for (place, text) in places {
        let error = run_call(&instance, "panic", json!({ "place": place })).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::PluginPanicked, "{place}: {error}");
        assert!(error.message.contains(text) && error.message.contains(".rs:"), "{place}: {error}");
    }
    // A drop that panics after a cancel only causes a log line, and everything continues.
    let dropped = begin_call(&instance, "panic", json!({ "place": "drop" }));
    wait_for_lines(&instance, "panic_drop", |lines| !lines.is_empty()).await;
    drop(dropped);
    assert_eq!(run_call(&instance, "count", json!({})).await, Ok(json!({ "count": 1 })));
    with_timeout(instance.close()).await.unwrap();
    drop(instance);
    fixture.assert_no_live_objects();
    assert_eq!(fixture.troubles(), Vec::<String>::new());
}

#[tokio::test]
async fn panics_in_create_save_and_drop_of_the_state_are_caught() {
    let fixture = LoaderFixture::new();
    let plugin = fixture.start_plugin(&open_probe()).await;
    let create = async |wish: &str| {
        let saved = json_frame(&json!({ wish: true, "count": 1 }));
        plugin.create_instance(test_services(), Some(saved)).await
    };
    let error = create("panic_in_create").await.err().unwrap();
    assert_eq!(error.kind, ErrorKind::PluginPanicked);
    let instance = create("panic_in_save").await.unwrap();
    assert_eq!(instance.save().await.unwrap_err().kind, ErrorKind::PluginPanicked);
    assert_eq!(with_timeout(instance.close()).await.unwrap_err().kind, ErrorKind::PluginPanicked);
    drop(instance);
    let instance = create("panic_in_drop").await.unwrap();
    assert!(with_timeout(instance.close()).await.unwrap().is_some());
    drop(instance);
    fixture.assert_no_live_objects();
}

#[tokio::test]
async fn a_save_that_hangs_does_not_hold_up_the_close_for_ever() {
    let fixture = LoaderFixture::new();
    let instance =
        fixture.create_instance(&open_probe(), Some(json!({ "hang_in_save": true }))).await;
    assert_eq!(with_timeout(instance.close()).await.unwrap_err().kind, ErrorKind::Timeout);
}

#[tokio::test]
async fn service_panic_is_blamed_on_the_host_and_not_on_the_plugin() {
    let mut fixture = LoaderFixture::new();
    let instance = fixture.create_instance(&open_probe(), None).await;
    for operation in ["panic", "panic_later"] {
        for _ in 0..5 {
            let error =
                run_call(&instance, "ask", json!({ "operation": operation })).await.unwrap_err();
            assert_eq!(error.kind, ErrorKind::HostBug, "{operation}: {error}");
        }
    }
    let error = run_call(&instance, "ask", json!({ "operation": "bad_frame" })).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::HostBug);
    assert!(fixture.reports.try_recv().is_err());
    assert!(fixture.troubles().iter().any(|text| text.contains("a service panics")));
    assert!(run_call(&instance, "count", json!({})).await.is_ok());
}

#[track_caller]
fn assert_misbehaved(error: &Error) {
    assert_eq!(error.kind, ErrorKind::PluginMisbehaved, "{error}");
    assert!(error.message.contains("`fixture-raw`"), "{error}");
}

#[tokio::test]
async fn invalid_frames_are_always_blamed_on_the_plugin() {
    let fixture = LoaderFixture::new();
    let plugin = fixture.start_plugin(&open_raw()).await;
    let mode = |mode: &str| Some(json_frame(&json!(mode)));
    for bad in ["empty", "short", "long"] {
        let instance =
            plugin.create_instance(test_services(), mode(&format!("save_{bad}"))).await.unwrap();
        assert!(!instance.facets().has(Facet::Gc) && !instance.facets().has(Facet::Complete));
        assert_misbehaved(&run_call(&instance, bad, json!({})).await.unwrap_err());
        let operation = instance.begin_operation(bad, Frame::empty(), test_services()).unwrap();
        assert_misbehaved(&operation.answer().await.unwrap_err());
        assert_misbehaved(&instance.save().await.unwrap_err());
        assert_misbehaved(&with_timeout(instance.close()).await.unwrap_err());
    }
    for bad in ["empty", "short", "long", "not_json"] {
        let created = plugin.create_instance(test_services(), mode(&format!("create_{bad}"))).await;
        assert_misbehaved(&created.err().unwrap());
    }
    let instance = plugin.create_instance(test_services(), None).await.unwrap();
    for tool in ["bad_error", "bad_emit"] {
        assert_misbehaved(&run_call(&instance, tool, json!({})).await.unwrap_err());
    }
    for begun in [
        instance.begin_plan(Frame::empty(), test_services()),
        instance.begin_model_list(test_services()),
    ] {
        assert_misbehaved(&begun.unwrap().answer().await.unwrap_err());
    }
}

#[tokio::test]
async fn panic_outside_the_sdk_is_blamed_on_the_plugin_too() {
    let fixture = LoaderFixture::new();
    let plugin = fixture.start_plugin(&open_raw()).await;
    let created = plugin.create_instance(test_services(), Some(json_frame(&json!("panic")))).await;
    assert_eq!(created.err().unwrap().kind, ErrorKind::PluginPanicked);
    let instance = plugin.create_instance(test_services(), None).await.unwrap();
    let error = run_call(&instance, "panic", json!({})).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::PluginPanicked);
    drop(instance);
    assert_eq!(fixture.troubles(), Vec::<String>::new());
}
