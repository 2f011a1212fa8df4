//! `gc-budget` fills a budget of tokens by priority: it removes what matters least, until the
//! context is as full as it should be, and no more.
//!
//! It needs no model, unless `[gc] summary_model` names one: then a summary replaces the turns that
//! it removes.
#![forbid(unsafe_code)]

mod plan;

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk_gc::{PlanSettings, SummaryAccess, summarize_turns};

pub use plan::draft_plan;

/// The gc plugin.
struct BudgetPlugin;

impl Gc for BudgetPlugin {
    type State = SummaryAccess;

    async fn plan(cx: &Cx<SummaryAccess>, request: GcRequest) -> Result<GcPlan> {
        let settings = PlanSettings::from_json(&request.settings)?;
        let draft = draft_plan(&request, &settings);
        let removed = draft.removed_turns();
        let summary = match settings.summary_model {
            Some(_) => summarize_turns(cx, &draft, &removed).await,
            None => None,
        };
        Ok(draft.finish(summary))
    }
}

jaato_plugin_sdk::export_plugin! { state: SummaryAccess, gc: BudgetPlugin }
