//! Checks a gc's plan against the history that it was made for. Pure.
//!
//! The remaining checks (calls keep their results, roles stay in order) are the history's own, when
//! it applies the plan.

use std::collections::{BTreeSet, HashSet};
use std::fmt;
use std::ops::Range;

use jaato_types::{DataPart, GcChange, GcEdit, GcPlan, Message, Part, Role};

use super::edits::described_attachment;
use super::json_bytes;
use super::pairs::NOTE_BEGIN;
use crate::HistoryError;

/// Why a plan is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PlanError {
    /// The indices do not ascend.
    Order,
    /// An index is out of range.
    Range { index: usize, count: usize },
    /// It drops a message of the last turn.
    LastTurn(usize),
    /// It drops a message of a pinned turn.
    Pinned(usize),
    /// It changes a message that is out of range.
    EditRange { index: usize, count: usize },
    /// It changes a message that it must not change. The text says why.
    Edit { index: usize, why: &'static str },
    /// It changes a part in a way that does not fit the part. The text says why.
    EditPart { index: usize, part: usize, why: &'static str },
    /// Its summary is not a user's text.
    Summary,
    /// It does not free space.
    Grows { freed: u64, after: u64 },
    /// The history refuses the messages that would remain.
    History(HistoryError),
}

/// A plan that can be applied, if the history accepts it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CheckedPlan {
    /// The number of whole turns that are removed.
    pub(super) turns_removed: u64,
}

/// Splits messages into turns, by index. Messages before the first prompt belong to the first turn.
pub(super) fn split_into_turns<'a>(
    messages: impl IntoIterator<Item = &'a Message>,
) -> Vec<Range<usize>> {
    let (mut starts, mut count) = (Vec::new(), 0);
    for (at, message) in messages.into_iter().enumerate() {
        if at == 0 || message.is_prompt() {
            starts.push(at);
        }
        count += 1;
    }
    let ends = starts.iter().skip(1).copied().chain([count]);
    starts.iter().zip(ends).map(|(&start, end)| start..end).collect()
}

/// Checks a plan, except for its size. `pinned` are indices of turns.
pub(super) fn check_plan(
    messages: &[Message],
    plan: &GcPlan,
    pinned: &[usize],
) -> Result<CheckedPlan, PlanError> {
    if plan.drop.windows(2).any(|pair| pair[0] >= pair[1]) {
        return Err(PlanError::Order);
    }
    let count = messages.len();
    if let Some(&index) = plan.drop.iter().find(|index| **index >= count) {
        return Err(PlanError::Range { index, count });
    }
    let turns = split_into_turns(messages);
    let dropped: BTreeSet<usize> = plan.drop.iter().copied().collect();
    let first_in = |turn: &Range<usize>| dropped.range(turn.clone()).next().copied();
    if let Some(index) = turns.last().and_then(first_in) {
        return Err(PlanError::LastTurn(index));
    }
    if let Some(index) = pinned.iter().filter_map(|at| turns.get(*at)).find_map(first_in) {
        return Err(PlanError::Pinned(index));
    }
    let is_text = |part: &Part| matches!(part, Part::Text { text, .. } if !text.is_empty());
    if let Some(summary) = &plan.summary
        && !(summary.role == Role::User
            && !summary.parts.is_empty()
            && summary.parts.iter().all(is_text))
    {
        return Err(PlanError::Summary);
    }
    check_edits(messages, plan, &turns, pinned)?;
    let whole = turns.iter().filter(|turn| (*turn).clone().all(|at| dropped.contains(&at)));
    Ok(CheckedPlan { turns_removed: whole.count() as u64 })
}

/// Checks that a plan frees more than its summary takes. `freed_by_edits` are bytes.
pub(super) fn check_gain(
    messages: &[Message],
    plan: &GcPlan,
    freed_by_edits: u64,
) -> Result<(), PlanError> {
    let dropped: u64 = plan.drop.iter().map(|at| json_bytes(&messages[*at])).sum();
    let freed = dropped.saturating_add(freed_by_edits);
    let after = plan.summary.as_ref().map_or(0, json_bytes);
    if after >= freed { Err(PlanError::Grows { freed, after }) } else { Ok(()) }
}

