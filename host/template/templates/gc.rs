//! `template-name`: drops the oldest turns when the context gets full.
#![forbid(unsafe_code)]
use jaato_plugin_sdk::prelude::*;

/// Turns that always stay: the open one and what led to it.
const KEEP_TURNS: usize = 4;

struct TemplateName;

impl Gc for TemplateName {
    type State = ();

    async fn plan(_cx: &Cx, request: GcRequest) -> Result<GcPlan> {
        Ok(GcPlan {
            v: 1,
            drop: old_messages(&request.messages),
            ..GcPlan::default()
        })
    }
}

export_plugin! { state: (), gc: TemplateName }

/// Whole turns only: a tool call must not lose its result.
fn old_messages(messages: &[Message]) -> Vec<usize> {
    let is_start = |at: &usize| messages[*at].is_prompt();
    let starts: Vec<usize> = (0..messages.len()).filter(is_start).collect();
    let kept = starts.iter().rev().take(KEEP_TURNS).last();
    (0..kept.copied().unwrap_or(0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_turns_older_than_the_kept_turns_are_removed() {
        let turn = || [Message::user("a"), Message::model(Vec::new())];
        let turns = |count: usize| (0..count).flat_map(|_| turn()).collect::<Vec<_>>();
        assert_eq!(old_messages(&turns(KEEP_TURNS)), Vec::<usize>::new());
        assert_eq!(old_messages(&turns(KEEP_TURNS + 1)), [0, 1]);
        assert_eq!(old_messages(&[]), Vec::<usize>::new());
    }
}
