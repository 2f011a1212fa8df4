//! Checks a gc's plan against the history that it was made for. Pure.
//!
//! The remaining checks (calls keep their results, roles stay in order) are the history's own, when
//! it applies the plan.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;

use jaato_types::{GcPlan, Message, Part, Role};

use super::json_bytes;
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
    /// Its summary is not a user's text.
    Summary,
    /// It does not free space.
    Grows { before: u64, after: u64 },
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
pub(super) fn turns(messages: &[Message]) -> Vec<Range<usize>> {
    let is_start = |at: &usize| *at == 0 || messages[*at].is_prompt();
    let starts: Vec<usize> = (0..messages.len()).filter(is_start).collect();
    let ends = starts.iter().skip(1).copied().chain([messages.len()]);
    starts.iter().zip(ends).map(|(&start, end)| start..end).collect()
}

/// Checks a plan. `pinned` are indices of turns.
pub(super) fn check(
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
    let turns = turns(messages);
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
    let before: u64 = plan.drop.iter().map(|at| json_bytes(&messages[*at])).sum();
    let after = plan.summary.as_ref().map_or(0, json_bytes);
    if after >= before {
        return Err(PlanError::Grows { before, after });
    }
    let whole = turns.iter().filter(|turn| (*turn).clone().all(|at| dropped.contains(&at)));
    Ok(CheckedPlan { turns_removed: whole.count() as u64 })
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
            Self::Summary => f.write_str("its summary is not a text with the role `user`"),
            Self::Grows { before, after } => write!(
                f,
                "it does not free space: it drops {before} bytes and adds {after} bytes of summary"
            ),
            Self::History(error) => error.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history() -> Vec<Message> {
        let turn = |n: usize| {
            [Message::user(format!("prompt {n}")), Message::model(vec![Part::text("answer")])]
        };
        (0..4).flat_map(turn).collect()
    }

    #[track_caller]
    fn check(plan: GcPlan, expected: Result<u64, PlanError>) {
        let found = super::check(&history(), &plan, &[1]);
        assert_eq!(found.map(|checked| checked.turns_removed), expected);
    }

    fn dropping(drop: &[usize]) -> GcPlan {
        GcPlan { drop: drop.to_vec(), ..GcPlan::default() }
    }

    #[test]
    fn whole_turns_and_partial_turns_are_distinguished() {
        check(dropping(&[0, 1, 4, 5]), Ok(2));
        check(dropping(&[0, 1, 4]), Ok(1));
    }

    #[test]
    fn indices_ascend_and_are_in_range() {
        check(dropping(&[1, 0]), Err(PlanError::Order));
        check(dropping(&[0, 0]), Err(PlanError::Order));
        check(dropping(&[0, 8]), Err(PlanError::Range { index: 8, count: 8 }));
        check(dropping(&[usize::MAX]), Err(PlanError::Range { index: usize::MAX, count: 8 }));
    }

    #[test]
    fn the_last_turn_and_pinned_ones_stay() {
        check(dropping(&[0, 7]), Err(PlanError::LastTurn(7)));
        check(dropping(&[0, 1, 2]), Err(PlanError::Pinned(2)));
    }

    #[test]
    fn summary_must_be_user_text_and_smaller_than_the_dropped_turns() {
        let with = |summary| GcPlan { summary: Some(summary), ..dropping(&[0, 1]) };
        check(with(Message::user("short")), Ok(1));
        check(with(Message::model(vec![Part::text("short")])), Err(PlanError::Summary));
        check(with(Message { role: Role::User, parts: vec![] }), Err(PlanError::Summary));
        check(with(Message::user("")), Err(PlanError::Summary));
        let found = super::check(&history(), &with(Message::user("long ".repeat(100))), &[]);
        assert!(matches!(found, Err(PlanError::Grows { .. })), "{found:?}");
        check(dropping(&[]), Err(PlanError::Grows { before: 0, after: 0 }));
    }
}
