//! The specs that the derive generates from an argument struct, and definitions that are refused.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, dead_code)]

use expect_test::expect;
use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::types::{Availability, Description, Frame};

/// Which side of the moon.
#[tool_type]
#[derive(Debug, Default, Clone, Copy, PartialEq)]
#[serde(rename_all = "snake_case")]
enum Side {
    /// The one that we see.
    #[default]
    Near,
    /// The other one.
    Far,
}

/// Tells the phase of the moon.
/// Use it for tides.
///
/// Returns `phase`.
#[derive(ToolInput)]
#[tool(
    read_only,
    open_world = false,
    core,
    auto_approval,
    category = "knowledge",
    traits("file_writer"),
    example("how is the moon?"),
    example("the far side in 3 days", side = "far", days = 3)
)]
struct MoonPhase {
    /// Side to look at.
    #[serde(default)]
    #[schemars(default)]
    side: Side,
    /// Days from today.
    days: Option<u32>,
}

impl Tool for MoonPhase {
    type State = Moon;

    async fn call(self, cx: &Cx<Moon>) -> Result<Output> {
        Ok(Output::json(json!({ "side": format!("{:?}", self.side), "seen": cx.state().0 })))
    }
}

tool!(MoonPhase);

/// Waits for the tide.
#[derive(ToolInput)]
#[tool(name = "wait_for_tide")]
struct Tide;

impl SyncTool for Tide {
    type State = Moon;

    fn call(self, _state: &Moon, _host: &Reporter) -> Result<Output> {
        Ok(Output::text("high"))
    }
}

sync_tool!(Tide);

struct Moon(u32);

impl State for Moon {
    async fn create(_home: &Home, _saved: Option<Value>) -> Result<Self> {
        Ok(Self(0))
    }

    fn describe(description: &mut Description) {
        description.instructions = Some("Look up.".to_owned());
    }
}

export_plugin! { state: Moon, tools }

#[test]
fn a_struct_becomes_a_tool_spec() {
    let spec = MoonPhase::spec();
    assert_eq!(spec.name.as_str(), "moon_phase");
    assert_eq!(
        spec.description,
        "Tells the phase of the moon. Use it for tides.\n\nReturns `phase`."
    );
    assert_eq!(spec.availability, Availability::Core);
    expect![[r#"
        {
          "type": "object",
          "properties": {
            "side": {
              "description": "Side to look at. `near`: The one that we see; `far`: The other one.",
              "default": "near",
              "type": "string",
              "enum": [
                "near",
                "far"
              ]
            },
            "days": {
              "type": [
                "integer",
                "null"
              ],
              "minimum": 0,
              "description": "Days from today."
            }
          },
          "additionalProperties": false
        }"#]]
    .assert_eq(&serde_json::to_string_pretty(&spec.parameters).unwrap());
    expect![[r#"{"read_only":true,"destructive":false,"idempotent":false,"open_world":false,"parallel_safe":true}"#]]
        .assert_eq(&serde_json::to_string(&spec.annotations).unwrap());
    expect![[r#"[{"phrase":"how is the moon?","arguments":{}},{"phrase":"the far side in 3 days","arguments":{"side":"far","days":3}}]"#]]
        .assert_eq(&serde_json::to_string(&spec.examples).unwrap());
}

#[test]
fn annotations_default_to_the_careful_values() {
    let spec = Tide::spec();
    assert!(spec.annotations.destructive && spec.annotations.open_world);
    assert!(!spec.annotations.read_only && !spec.annotations.parallel_safe && !spec.auto_approval);
    assert_eq!(spec.availability, Availability::Discoverable);
}

#[test]
fn arguments_are_parsed_by_name_and_unknown_fields_are_refused() {
    let moon = MoonPhase::parse(br#"{"side": "far"}"#).unwrap();
    assert_eq!((moon.side, moon.days), (Side::Far, None));
    assert_eq!(MoonPhase::parse(b"").unwrap().side, Side::Near);
    let error = MoonPhase::parse(br#"{"sid": "far"}"#).err().unwrap();
    assert!(error.message.contains("unknown field `sid`"), "{error}");
}

#[test]
fn description_lists_the_tools_and_the_state_instructions() {
    let answer = (__jaato::MODULE.describe)();
    let frame = answer.into_result().unwrap();
    let description: Description = Frame::read(&frame).unwrap();
    let names: Vec<_> = description.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["moon_phase", "wait_for_tide"]);
    assert_eq!(description.instructions.as_deref(), Some("Look up."));
}

use jaato_plugin_sdk::serde_json;
