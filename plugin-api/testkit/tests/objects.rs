//! Tests of the object environment on a fake host: later tools and the test see the objects that
//! tools add.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use jaato_plugin_sdk::object_environment::{
    HiddenData, IntoObjects, ItemMatcher, ObjectsAdd, ObjectsClear,
};
use jaato_plugin_sdk::prelude::*;
use jaato_plugin_testkit::{FakeHost, HiddenValue};

/// A result type of the plugin.
struct Found {
    animal: String,
}

impl IntoObjects for Found {
    fn into_objects(self) -> Result<ObjectsAdd> {
        ObjectsAdd::from_objects([json!({ "animal": self.animal })], json!({}))
    }
}

/// Finds an animal.
#[derive(ToolInput)]
#[tool(read_only, example("is there a frog?", animal = "frog"))]
struct Find {
    /// Which.
    animal: String,
}

impl Tool for Find {
    type State = ();

    async fn call(self, cx: &Cx) -> Result<Output> {
        let found = Found { animal: self.animal.clone() };
        let references = cx.objects().result(found).await?.references;
        let before = cx.objects().hidden("last").await?;
        cx.objects().set_hidden("last", Some(HiddenData::Json(json!(self.animal)))).await?;
        let before = before.map(|it| format!("{it:?}"));
        Ok(Output::json(json!({ "references": references, "before": before })))
    }
}

/// Forgets the objects.
#[derive(ToolInput)]
struct Forget {}

impl Tool for Forget {
    type State = ();

    async fn call(self, cx: &Cx) -> Result<Output> {
        let objects = cx.objects();
        let changed = objects.remove(Some("find"), None).await?.matched;
        let none = || ItemMatcher::key("no", Value::Null);
        let no_object = objects.append(Some("find"), none(), [json!("a text")]).await;
        assert_eq!(no_object.unwrap_err().kind, ErrorKind::InvalidArguments);
        let toad = [json!({ "animal": "toad" })];
        let refused = objects.append(Some("find"), none(), toad).await.unwrap_err();
        let is_empty = objects.is_empty(None).await?;
        Ok(Output::json(
            json!({ "changed": changed, "is_empty": is_empty, "why": refused.message }),
        ))
    }
}

/// Lists and removes all objects.
#[derive(ToolInput)]
struct Clear {}

impl Tool for Clear {
    type State = ();

    async fn call(self, cx: &Cx) -> Result<Output> {
        let objects = cx.objects();
        let (tools, keys) = (objects.tools().await?, objects.hidden_keys().await?);
        let mut count = 0;
        for facts in &tools {
            count += objects.get_objects(Some(&facts.tool), None).await?.unwrap_or_default().len();
        }
        let cleared = objects.clear(ObjectsClear { hidden: true }).await?.matched;
        let left = objects.hidden_keys().await?;
        Ok(Output::json(
            json!({ "tools": tools, "keys": keys, "count": count, "cleared": cleared, "left": left }),
        ))
    }
}

tool!(Find);
tool!(Forget);
tool!(Clear);
export_plugin! { state: (), tools }

jaato_plugin_testkit::conformance!(crate: tool; |suite| suite.with_all_examples());

#[test]
fn objects_are_shared_between_tools_and_visible_to_tests() {
    let host = FakeHost::new(__jaato::MODULE);
    let found = host.call("find", json!({ "animal": "frog" })).unwrap();
    assert_eq!(found.content["references"], json!(["find_1"]));
    assert_eq!(found.content["before"], Value::Null);
    let again = host.call("find", json!({ "animal": "toad" })).unwrap();
    assert_eq!(again.content["before"], "Json(String(\"frog\"))");
    let objects = host.objects().get_objects("find", None).unwrap();
    assert_eq!((objects.len(), &objects[1]["_REF_ID"]), (2, &json!("find_2")));
    assert_eq!(host.objects().hidden_values()["last"], HiddenValue::Json(json!("toad")));
    let forgotten = host.call("forget", json!({})).unwrap().content;
    assert_eq!((&forgotten["changed"], &forgotten["is_empty"]), (&json!(1), &json!(true)));
    assert_eq!(forgotten["why"], "no item of `find` has `no` = null in its metadata");
    assert!(host.objects().is_empty(None));
}

#[test]
fn tool_can_list_and_clear_all_objects() {
    let host = FakeHost::new(__jaato::MODULE);
    for animal in ["frog", "toad"] {
        host.call("find", json!({ "animal": animal })).unwrap();
    }
    let told = host.call("clear", json!({})).unwrap().content;
    let expected = json!({
        "tools": [{ "tool": "find", "items": 1, "objects": 2 }],
        "keys": ["last"],
        "count": 2,
        "cleared": 1,
        "left": [],
    });
    assert_eq!(Value::Object(told), expected);
    assert!(host.objects().is_empty(None) && host.objects().hidden_values().is_empty());
}