fn check_edits(
    messages: &[Message],
    plan: &GcPlan,
    turns: &[Range<usize>],
    pinned: &[usize],
) -> Result<(), PlanError> {
    let pinned: Vec<&Range<usize>> = pinned.iter().filter_map(|at| turns.get(*at)).collect();
    let mut seen = HashSet::new();
    for edit in plan.edits.iter().filter(|edit| edit.change != GcChange::Unknown) {
        let index = edit.message;
        let refuse = |why| Err(PlanError::Edit { index, why });
        let Some(message) = messages.get(index) else {
            return Err(PlanError::EditRange { index, count: messages.len() });
        };
        if plan.drop.binary_search(&index).is_ok() {
            return refuse("it drops that message");
        }
        // A summary in front of a prompt is the gc's own, even in these turns.
        let is_own = edit.change == GcChange::Remove;
        if !is_own && turns.last().is_some_and(|turn| turn.contains(&index)) {
            return refuse("it belongs to the last turn");
        }
        if !is_own && pinned.iter().any(|turn| turn.contains(&index)) {
            return refuse("it belongs to a pinned turn");
        }
        if !seen.insert((index, edit.part, described_attachment(edit))) {
            return refuse("it changes one part of it twice");
        }
        if let Some(why) = edit_problem(messages, plan, message, edit) {
            return Err(PlanError::EditPart { index, part: edit.part, why });
        }
    }
    Ok(())
}

/// Returns why a change does not fit its part. The session checks separately that a removed text is
/// a summary.
fn edit_problem(
    messages: &[Message],
    plan: &GcPlan,
    message: &Message,
    edit: &GcEdit,
) -> Option<&'static str> {
    let Some(part) = message.parts.get(edit.part) else { return Some("that part does not exist") };
    if message.role == Role::Model {
        return Some("it is the model's");
    }
    let fits = match (&edit.change, part) {
        (GcChange::Shorten { .. }, Part::ToolResult(_)) => true,
        (GcChange::Shorten { .. }, Part::Data(data)) => data.blob_id().is_none(),
        (GcChange::Repeated { by }, Part::ToolResult(result)) => {
            let later = messages.iter().enumerate().skip(edit.message + 1);
            let mut later = later.filter(|(at, _)| plan.drop.binary_search(at).is_err());
            let is_later = |(at, message): (usize, &Message)| {
                message.parts.iter().enumerate().any(|(part, one)| {
                    let is_call = one.as_tool_result().is_some_and(|one| {
                        one.call_id == *by && one.name == result.name && !one.is_error
                    });
                    is_call && !is_repeated_result(plan, at, part)
                })
            };
            if !later.any(is_later) {
                return Some("no later result of that tool that stays has the id that it names");
            }
            true
        }
        (GcChange::Describe { text, .. }, _) if text.trim().is_empty() => {
            return Some("the description is empty");
        }
        (GcChange::Describe { attachment: None, .. }, Part::Data(data)) => is_file(data),
        (GcChange::Describe { attachment: Some(at), .. }, Part::ToolResult(result)) => {
            result.attachments.get(*at).is_some_and(is_file)
        }
        (GcChange::Remove, Part::Text { text, .. }) => !text.starts_with(NOTE_BEGIN),
        _ => false,
    };
    (!fits).then_some("the change does not fit its type")
}

fn is_repeated_result(plan: &GcPlan, message: usize, part: usize) -> bool {
    plan.edits.iter().any(|edit| {
        (edit.message, edit.part) == (message, part)
            && matches!(edit.change, GcChange::Repeated { .. })
    })
}

