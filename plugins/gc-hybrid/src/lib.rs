//! `gc-hybrid` frees space in a full context by age: recent turns stay, a summary replaces the
//! turns before them, and the oldest turns go without a summary.
//!
//! If the summary fails, all these turns are removed without one, as `gc-truncate` does.
#![forbid(unsafe_code)]

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk_gc::{PlanDraft, PlanSettings, SummaryAccess, summarize_turns};

/// The gc plugin.
struct HybridPlugin;

impl Gc for HybridPlugin {
    type State = SummaryAccess;

    /// Shortens long results in old turns first. If that is not enough, drops all finished turns
    /// except the last `preserve_recent_turns` and the pinned ones, and summarises the last
    /// `summarize_middle_turns` of the dropped turns.
    async fn plan(cx: &Cx<SummaryAccess>, request: GcRequest) -> Result<GcPlan> {
        let settings = PlanSettings::from_json(&request.settings)?;
        let mut draft = PlanDraft::new(&request, &settings);
        draft.shorten_results(&draft.old_turns());
        if draft.is_shortening_enough() {
            return Ok(draft.finish(None));
        }
        draft.remove_old_turns();
        let removed = draft.removed_turns();
        let middle = removed.len().saturating_sub(settings.summarize_middle_turns);
        let summary = summarize_turns(cx, &draft, &removed[middle..]).await;
        Ok(draft.finish(summary))
    }
}

jaato_plugin_sdk::export_plugin! { state: SummaryAccess, gc: HybridPlugin }
