//! Tests of a plugin with conditions, from its source: it conforms, and answers conditions.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

#[path = "../fixtures/awaits/src/lib.rs"]
mod awaits;

// The macros expect it at the root of a plugin's crate.
use awaits::__jaato;
use jaato_plugin_testkit::FakeHost;
use jaato_types::{Condition, ConditionAnswer, ConditionDecision, ErrorKind};
use serde_json::json;

jaato_plugin_testkit::conformance!(crate: tool);

#[test]
fn tool_answers_its_available_and_run_conditions() {
    let host = FakeHost::new(__jaato::MODULE);
    let instance = host.instance().unwrap();
    let offered = instance.condition("warn_of_weight", ConditionDecision::Available).unwrap();
    let no = ConditionAnswer::no().because("it comes by itself when the boat is full");
    assert_eq!(offered, no);
    let runs = instance.condition("warn_of_weight", ConditionDecision::Run).unwrap();
    assert_eq!(runs, ConditionAnswer::yes().with_arguments(json!({ "over": 2 })));
    let unknown = instance.condition("warn_of_weight", ConditionDecision::Unknown).unwrap();
    assert_eq!(unknown, ConditionAnswer::no());
    let done = instance.call("warn_of_weight", json!({ "over": 2 })).unwrap();
    assert_eq!(done.content["was_asked"], true);
}

#[test]
fn condition_without_an_implementation_is_an_error() {
    let host = FakeHost::new(__jaato::MODULE);
    let instance = host.instance().unwrap();
    let error = instance.condition("fry_fish", ConditionDecision::Available).unwrap_err();
    assert_eq!(error.kind, ErrorKind::UnknownOperation);
    assert_eq!(
        error.message,
        "the tool `fry_fish` declares `asked` but does not implement `available_if`"
    );
    let error = instance.condition("no_such", ConditionDecision::Run).unwrap_err();
    assert_eq!(error.kind, ErrorKind::UnknownTool);
}

#[test]
fn condition_attributes_appear_in_the_tool_spec() {
    let host = FakeHost::new(__jaato::MODULE);
    let tools = host.describe().unwrap().tools;
    let [catch, fry, warn, weigh] = &tools[..] else { panic!("{tools:?}") };
    assert_eq!((&catch.available_if, &catch.run_if), (&None, &None));
    let offer = fry.available_if.as_ref().unwrap();
    assert_eq!(offer.condition, Condition::objects_of("catch_fish"));
    assert_eq!(offer.reason, "once `catch_fish` has caught some");
    assert_eq!(warn.available_if.as_ref().unwrap().condition, Condition::Asked);
    assert_eq!((&warn.run_if, &fry.run_if), (&Some(Condition::Asked), &None));
    assert_eq!(weigh.run_if, Some(Condition::objects_of("catch_fish")));
    // The JSON of tools without conditions is unchanged.
    let json = serde_json::to_value(catch).unwrap();
    assert!(json.get("available_if").is_none() && json.get("run_if").is_none(), "{json}");
}
