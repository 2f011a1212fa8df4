//! Decides which turns to remove: whole turns, oldest first. Pure.

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk_gc::{PlanDraft, PlanSettings};

/// Plans what to shorten and to remove, without a model.
///
/// Long results in old turns are shortened first. If that is not enough, the plan removes all
/// finished turns except the last `preserve_recent_turns` and the pinned ones. What the user said
/// in them, and a line for each finished call, stays. See [`PlanDraft::remove_old_turns`].
pub fn plan_truncation(request: &GcRequest, settings: &PlanSettings) -> GcPlan {
    let mut draft = PlanDraft::new(request, settings);
    draft.shorten_results(&draft.old_turns());
    if !draft.is_shortening_enough() {
        draft.remove_old_turns();
    }
    draft.finish(None)
}
