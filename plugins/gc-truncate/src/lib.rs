//! `gc-truncate` frees space in a full context by removing the oldest turns.
//!
//! It needs no model and no network, because it decides by position and size alone.
#![forbid(unsafe_code)]

mod plan;

use jaato_plugin_sdk::prelude::*;
pub use jaato_plugin_sdk_gc::PlanSettings;

pub use plan::plan_truncation;

/// The gc plugin.
struct TruncatePlugin;

impl Gc for TruncatePlugin {
    type State = ();

    async fn plan(_cx: &Cx, request: GcRequest) -> Result<GcPlan> {
        let settings = PlanSettings::from_json(&request.settings)?;
        Ok(plan_truncation(&request, &settings))
    }
}

jaato_plugin_sdk::export_plugin! { state: (), gc: TruncatePlugin }
