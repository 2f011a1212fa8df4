//! Tests a C plugin through the C entry: it answers, waits, emits, asks, keeps its state, and
//! misbehaves.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::Path;
use std::sync::OnceLock;

use crate::moon::{compile_moon, compile_plugin};
use crate::support::*;
use jaato_loader::{
    Facet, Instance, LoadProblem, OpenedPlugin, PluginLibrary, describe_plugin, read_manifest,
};
use jaato_plugin_testkit::skip;
use jaato_types::{Error, ErrorKind, Frame, PluginKind};
use serde_json::{Value, json};

const HOST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// The correct plugin, compiled and opened once.
fn open_plugin() -> Option<OpenedPlugin> {
    static OPENED: OnceLock<Option<OpenedPlugin>> = OnceLock::new();
    let open = || {
        Some(
            PluginLibrary::open(&compile_moon(HOST, None)?)
                .unwrap_or_else(|error| panic!("{error}")),
        )
    };
    let opened = OPENED.get_or_init(open).clone();
    if opened.is_none() {
        skip("no compiler for C");
    }
    opened
}

/// Creates an instance of the plugin, or returns from the test.
macro_rules! instance {
    ($fixture:ident) => {
        match open_plugin() {
            Some(opened) => $fixture.create_instance(&opened, None).await,
            None => return,
        }
    };
}

async fn misbehaves(instance: &Instance, what: &str) -> Error {
    run_call(instance, "moon_c_bad", json!({ "what": what })).await.unwrap_err()
}

async fn tally(instance: &Instance, key: &str) -> i64 {
    run_call(instance, "moon_c_tally", json!({})).await.unwrap()[key].as_i64().unwrap()
}

#[test]
fn c_plugin_manifest_and_description_are_read() {
    let Some(opened) = open_plugin() else { return };
    let manifest = read_manifest(opened.path()).unwrap();
    assert_eq!(manifest.name.as_str(), "tool-moon-c");
    assert_eq!(manifest.kinds, [PluginKind::Tool]);
    let description = describe_plugin(&opened).unwrap();
    let names: Vec<_> = description.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names.len(), 9);
    assert!(names.contains(&"moon_c_phase"));
}

#[test]
fn a_table_that_cannot_be_used_is_refused_in_one_line() {
    let hint = "build the plugin with the `jaato_plugin.h` of this jaato's plugin-api";
    for (variant, text) in [
        ("BAD_SIZE", "its table has 12 bytes, version 1 has 64"),
        ("BAD_VERSION", "its table has version 2, this host speaks 1"),
        ("NO_POLL", "its function `poll` is null"),
    ] {
        let Some(place) = compile_moon(HOST, Some(variant)) else { return };
        let Err(error) = PluginLibrary::open(&place) else { panic!("`{variant}` was opened") };
        assert_eq!(
            error.to_string(),
            format!(
                "cannot load plugin `{}`: its export `JAATO_PLUGIN_C1` cannot be used: {text}",
                place.display()
            )
        );
        assert!(matches!(error.problem, LoadProblem::CTable(_)));
        assert_eq!(error.problem.hint().as_deref(), Some(hint));
    }
}

#[tokio::test]
async fn a_tool_takes_arguments_and_answers_or_refuses() {
    let fixture = LoaderFixture::new();
    let instance = instance!(fixture);
    assert!(
        instance.facets().has(Facet::Tool)
            && !instance.facets().has(Facet::Gc)
            && !instance.facets().has(Facet::Complete)
    );
    let phase = run_call(&instance, "moon_c_phase", json!({ "day": 16 })).await;
    assert_eq!(phase, Ok(json!({ "phase": "full" })));
    let refused = run_call(&instance, "moon_c_phase", json!({ "day": -1 })).await;
    let expected = Error::new(ErrorKind::InvalidArguments, "`day` is at least 0");
    assert_eq!(refused, Err(expected));
    let unknown =
        instance.begin_operation("command", json_frame(&json!(null)), test_services()).unwrap();
    let error = with_timeout(unknown.answer()).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::UnknownOperation);
    with_timeout(instance.close()).await.unwrap();
    drop(instance);
    fixture.assert_no_live_objects();
}

