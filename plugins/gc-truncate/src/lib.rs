//! `gc-truncate`: makes room in a full context by leaving out the oldest turns.
//!
//! Needs no model and no network: what goes is decided from positions and sizes alone.
#![forbid(unsafe_code)]

mod plan;
mod settings;

use jaato_plugin_sdk::prelude::*;

pub use plan::plan;
pub use settings::Settings;

/// The gc.
struct Truncate;

impl Gc for Truncate {
    type State = ();

    async fn plan(_cx: &Cx, request: GcRequest) -> Result<GcPlan> {
        let settings = Settings::read(&request.settings)?;
        Ok(plan(&request, &settings))
    }
}

jaato_plugin_sdk::export_plugin! { state: (), gc: Truncate }
