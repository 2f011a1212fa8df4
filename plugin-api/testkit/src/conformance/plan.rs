//! Checks a gc's plan like the session does before it applies it.

use std::collections::BTreeSet;

use jaato_types::{GcChange, GcPlan, Message, Part, Role};
use serde_json::{Map, Value};

use super::{ConformanceVerdict, ensure};

/// Checks that a plan can be applied to a history: the indices ascend and are in range, calls and
/// results stay paired, the roles stay in order starting with a user message, edits change parts
/// that stay, and the last turn is complete.
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
    for edit in &plan.edits {
        let (message, part) = (edit.message, edit.part);
        let is_there = messages.get(message).is_some_and(|it| part < it.parts.len());
        ensure(is_there && !dropped.contains(&message), || {
            format!("the plan changes part {part} of message {message}, which does not stay")
        })?;
        ensure(message < last || edit.change == GcChange::Remove, || {
            format!("the plan changes message {message} of the last turn")
        })?;
    }
    check_roles(
        messages.iter().enumerate().filter(|(at, _)| !dropped.contains(at)).map(|(_, it)| it),
    )
}

/// Applies a plan that [`check_plan`] accepts, about as a session does, and returns the messages
/// for the model. A shortened part becomes the beginning of its JSON.
pub fn apply_plan(messages: &[Message], plan: &GcPlan) -> Vec<Message> {
    let mut kept: Vec<Option<Message>> = messages.iter().cloned().map(Some).collect();
    for edit in plan.edits.iter().filter(|edit| edit.change != GcChange::Remove) {
        let message = kept.get_mut(edit.message).and_then(Option::as_mut);
        if let Some(part) = message.and_then(|message| message.parts.get_mut(edit.part)) {
            apply_change(part, &edit.change);
        }
    }
    let mut removals: Vec<(usize, usize)> = plan
        .edits
        .iter()
        .filter(|edit| edit.change == GcChange::Remove)
        .map(|edit| (edit.message, edit.part))
        .collect();
    removals.sort_unstable();
    for (message, part) in removals.into_iter().rev() {
        if let Some(message) = kept.get_mut(message).and_then(Option::as_mut) {
            message.parts.remove(part);
        }
    }
    for at in &plan.drop {
        kept[*at] = None;
    }
    if let Some(summary) = &plan.summary {
        let from = plan.drop.first().copied().unwrap_or(0);
        let prompt = kept[from..].iter_mut().flatten().find(|message| message.is_prompt());
        if let Some(prompt) = prompt {
            prompt.parts.splice(0..0, summary.parts.iter().cloned());
        }
    }
    kept.into_iter().flatten().collect()
}

fn apply_change(part: &mut Part, change: &GcChange) {
    let short = |text: String, bytes_max: usize| -> Map<String, Value> {
        let text: String = text.chars().take(bytes_max / 2).collect();
        Map::from_iter([("json".to_owned(), Value::String(text))])
    };
    match (change, part) {
        (GcChange::Shorten { bytes_max }, Part::ToolResult(result)) => {
            let json = Value::Object(std::mem::take(&mut result.content)).to_string();
            result.content = short(json, usize::try_from(*bytes_max).unwrap_or(usize::MAX));
        }
        (GcChange::Repeated { by }, Part::ToolResult(result)) => {
            result.content = short(format!("see {by}"), 100);
        }
        (GcChange::Describe { attachment: Some(at), text }, Part::ToolResult(result)) => {
            result.attachments.remove(*at);
            result.content.insert("attachment".to_owned(), Value::String(text.clone()));
        }
        (GcChange::Describe { text, .. }, part) => *part = Part::text(text.as_str()),
        _ => {}
    }
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
    fn check_dropped_messages(drop: &[usize], expected: Result<(), &str>) {
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
        check_dropped_messages(&[], Ok(()));
        check_dropped_messages(&[0, 1, 2, 3], Ok(()));
        check_dropped_messages(&[1, 2], Ok(()));
    }

    #[test]
    fn plan_that_breaks_the_role_order_is_refused() {
        check_dropped_messages(
            &[0, 3],
            Err("a message with the role Model stays where one of role User must be"),
        );
        check_dropped_messages(
            &[3],
            Err("a message with the role User stays where one of role Model must be"),
        );
    }

    #[test]
    fn plan_that_splits_a_call_from_its_result_is_refused() {
        check_dropped_messages(&[1], Err("the result of `call-0` stays"));
        check_dropped_messages(&[2], Err("the call `call-0` stays"));
    }

    #[test]
    fn plan_indices_must_ascend_and_be_in_range() {
        check_dropped_messages(&[3, 0], Err("do not ascend"));
        check_dropped_messages(&[0, 0], Err("do not ascend"));
        check_dropped_messages(&[8], Err("of 8"));
    }

    #[test]
    fn plan_that_edits_a_missing_part_or_the_last_turn_is_refused() {
        let check = |message: usize, part: usize, expected: &str| {
            let change = GcChange::Shorten { bytes_max: 600 };
            let edits = vec![jaato_types::GcEdit::new(message, part, change)];
            let found = check_plan(&sample_history(2), &GcPlan { edits, ..GcPlan::default() });
            assert_eq!(found.err().unwrap_or_default(), expected);
        };
        check(2, 0, "");
        check(2, 1, "the plan changes part 1 of message 2, which does not stay");
        check(9, 0, "the plan changes part 0 of message 9, which does not stay");
        check(6, 0, "the plan changes message 6 of the last turn");
    }

    #[test]
    fn plan_that_drops_from_the_last_turn_is_refused() {
        check_dropped_messages(&[4], Err("message Some(4) of the last turn"));
        check_dropped_messages(&[5, 6], Err("message Some(5) of the last turn"));
    }
}