#[tokio::test]
async fn c_plugin_emissions_arrive_before_its_answer() {
    let fixture = LoaderFixture::new();
    let instance = instance!(fixture);
    let mut call = begin_call(&instance, "moon_c_watch", json!({ "day": 3 }));
    for text in ["1", "2", "3"] {
        wait_for_output(&mut call, text).await;
    }
    assert_eq!(with_timeout(call.next_emission()).await, None);
    assert_eq!(
        with_timeout(call.answer()).await.map(|frame| parse_json_frame(&frame)),
        Ok(json!({}))
    );
}

#[tokio::test]
async fn c_plugin_call_can_sleep_and_be_woken_by_its_own_thread() {
    let fixture = LoaderFixture::new();
    let instance = instance!(fixture);
    let slept = run_call(&instance, "moon_c_slow", json!({ "day": 1 })).await;
    assert_eq!(slept, Ok(json!({ "waited": true })));
    let woken = run_call(&instance, "moon_c_thread", json!({})).await;
    assert_eq!(woken, Ok(json!({ "woken": true })));
}

#[tokio::test]
async fn a_call_that_waits_is_cancelled_and_ended_on_the_executor() {
    let fixture = LoaderFixture::new();
    let instance = instance!(fixture);
    let before = tally(&instance, "cancelled").await;
    for keeps in [true, false] {
        let mut call = begin_call(&instance, "moon_c_slow", json!({ "day": 3_600_000 }));
        wait_for_output(&mut call, "waiting").await;
        if keeps {
            call.cancel();
            assert_eq!(with_timeout(call.answer()).await.unwrap_err().kind, ErrorKind::Cancelled);
        } else {
            drop(call);
        }
    }
    // The dropped call ends when the executor gets to it.
    with_timeout(async {
        while tally(&instance, "cancelled").await < before + 2 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    drop(instance);
}

#[tokio::test]
async fn c_plugin_asks_services_and_reads_streams() {
    let fixture = LoaderFixture::new();
    let instance = instance!(fixture);
    let service = |name: &str| run_call(&instance, "moon_c_ask", json!({ "what": name }));
    assert_eq!(service("echo").await, Ok(json!({ "what": "echo" })));
    assert_eq!(service("sleep").await, Ok(json!("slept")));
    let caller = service("caller").await.unwrap();
    assert_eq!(caller, json!({ "plugin": "tool-moon-c", "kind": "Call" }));
    assert_eq!(service("refuse").await.unwrap_err().kind, ErrorKind::PermissionDenied);
    assert_eq!(service("unheard").await.unwrap_err().kind, ErrorKind::UnknownOperation);
    for panics in ["panic", "panic_later", "bad_frame"] {
        assert_eq!(service(panics).await.unwrap_err().kind, ErrorKind::HostBug, "{panics}");
    }
    let read = |name: &str| run_call(&instance, "moon_c_read", json!({ "what": name }));
    let sum = PIECES.iter().sum::<usize>();
    assert_eq!(read("pieces").await, Ok(json!({ "bytes": sum })));
    assert_eq!(read("broken").await.unwrap_err().kind, ErrorKind::Io);
    assert_eq!(read("panicking").await.unwrap_err().kind, ErrorKind::HostBug);
    assert_eq!(read("echo").await, Err(Error::failed("it is not a stream")));
}

#[tokio::test]
async fn invalid_answers_of_a_c_plugin_are_blamed_on_it() {
    let fixture = LoaderFixture::new();
    let instance = instance!(fixture);
    for (what, text) in [
        (
            "no frame",
            "its answer is not a valid frame: a frame of 5 bytes is too short: it needs 13",
        ),
        ("too large", "its answer is not a valid frame: a frame of 8388609 bytes is too large"),
        ("null", "`poll` gave a length without bytes"),
        ("status", "`poll` returned 77, which is not a valid status"),
        ("nothing at all", "`poll` failed without an error"),
    ] {
        let error = misbehaves(&instance, what).await;
        assert_eq!(error.kind, ErrorKind::PluginMisbehaved, "{error}");
        let line = format!("the plugin `tool-moon-c` misbehaved: {text}");
        assert!(error.message.starts_with(&line), "{error}");
    }
    let error = run_call(&instance, "nothing", json!({})).await.unwrap_err();
    assert!(error.message.ends_with("misbehaved: `begin` returned no call"), "{error}");
}

#[tokio::test]
async fn invalid_arguments_to_host_functions_are_harmless() {
    let fixture = LoaderFixture::new();
    let instance = instance!(fixture);
    assert_eq!(run_call(&instance, "moon_c_nulls", json!({})).await, Ok(json!({ "good": true })));
    assert_eq!(fixture.troubles(), Vec::<String>::new());
}

#[tokio::test]
async fn c_plugin_state_is_saved_and_restored_and_its_instance_destroyed() {
    let fixture = LoaderFixture::new();
    let fresh = instance!(fixture);
    assert_eq!(with_timeout(fresh.save()).await, Ok(None));
    let opened = open_plugin().unwrap();
    let instance = fixture.create_instance(&opened, Some(json!({ "calls": 1000 }))).await;
    assert_eq!(tally(&instance, "calls").await, 1001);
    let saved = with_timeout(instance.close()).await.unwrap();
    assert_eq!(saved, Some(json_frame(&json!({ "calls": 1001 }))));
    assert_eq!(tally(&fresh, "destroyed").await, 1);

    let plugin = fixture.start_plugin(&opened).await;
    let unreadable = plugin
        .create_instance(test_services(), Some(json_frame(&json!({ "moons": Value::Null }))))
        .await;
    assert_eq!(unreadable.err().unwrap().kind, ErrorKind::InvalidArguments);
    drop((fresh, instance));
}

#[tokio::test]
async fn a_gc_and_a_provider_are_reached_by_their_kinds() {
    let fixture = LoaderFixture::new();
    let Some(place) = compile_moon(HOST, Some("ALL_KINDS")) else { return };
    let instance = fixture.create_instance(&PluginLibrary::open(&place).unwrap(), None).await;
    assert!(
        instance.facets().has(Facet::Tool)
            && instance.facets().has(Facet::Gc)
            && instance.facets().has(Facet::Complete)
    );
    let payload = || json_frame(&json!("payload"));
    let bytes = payload().len();
    let plan = instance.begin_plan(payload(), test_services()).unwrap();
    let planned = with_timeout(plan.answer()).await.map(|frame| parse_json_frame(&frame));
    assert_eq!(planned, Ok(json!({ "kind": 2, "bytes": bytes })));
    let mut completion = instance.begin_completion(payload(), test_services()).unwrap();
    wait_for_output(&mut completion, "thinking").await;
    let completed = with_timeout(completion.answer()).await.map(|frame| parse_json_frame(&frame));
    assert_eq!(completed, Ok(json!({ "kind": 3, "bytes": bytes })));
    let models = instance.begin_model_list(test_services()).unwrap();
    let listed = with_timeout(models.answer()).await.map(|frame| parse_json_frame(&frame));
    assert_eq!(listed, Ok(json!({ "kind": 4, "bytes": Frame::empty().len() })));
}

#[tokio::test]
async fn the_plugin_in_the_authors_guide_works() {
    let guide = Path::new(HOST).join("../docs/authors/c-plugin.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    let (_, rest) = guide.split_once("```c\n").expect("the page has a plugin in C");
    let (source, _) = rest.split_once("```").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("die.c");
    std::fs::write(&place, source).unwrap();
    let Some(built) = compile_plugin(HOST, &place, None) else { return };
    let fixture = LoaderFixture::new();
    let instance = fixture.create_instance(&PluginLibrary::open(&built).unwrap(), None).await;
    assert_eq!(run_call(&instance, "roll_die", json!({})).await, Ok(json!({ "eyes": 4 })));
    assert_eq!(with_timeout(instance.close()).await, Ok(None));
}
