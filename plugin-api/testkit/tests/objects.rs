//! The object environment on a fake host: what tools put there is there for the next one, and for
//! the test.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use jaato_plugin_sdk::object_environment::{Hidden, Matching, ObjectsAdd};
use jaato_plugin_sdk::prelude::*;
use jaato_plugin_testkit::{FakeHost, HiddenValue};

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
        let found = ObjectsAdd::of([json!({ "animal": self.animal })], json!({}))?;
        let references = cx.objects().result(found).await?.references;
        let before = cx.objects().hidden("last").await?;
        cx.objects().set_hidden("last", Some(Hidden::Json(json!(self.animal)))).await?;
        let before = before.map(|it| format!("{it:?}"));
        Ok(Output::json(json!({ "references": references, "before": before })))
    }
}

/// Forgets what was found.
#[derive(ToolInput)]
struct Forget {}

impl Tool for Forget {
    type State = ();

    async fn call(self, cx: &Cx) -> Result<Output> {
        let objects = cx.objects();
        let changed = objects.remove(Some("find"), None).await?.matched;
        let none = || Matching::key("no", Value::Null);
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

tool!(Find);
tool!(Forget);
export_plugin! { state: (), tools }

jaato_plugin_testkit::conformance!(crate: tool; |suite| suite.with_all_examples());

#[test]
fn tools_share_the_objects_and_a_test_sees_them() {
    let host = FakeHost::new(__jaato::MODULE);
    let found = host.call("find", json!({ "animal": "frog" })).unwrap();
    assert_eq!(found.content["references"], json!(["find_1"]));
    assert_eq!(found.content["before"], Value::Null);
    let again = host.call("find", json!({ "animal": "toad" })).unwrap();
    assert_eq!(again.content["before"], "Json(String(\"frog\"))");
    let objects = host.objects().get_objects("find", None).unwrap();
    assert_eq!((objects.len(), &objects[1]["_REF_ID"]), (2, &json!("find_2")));
    assert_eq!(host.objects().hidden()["last"], HiddenValue::Json(json!("toad")));
    let forgotten = host.call("forget", json!({})).unwrap().content;
    assert_eq!((&forgotten["changed"], &forgotten["is_empty"]), (&json!(1), &json!(true)));
    assert_eq!(forgotten["why"], "no item of `find` has `no` = null in its metadata");
    assert!(host.objects().is_empty(None));
}
