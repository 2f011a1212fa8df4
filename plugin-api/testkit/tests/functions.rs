//! Tests that a tool written as a function equals the longer struct form, for a model, a host and a
//! test.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::serde;
use jaato_plugin_testkit::FakeHost;

/// How often the moon was looked at.
struct MoonState(AtomicU32);

impl State for MoonState {
    async fn create(_home: &Home, _saved: Option<Value>) -> Result<Self> {
        Ok(Self(AtomicU32::new(0)))
    }
}

/// Which side of the moon.
#[tool_type]
#[derive(Debug, Default, Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum Side {
    /// The one that we see.
    #[default]
    Near,
    /// The other one.
    Far,
}

fn default_days() -> u32 {
    1
}

fn moon_output(moon: &MoonState, side: Side, days: u32, note: Option<String>) -> Output {
    let times = moon.0.fetch_add(1, SeqCst) + 1;
    Output::json(json!({ "side": side, "days": days, "note": note, "times": times }))
}

/// Both forms of one tool, in separate modules because they share a name.
mod by_struct {
    use super::*;

    /// Tells the phase of the moon.
    /// Use it for tides.
    ///
    /// Returns `phase`.
    #[derive(ToolInput)]
    #[tool(
        core,
        read_only,
        open_world = false,
        category = "knowledge",
        traits("sky"),
        available_if(no_objects, reason = "once nothing lies about"),
        example("how is the moon?", side = "near", days = 2),
        example("and the far side?", side = "far", r#type = ["full"])
    )]
    pub(super) struct MoonPhase {
        /// Side to look at.
        #[serde(default)]
        #[schemars(default)]
        side: Side,
        /// Days from today.
        ///
        /// At most a month.
        #[serde(default = "default_days")]
        #[schemars(range(max = 31))]
        days: u32,
        /// What to remember.
        note: Option<String>,
        /// The kind of moon.
        r#type: Option<Vec<String>>,
    }

    impl Tool for MoonPhase {
        type State = MoonState;

        async fn call(self, cx: &Cx<MoonState>) -> Result<Output> {
            drop(self.r#type);
            Ok(moon_output(cx.state(), self.side, self.days, self.note))
        }
    }
}

mod by_function {
    use super::*;

    /// Tells the phase of the moon.
    /// Use it for tides.
    ///
    /// Returns `phase`.
    #[tool_fn(
        core,
        read_only,
        open_world = false,
        category = "knowledge",
        traits("sky"),
        available_if(no_objects, reason = "once nothing lies about"),
        example("how is the moon?", side = "near", days = 2),
        example("and the far side?", side = "far", r#type = ["full"])
    )]
    async fn moon_phase(
        cx: &Cx<MoonState>,
        /// Side to look at.
        #[serde(default)]
        #[schemars(default)]
        side: Side,
        /// Days from today.
        ///
        /// At most a month.
        #[serde(default = "default_days")]
        #[schemars(range(max = 31))]
        days: u32,
        /// What to remember.
        mut note: Option<String>,
        /// The kind of moon.
        #[allow(unused_variables)]
        r#type: Option<Vec<String>>,
    ) -> Result<Output> {
        let note = note.take();
        Ok(moon_output(cx.state(), side, days, note))
    }
}

/// Waits for the tide, where it may block.
#[tool_fn(name = "wait_for_tide", read_only, example("wait"))]
fn tide(state: &MoonState, host: &Reporter) -> Result<Output> {
    match host.is_cancelled() {
        true => Err(Error::cancelled()),
        false => Ok(Output::json(json!({ "times": state.0.load(SeqCst) }))),
    }
}

fn places_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "place": { "description": "A name, or degrees.", "type": ["string", "number"] },
            "unit": { "description": "Of lengths.", "type": ["string", "null"] },
        },
        "required": ["place"],
        "additionalProperties": false,
    })
}

/// A name or degrees: a type without a derived schema.
#[derive(serde::Deserialize)]
#[serde(crate = "jaato_plugin_sdk::serde", untagged)]
enum Place {
    Named(String),
    At(f64),
}

