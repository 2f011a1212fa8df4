//! Tests of a plugin with resources, from its source: its requests to the host, and its answers.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

#[path = "../fixtures/keeps/src/lib.rs"]
mod keeps;
// The tools expect the plugin here.
use keeps::__jaato;

use jaato_plugin_testkit::{FakeHost, FakeInstance, FakeServiceReply};
use jaato_types::resources::{RESOURCE, ResourceAction, ResourceRequest, ResourceSet, SET};
use jaato_types::{Error, ErrorKind, Frame, Result};
use serde_json::{Value, json};

fn keeps_host() -> FakeHost {
    FakeHost::new(__jaato::MODULE).with_service(SET, |_| Ok(FakeServiceReply::Json(json!({}))))
}

fn ask_resource(instance: &FakeInstance, request: ResourceRequest) -> Result<Value> {
    let frame = Frame::write(&request).unwrap();
    let answer = instance.operation(RESOURCE, frame).wait().result?;
    Ok(Frame::read(&answer).unwrap())
}

fn resource_request(action: ResourceAction, number: u64) -> ResourceRequest {
    ResourceRequest::new(action, "a", number)
}

#[test]
fn registered_resource_is_called_and_closed_by_its_number() {
    let host = keeps_host();
    let instance = host.instance().unwrap();
    instance.call("keep_counter", json!({ "name": "a" })).unwrap();
    let asked = host.service_requests();
    let set: ResourceSet = asked.iter().find(|it| it.operation == SET).unwrap().read().unwrap();
    assert_eq!((set.number, set.kind.as_deref()), (1, Some("counter")));
    let mut count = resource_request(ResourceAction::Call, 1);
    count.operation = "count".to_owned();
    assert_eq!(ask_resource(instance, count.clone()), Ok(json!(2)));
    assert_eq!(ask_resource(instance, resource_request(ResourceAction::Close, 1)), Ok(Value::Null));
    assert_eq!(
        ask_resource(instance, resource_request(ResourceAction::Close, 1)),
        Ok(Value::Null),
        "there is none"
    );
    assert_eq!(ask_resource(instance, count).unwrap_err().kind, ErrorKind::NotFound);
}

#[test]
fn resource_waiting_for_itself_times_out_and_is_dropped() {
    let host = keeps_host();
    let instance = host.instance().unwrap();
    let make = |manner: &str| json!({ "name": "a", "once": true, "manner": manner });
    let failed = instance.call("keep_counter", make("itself")).unwrap_err();
    assert_eq!(failed.kind, ErrorKind::Timeout, "{failed}");
    assert_eq!(instance.call("keep_counter", make("")).unwrap().content["count"], 1);
}

#[test]
fn resource_that_the_host_refuses_is_not_kept() {
    let refuse = |_: &_| Err(Error::new(ErrorKind::LimitReached, "there are too many"));
    let host = FakeHost::new(__jaato::MODULE).with_service(SET, refuse);
    let instance = host.instance().unwrap();
    let refused = instance.call("keep_counter", json!({ "name": "a" })).unwrap_err();
    assert_eq!(refused.kind, ErrorKind::LimitReached);
    let read = instance.call("read_counter", json!({ "name": "a" })).unwrap();
    assert_eq!(read.content["count"], Value::Null);
}

#[test]
fn panic_in_close_is_reported_and_removes_the_resource() {
    let host = keeps_host();
    let instance = host.instance().unwrap();
    instance.call("keep_counter", json!({ "name": "a", "manner": "panics" })).unwrap();
    let failed = ask_resource(instance, resource_request(ResourceAction::Close, 1)).unwrap_err();
    assert_eq!(failed.kind, ErrorKind::PluginPanicked);
    assert_eq!(ask_resource(instance, resource_request(ResourceAction::Close, 1)), Ok(Value::Null));
}

#[test]
fn factory_creates_the_resource_that_it_describes() {
    let host = keeps_host();
    let described = &host.description().unwrap().resources;
    assert_eq!(described[0].name, "made");
    let instance = host.instance().unwrap();
    let create = resource_request(ResourceAction::Create, 0);
    let made: ResourceSet =
        serde_json::from_value(ask_resource(instance, create).unwrap()).unwrap();
    assert_eq!((made.name.as_str(), made.number), ("a", 1));
    assert!(
        host.service_requests().iter().all(|it| it.operation != SET),
        "the host registers it itself"
    );
}

#[test]
fn plugin_finds_its_own_resource_and_creates_it_only_once() {
    let host = keeps_host();
    let instance = host.instance().unwrap();
    let once = || instance.call("keep_counter", json!({ "name": "a", "once": true })).unwrap();
    assert_eq!(once().content["count"], 1);
    assert_eq!(once().content["count"], 2);
    assert_eq!(host.service_requests().iter().filter(|it| it.operation == SET).count(), 1);
}
