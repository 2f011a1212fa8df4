//! `gc-summarize` frees space in a full context by replacing the old turns with a summary.
//!
//! If the summary fails, the old turns are removed without one, as `gc-truncate` does.
#![forbid(unsafe_code)]

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk_gc::{PlanDraft, PlanSettings, SummaryAccess, summarize_turns};

/// The gc plugin.
struct SummarizePlugin;

impl Gc for SummarizePlugin {
    type State = SummaryAccess;

    /// Long results in old turns are shortened first. If that is not enough, a summary replaces
    /// all finished turns except the last `preserve_recent_turns` and the pinned ones.
    async fn plan(cx: &Cx<SummaryAccess>, request: GcRequest) -> Result<GcPlan> {
        let settings = PlanSettings::from_json(&request.settings)?;
        let mut draft = PlanDraft::new(&request, &settings);
        draft.shorten_results(&draft.old_turns());
        if draft.is_shortening_enough() {
            return Ok(draft.finish(None));
        }
        draft.remove_old_turns();
        let removed = draft.removed_turns();
        let summary = summarize_turns(cx, &draft, &removed).await;
        Ok(draft.finish(summary))
    }
}

jaato_plugin_sdk::export_plugin! { state: SummaryAccess, gc: SummarizePlugin }
