//! Checks a gc's plan like the session does before it applies it.

use std::collections::BTreeSet;

use jaato_types::{GcPlan, Message, Role};

use super::{ConformanceVerdict, ensure};

/// Checks that a plan can be applied to a history: the indices ascend and are in range, calls and
/// results stay paired, the roles stay in order starting with a user message, and the last turn is
/// complete.
///
/// # Errors
/// A description of the fault.
pub fn check_plan(messages: &[Message], plan: &GcPlan) -> ConformanceVerdict {
    for pair in plan.drop.windows(2) {
        ensure(pair[0] < pair[1], || format!("the indices do not ascend: {:?}", plan.drop))?;
    }
    let count = messages.len();
    let out = plan.drop.iter().find(|index| **index >= count);
    ensure(out.is_none(), || format!("the plan drops message {out:?} of {count}"))?;
    let dropped: BTreeSet<usize> = plan.drop.iter().copied().collect();
    for (at, message) in messages.iter().enumerate().filter(|(at, _)| !dropped.contains(at)) {
        for call in message.tool_calls() {
            let kept = kept_message(messages, &dropped, at + 1);
            let has_result = kept.is_some_and(|m| m.tool_results().any(|r| r.call_id == call.id));
            ensure(has_result, || format!("the call `{}` stays and its result goes", call.id))?;
        }
        for result in message.tool_results() {
            let kept = at.checked_sub(1).and_then(|at| kept_message(messages, &dropped, at));
            let has_call = kept.is_some_and(|m| m.tool_calls().any(|c| c.id == result.call_id));
            ensure(has_call, || {
                format!("the result of `{}` stays and its call goes", result.call_id)
            })?;
        }
    }
    let last = messages.iter().rposition(Message::is_prompt).unwrap_or(0);
    let lost = dropped.range(last..).next();
    ensure(lost.is_none(), || format!("message {lost:?} of the last turn is dropped"))?;
    check_roles(
        messages.iter().enumerate().filter(|(at, _)| !dropped.contains(at)).map(|(_, it)| it),
    )
}

/// Checks that the first message is the user's, and that each answer without calls is followed by a
/// user message.
fn check_roles<'a>(kept: impl Iterator<Item = &'a Message>) -> ConformanceVerdict {
    let mut before: Option<&Message> = None;
    for message in kept {
        let expected = match before {
            None => Role::User,
            Some(before) if before.role != Role::Model => Role::Model,
            Some(before) if before.tool_calls().next().is_some() => Role::Tool,
            Some(_) => Role::User,
        };
        ensure(message.role == expected, || {
            format!(
                "a message with the role {:?} stays where one of role {expected:?} must be",
                message.role
            )
        })?;
        before = Some(message);
    }
    Ok(())
}

fn kept_message<'a>(
    messages: &'a [Message],
    dropped: &BTreeSet<usize>,
    at: usize,
) -> Option<&'a Message> {
    messages.get(at).filter(|_| !dropped.contains(&at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::gc::sample_history;

    #[track_caller]
    fn check(drop: &[usize], expected: Result<(), &str>) {
        let plan = GcPlan { drop: drop.to_vec(), ..GcPlan::default() };
        let found = check_plan(&sample_history(2), &plan);
        match expected {
            Ok(()) => assert_eq!(found, Ok(())),
            Err(part) => assert!(found.clone().is_err_and(|text| text.contains(part)), "{found:?}"),
        }
    }

    /// Each turn is a prompt, a call, its result and an answer.
    #[test]
    fn plan_may_drop_a_whole_turn_or_only_its_call() {
        check(&[], Ok(()));
        check(&[0, 1, 2, 3], Ok(()));
        check(&[1, 2], Ok(()));
    }

    #[test]
    fn plan_that_breaks_the_role_order_is_refused() {
        check(&[0, 3], Err("a message with the role Model stays where one of role User must be"));
        check(&[3], Err("a message with the role User stays where one of role Model must be"));
    }

    #[test]
    fn plan_that_splits_a_call_from_its_result_is_refused() {
        check(&[1], Err("the result of `call-0` stays"));
        check(&[2], Err("the call `call-0` stays"));
    }

    #[test]
    fn plan_indices_must_ascend_and_be_in_range() {
        check(&[3, 0], Err("do not ascend"));
        check(&[0, 0], Err("do not ascend"));
        check(&[8], Err("of 8"));
    }

    #[test]
    fn plan_that_drops_from_the_last_turn_is_refused() {
        check(&[4], Err("message Some(4) of the last turn"));
        check(&[5, 6], Err("message Some(5) of the last turn"));
    }
}