/// Tells where a place is.
#[tool_fn(
    read_only,
    schema = places_schema(),
    example("where is Copernicus?", place = "Copernicus")
)]
async fn place_on_moon(_: &Cx<MoonState>, place: Place, unit: Option<String>) -> Result<Output> {
    let place = match place {
        Place::Named(name) => json!({ "name": name }),
        Place::At(degrees) => json!({ "degrees": degrees }),
    };
    Ok(Output::json(json!({ "place": place, "unit": unit })))
}

/// Says hello.
#[tool_fn]
pub(crate) async fn greet(_: &Cx<MoonState>) -> Result<Output> {
    Ok(Output::text("hello"))
}

/// Is not there.
#[tool_fn]
#[cfg(any())]
async fn left_out(_: &Cx<MoonState>) -> Result<Output> {
    Ok(Output::text("never"))
}

export_plugin! { state: MoonState, tools }

fn describe_tools() -> Vec<ToolSpec> {
    FakeHost::new(__jaato::MODULE).describe().unwrap().tools
}

#[test]
fn function_and_struct_tools_give_the_same_spec() {
    let described = describe_tools();
    let names: Vec<&str> = described.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["greet", "moon_phase", "place_on_moon", "wait_for_tide"]);
    let (function, by_hand) = (json!(described[1]), json!(by_struct::MoonPhase::spec()));
    assert_eq!(function, by_hand);
    assert_eq!(function.to_string(), by_hand.to_string(), "the order of keys");
    assert!(function["parameters"]["properties"]["type"].is_object(), "{function}");
    let arguments = &function["examples"][1]["arguments"];
    assert_eq!(*arguments, json!({ "side": "far", "type": ["full"] }));
}

#[test]
fn function_without_attributes_gets_the_same_defaults_as_a_struct() {
    /// Says hello.
    #[derive(ToolInput)]
    struct Greet {}
    assert_eq!(json!(describe_tools()[0]), json!(Greet::spec()));
}

#[test]
fn literal_schema_stays_unchanged_and_argument_types_are_enforced() {
    /// Tells where a place is.
    #[derive(ToolInput)]
    #[tool(
        name = "place_on_moon",
        read_only,
        schema = places_schema(),
        example("where is Copernicus?", place = "Copernicus")
    )]
    struct PlaceOnMoon {
        place: Place,
        #[serde(default)]
        unit: Option<String>,
    }
    let spec = &describe_tools()[2];
    assert_eq!(spec.parameters.to_string(), places_schema().to_string());
    assert_eq!(json!(spec), json!(PlaceOnMoon::spec()));
    let parsed = PlaceOnMoon::parse(br#"{"place":45.5}"#).unwrap();
    assert!(matches!(parsed, PlaceOnMoon { place: Place::At(45.5), unit: None }));

    let host = FakeHost::new(__jaato::MODULE);
    let call = |arguments: Value| host.call("place_on_moon", arguments);
    let answer = call(json!({ "place": "Tycho", "unit": "km" })).unwrap().content;
    assert_eq!(json!(answer), json!({ "place": { "name": "Tycho" }, "unit": "km" }));
    for wrong in [json!({}), json!({ "place": [] }), json!({ "place": 1, "moon": 1 })] {
        assert_eq!(call(wrong).unwrap_err().kind, ErrorKind::InvalidArguments);
    }
}

#[test]
fn functions_receive_their_arguments_and_the_plugin_state() {
    let host = FakeHost::new(__jaato::MODULE);
    let call = |name: &str, arguments: Value| host.call(name, arguments).unwrap().content;
    assert_eq!(
        json!(call("moon_phase", json!({ "side": "far", "note": "tide" }))),
        json!({ "side": "far", "days": 1, "note": "tide", "times": 1 }),
    );
    assert_eq!(
        json!(call("moon_phase", json!({ "days": 3 }))),
        json!({ "side": "near", "days": 3, "note": null, "times": 2 }),
    );
    assert_eq!(json!(call("wait_for_tide", json!({}))), json!({ "times": 2 }));
    assert_eq!(json!(call("greet", json!({}))), json!({ "result": "hello" }));
}

jaato_plugin_testkit::conformance!(crate: tool);
