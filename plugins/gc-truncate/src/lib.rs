//! `gc-truncate` frees space in a full context by removing the oldest turns.
//!
//! It needs no model and no network, because it decides by position and size alone.
#![forbid(unsafe_code)]

mod plan;
mod settings;

use jaato_plugin_sdk::prelude::*;

pub use plan::plan;
pub use settings::Settings;

/// The gc plugin.
struct Truncate;

impl Gc for Truncate {
    type State = ();

    async fn plan(_cx: &Cx, request: GcRequest) -> Result<GcPlan> {
        let settings = Settings::read(&request.settings)?;
        Ok(plan(&request, &settings))
    }
}

jaato_plugin_sdk::export_plugin! { state: (), gc: Truncate }
