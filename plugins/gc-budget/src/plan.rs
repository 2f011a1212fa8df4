//! Decides what goes, by priority. Pure.
//!
//! | priority | what | goes |
//! |---|---|---|
//! | ephemeral | results, repeated reads and images in old turns, then their calls | first |
//! | partial | old turns, oldest first | next |
//! | preserved | recent turns | from `pressure_percent` on, or if the request would not fit |
//! | locked | the last turn, pinned turns, the user's statements | never |

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::types::GcReason;
use jaato_plugin_sdk_gc::{PlanDraft, PlanSettings};

/// Makes a plan that reaches `target_percent` with the least important content, and stops there.
///
/// If the user asks for a gc, or the number of turns demands one, and the context is not that full,
/// all old turns go.
pub fn draft_plan<'a>(request: &'a GcRequest, settings: &'a PlanSettings) -> PlanDraft<'a> {
    let mut draft = PlanDraft::new(request, settings);
    let is_under_pressure =
        settings.pressure_percent > 0 && draft.is_above(settings.pressure_percent);
    let old = draft.old_turns();
    draft.shorten_results(&old);
    let by_count = matches!(request.reason, GcReason::Manual | GcReason::TurnLimit);
    if by_count && !draft.is_above_target() {
        draft.remove_old_turns();
        return draft;
    }
    for turn in &old {
        draft.drop_calls(*turn);
    }
    for turn in old {
        if draft.is_above_target() {
            draft.drop_turn(turn);
        }
    }
    if is_under_pressure {
        draft.shrink_recent();
    } else {
        draft.make_recent_fit();
    }
    draft
}
