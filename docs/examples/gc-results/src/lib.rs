//! `gc-results`: makes room by dropping old, large tool results first, and whole turns only if that
//! is not enough.
//!
//! The content of a file from ten turns ago is seldom needed again, but the questions and answers
//! of that time often are.
#![forbid(unsafe_code)]

mod plan;

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::serde::Deserialize;
use jaato_plugin_sdk::{schemars, serde_json};

pub use plan::{PlanBounds, plan_drops};

/// `[plugins.gc-results]` of the user's configuration: settings of this gc only.
#[tool_type]
#[serde(default)]
struct Config {
    /// The size, in bytes, from which a tool result counts as large.
    large_bytes: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self { large_bytes: 2048 }
    }
}

/// The `[gc]` settings for every gc. Other keys are for the session.
#[derive(Deserialize)]
#[serde(crate = "jaato_plugin_sdk::serde", default)]
struct Settings {
    preserve_recent_turns: usize,
    pinned_turn_indices: Vec<usize>,
    target_percent: u64,
    notify_on_gc: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            preserve_recent_turns: 5,
            pinned_turn_indices: Vec::new(),
            target_percent: 60,
            notify_on_gc: true,
        }
    }
}

/// The gc of one session, with its configuration.
pub struct ResultsState {
    large_bytes: usize,
}

impl State for ResultsState {
    async fn create(home: &Home, _saved: Option<Value>) -> Result<Self> {
        let Config { large_bytes } = home.config().await?;
        Ok(Self { large_bytes })
    }

    fn describe(description: &mut Description) {
        description.config_schema = serde_json::to_value(schemars::schema_for!(Config)).ok();
    }
}

struct ResultsFirst;

impl Gc for ResultsFirst {
    type State = ResultsState;

    async fn plan(cx: &Cx<ResultsState>, request: GcRequest) -> Result<GcPlan> {
        let settings = parse_settings(&request.settings)?;
        let bounds = PlanBounds {
            large_bytes: cx.state().large_bytes,
            recent_turns: settings.preserve_recent_turns,
            pinned: settings.pinned_turn_indices,
            target_percent: settings.target_percent,
        };
        let mut plan = plan_drops(&request, &bounds);
        plan.note = plan.note.filter(|_| settings.notify_on_gc);
        Ok(plan)
    }
}

export_plugin! { state: ResultsState, gc: ResultsFirst }

fn parse_settings(settings: &Value) -> Result<Settings> {
    if settings.is_null() {
        return Ok(Settings::default());
    }
    serde_json::from_value(settings.clone()).map_err(|error| {
        Error::new(ErrorKind::Configuration, format!("the settings of `[gc]`: {error}"))
    })
}
