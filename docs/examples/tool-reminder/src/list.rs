//! The list of reminders. Independent of plugins and without a clock: callers pass the time.

use std::collections::BTreeMap;

use jaato_plugin_sdk::prelude::{Value, json};
use jaato_plugin_sdk::serde::{Deserialize, Serialize};

/// The maximum number of reminders at a time.
pub const REMINDERS_MAX: usize = 20;

/// The longest wait. Sessions last hours, not weeks.
pub const SECONDS_MAX: u64 = 86_400;

/// The longest text, in bytes.
pub const TEXT_BYTES_MAX: usize = 1_000;

/// Reminders by number. Numbers are never reused.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(crate = "jaato_plugin_sdk::serde")]
pub struct ReminderList {
    reminders: BTreeMap<u64, Reminder>,
    last: u64,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(crate = "jaato_plugin_sdk::serde")]
struct Reminder {
    text: String,
    seconds_left: u64,
    /// Why it could not be sent.
    problem: Option<String>,
}

/// Why a reminder was refused.
#[derive(Debug, PartialEq, Eq)]
pub enum RefusedReminder {
    /// The text is empty or too long.
    Text,
    /// The wait is too long.
    Seconds,
    /// The list is full.
    Full,
}

impl ReminderList {
    /// Adds a reminder and returns its number.
    ///
    /// # Errors
    /// Fails if the text or the time is out of range, or the list is full.
    pub fn add(&mut self, text: &str, seconds: u64) -> Result<u64, RefusedReminder> {
        let text = text.trim();
        if text.is_empty() || text.len() > TEXT_BYTES_MAX {
            return Err(RefusedReminder::Text);
        }
        if seconds > SECONDS_MAX {
            return Err(RefusedReminder::Seconds);
        }
        if self.reminders.len() >= REMINDERS_MAX {
            return Err(RefusedReminder::Full);
        }
        self.last += 1;
        let reminder = Reminder { text: text.to_owned(), seconds_left: seconds, problem: None };
        self.reminders.insert(self.last, reminder);
        Ok(self.last)
    }

    /// Returns true if a reminder exists and has time left.
    pub fn is_waiting(&self, number: u64) -> bool {
        self.reminders.get(&number).is_some_and(|reminder| reminder.seconds_left > 0)
    }

    /// Subtracts a second from a reminder's remaining time.
    pub fn count_second(&mut self, number: u64) {
        if let Some(reminder) = self.reminders.get_mut(&number) {
            reminder.seconds_left = reminder.seconds_left.saturating_sub(1);
        }
    }

    /// Returns the text of a reminder, or `None` if it is gone.
    pub fn text(&self, number: u64) -> Option<String> {
        self.reminders.get(&number).map(|reminder| reminder.text.clone())
    }

    /// Records why a reminder could not be sent.
    pub fn fail(&mut self, number: u64, problem: String) {
        if let Some(reminder) = self.reminders.get_mut(&number) {
            reminder.problem = Some(problem);
        }
    }

    /// Removes a reminder. Returns false if it does not exist.
    pub fn cancel(&mut self, number: u64) -> bool {
        self.reminders.remove(&number).is_some()
    }

    /// Returns the numbers of all reminders.
    pub fn numbers(&self) -> impl Iterator<Item = u64> + '_ {
        self.reminders.keys().copied()
    }

    /// Returns all reminders as data.
    pub fn to_model_json(&self) -> Vec<Value> {
        let shown = self.reminders.iter().map(|(number, reminder)| {
            let Reminder { text, seconds_left, problem } = reminder;
            let mut shown = json!({ "number": number, "text": text, "seconds_left": seconds_left });
            if let Some(problem) = problem {
                shown["problem"] = json!(problem);
            }
            shown
        });
        shown.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reminder_is_due_after_the_given_number_of_seconds() {
        let mut list = ReminderList::default();
        assert_eq!(list.add(" tea ", 2), Ok(1));
        assert_eq!(
            list.to_model_json(),
            [json!({ "number": 1, "text": "tea", "seconds_left": 2 })]
        );
        for is_waiting in [true, true, false, false] {
            assert_eq!(list.is_waiting(1), is_waiting);
            list.count_second(1);
        }
        assert_eq!(list.text(1).as_deref(), Some("tea"));
        assert!(list.cancel(1) && !list.cancel(1) && !list.is_waiting(1));
        assert_eq!(list.add("again", 0), Ok(2), "a number is given once");
    }

    #[test]
    fn reminders_outside_the_limits_are_refused() {
        let mut list = ReminderList::default();
        assert_eq!(list.add(" ", 1), Err(RefusedReminder::Text));
        assert_eq!(list.add(&"x".repeat(TEXT_BYTES_MAX + 1), 1), Err(RefusedReminder::Text));
        assert_eq!(list.add("x", SECONDS_MAX + 1), Err(RefusedReminder::Seconds));
        for _ in 0..REMINDERS_MAX {
            list.add(&"x".repeat(TEXT_BYTES_MAX), SECONDS_MAX).unwrap();
        }
        assert_eq!(list.add("x", 1), Err(RefusedReminder::Full));
    }
}