fn is_file(data: &DataPart) -> bool {
    data.blob_id().is_some()
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Order => f.write_str("its indices do not ascend"),
            Self::Range { index, count } => {
                write!(f, "it drops message {index}, and there are {count}")
            }
            Self::LastTurn(index) => {
                write!(f, "it drops message {index}, which belongs to the last turn")
            }
            Self::Pinned(index) => {
                write!(f, "it drops message {index}, which belongs to a pinned turn")
            }
            Self::EditRange { index, count } => {
                write!(f, "it changes message {index}, and there are {count}")
            }
            Self::Edit { index, why } => write!(f, "it changes message {index}, but {why}"),
            Self::EditPart { index, part, why } => {
                write!(f, "it changes part {part} of message {index}, but {why}")
            }
            Self::Summary => f.write_str("its summary is not a text with the role `user`"),
            Self::Grows { freed, after } => write!(
                f,
                "it does not free space: it frees {freed} bytes and adds {after} bytes of summary"
            ),
            Self::History(error) => error.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use jaato_types::{ToolCall, ToolResult};
    use serde_json::{Map, json};

    use super::*;

    fn history() -> Vec<Message> {
        let turn = |n: usize| {
            [Message::user(format!("prompt {n}")), Message::model(vec![Part::text("answer")])]
        };
        (0..4).flat_map(turn).collect()
    }

    #[track_caller]
    fn check_removed_turns(plan: GcPlan, expected: Result<u64, PlanError>) {
        let found = check_plan(&history(), &plan, &[1]);
        assert_eq!(found.map(|checked| checked.turns_removed), expected);
    }

    fn plan_dropping(drop: &[usize]) -> GcPlan {
        GcPlan { drop: drop.to_vec(), ..GcPlan::default() }
    }

    #[test]
    fn whole_turns_and_partial_turns_are_distinguished() {
        check_removed_turns(plan_dropping(&[0, 1, 4, 5]), Ok(2));
        check_removed_turns(plan_dropping(&[0, 1, 4]), Ok(1));
    }

    #[test]
    fn indices_ascend_and_are_in_range() {
        check_removed_turns(plan_dropping(&[1, 0]), Err(PlanError::Order));
        check_removed_turns(plan_dropping(&[0, 0]), Err(PlanError::Order));
        check_removed_turns(plan_dropping(&[0, 8]), Err(PlanError::Range { index: 8, count: 8 }));
        check_removed_turns(
            plan_dropping(&[usize::MAX]),
            Err(PlanError::Range { index: usize::MAX, count: 8 }),
        );
    }

    #[test]
    fn the_last_turn_and_pinned_ones_stay() {
        check_removed_turns(plan_dropping(&[0, 7]), Err(PlanError::LastTurn(7)));
        check_removed_turns(plan_dropping(&[0, 1, 2]), Err(PlanError::Pinned(2)));
    }

    #[test]
    fn summary_must_be_user_text_and_smaller_than_the_dropped_turns() {
        let with = |summary| GcPlan { summary: Some(summary), ..plan_dropping(&[0, 1]) };
        check_removed_turns(with(Message::user("short")), Ok(1));
        check_removed_turns(
            with(Message::model(vec![Part::text("short")])),
            Err(PlanError::Summary),
        );
        check_removed_turns(
            with(Message { role: Role::User, parts: vec![] }),
            Err(PlanError::Summary),
        );
        check_removed_turns(with(Message::user("")), Err(PlanError::Summary));
        let gain = |plan, freed| check_gain(&history(), &plan, freed);
        let found = gain(with(Message::user("long ".repeat(100))), 0);
        assert!(matches!(found, Err(PlanError::Grows { .. })), "{found:?}");
        assert_eq!(gain(with(Message::user("long ".repeat(100))), 1_000), Ok(()));
        assert_eq!(gain(plan_dropping(&[]), 0), Err(PlanError::Grows { freed: 0, after: 0 }));
    }

    /// Returns a prompt with an image, two reads of one file, and an answer, then another turn.
    fn history_with_results() -> Vec<Message> {
        let call = |id: &str| {
            Message::model(vec![Part::ToolCall(ToolCall::new(id, "readFile", json!({})))])
        };
        let result = |id: &str| Message::tool([ToolResult::new(id, "readFile", Map::new())]);
        let image = Part::Data(DataPart::blob("image/png", "00"));
        let prompt = Message { parts: vec![Part::text("look"), image], ..Message::default() };
        let answer = || Message::model(vec![Part::text("seen")]);
        let reads = [call("1"), result("1"), call("2"), result("2")];
        [prompt].into_iter().chain(reads).chain([answer(), Message::user("x"), answer()]).collect()
    }

    #[track_caller]
    fn check_edit(message: usize, part: usize, change: GcChange, expected: Result<(), &str>) {
        let edits = vec![GcEdit::new(message, part, change)];
        let plan = GcPlan { edits, ..GcPlan::default() };
        let found = check_plan(&history_with_results(), &plan, &[]);
        let found = found.map(drop).map_err(|error| error.to_string());
        assert_eq!(found, expected.map_err(str::to_owned));
    }

    fn description_change(attachment: Option<usize>, text: &str) -> GcChange {
        GcChange::Describe { attachment, text: text.to_owned() }
    }

    #[test]
    fn edits_must_fit_their_parts() {
        let shorten = || GcChange::Shorten { bytes_max: 600 };
        let repeated = |by: &str| GcChange::Repeated { by: by.into() };
        check_edit(2, 0, shorten(), Ok(()));
        check_edit(2, 0, repeated("2"), Ok(()));
        check_edit(0, 1, description_change(None, "a cat"), Ok(()));
        check_edit(0, 0, GcChange::Remove, Ok(()));
        check_edit(99, 9, GcChange::Unknown, Ok(()));
        let misfit = |message: usize, part: usize, why: &str| {
            format!("it changes part {part} of message {message}, but {why}")
        };
        let why = "no later result of that tool that stays has the id that it names";
        for by in ["1", "3"] {
            check_edit(4, 0, repeated(by), Err(&misfit(4, 0, why)));
        }
        let type_misfit = |message, part| misfit(message, part, "the change does not fit its type");
        check_edit(0, 1, shorten(), Err(&type_misfit(0, 1)));
        check_edit(0, 0, shorten(), Err(&type_misfit(0, 0)));
        check_edit(2, 0, description_change(Some(0), "a cat"), Err(&type_misfit(2, 0)));
        check_edit(2, 1, shorten(), Err(&misfit(2, 1, "that part does not exist")));
        check_edit(1, 0, shorten(), Err(&misfit(1, 0, "it is the model's")));
        check_edit(
            0,
            1,
            description_change(None, " "),
            Err(&misfit(0, 1, "the description is empty")),
        );
    }

    #[test]
    fn edits_of_missing_or_protected_messages_are_refused() {
        let shorten = || GcChange::Shorten { bytes_max: 600 };
        check_edit(8, 0, shorten(), Err("it changes message 8, and there are 8"));
        let last = "it changes message 6, but it belongs to the last turn";
        check_edit(6, 0, shorten(), Err(last));
        let edits = vec![GcEdit::new(2, 0, shorten())];
        let check = |plan: &GcPlan, pinned: &[usize], why: &str| {
            let found = check_plan(&history_with_results(), plan, pinned).unwrap_err();
            assert_eq!(found.to_string(), format!("it changes message 2, but {why}"));
        };
        let plan = GcPlan { edits, ..GcPlan::default() };
        check(&plan, &[0], "it belongs to a pinned turn");
        check(&GcPlan { drop: vec![1, 2], ..plan.clone() }, &[], "it drops that message");
        let twice = [plan.edits.clone(), plan.edits].concat();
        let why = "it changes one part of it twice";
        check(&GcPlan { edits: twice, ..GcPlan::default() }, &[], why);
    }
}
