//! The list itself. Independent of plugins, so it is tested without one.

use jaato_plugin_sdk::prelude::{Value, json};
use jaato_plugin_sdk::serde::{Deserialize, Serialize};

/// The items to do. An item's number is its position, starting at 1.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(crate = "jaato_plugin_sdk::serde")]
pub struct Checklist {
    items: Vec<ChecklistItem>,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(crate = "jaato_plugin_sdk::serde")]
struct ChecklistItem {
    text: String,
    done: bool,
}

/// Why a change was refused.
#[derive(Debug, PartialEq, Eq)]
pub enum RefusedItem {
    /// The text is empty.
    Empty,
    /// The list is full.
    Full(usize),
    /// No item has this number.
    NoSuchItem {
        /// The requested number.
        number: usize,
        /// The number of items.
        count: usize,
    },
}

impl Checklist {
    /// Adds an item and returns its number.
    ///
    /// # Errors
    /// Fails if the text is empty or the list is full.
    pub fn add(&mut self, text: &str, items_max: usize) -> Result<usize, RefusedItem> {
        let text = text.trim();
        if text.is_empty() {
            return Err(RefusedItem::Empty);
        }
        if self.items.len() >= items_max {
            return Err(RefusedItem::Full(items_max));
        }
        self.items.push(ChecklistItem { text: text.to_owned(), done: false });
        Ok(self.items.len())
    }

    /// Marks an item as done, even if it is already done, and returns its text.
    ///
    /// # Errors
    /// Fails if the item does not exist.
    pub fn finish(&mut self, number: usize) -> Result<&str, RefusedItem> {
        let count = self.items.len();
        let item = number.checked_sub(1).and_then(|at| self.items.get_mut(at));
        let item = item.ok_or(RefusedItem::NoSuchItem { number, count })?;
        item.done = true;
        Ok(&item.text)
    }

    /// Returns the number of items to do.
    pub fn open_count(&self) -> usize {
        self.items.iter().filter(|item| !item.done).count()
    }

    /// Returns all items as data.
    pub fn to_model_json(&self) -> Vec<Value> {
        let numbered = (1..).zip(&self.items);
        numbered
            .map(|(number, item): (usize, &ChecklistItem)| {
                json!({ "number": number, "text": item.text, "done": item.done })
            })
            .collect()
    }

    /// Returns all items, one per line.
    pub fn to_user_text(&self) -> String {
        if self.items.is_empty() {
            return "nothing is on the list".to_owned();
        }
        let numbered = (1..).zip(&self.items);
        let lines = numbered.map(|(number, item): (usize, &ChecklistItem)| {
            format!("{} {number}. {}", if item.done { "✓" } else { "·" }, item.text)
        });
        lines.collect::<Vec<_>>().join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_numbered_from_one_and_ticked_off() {
        let mut list = Checklist::default();
        assert_eq!(list.add(" build ", 2), Ok(1));
        assert_eq!(list.add("test", 2), Ok(2));
        assert_eq!(list.finish(1), Ok("build"));
        assert_eq!(list.finish(1), Ok("build"), "finishing twice is harmless");
        assert_eq!(list.open_count(), 1);
        assert_eq!(list.to_user_text(), "✓ 1. build\n· 2. test");
    }

    #[test]
    fn invalid_changes_leave_the_list_as_it_is() {
        let mut list = Checklist::default();
        assert_eq!(list.add("  ", 1), Err(RefusedItem::Empty));
        assert_eq!(list.add("a", 1), Ok(1));
        assert_eq!(list.add("b", 1), Err(RefusedItem::Full(1)));
        for number in [0, 2] {
            assert_eq!(list.finish(number), Err(RefusedItem::NoSuchItem { number, count: 1 }));
        }
        assert_eq!(list.open_count(), 1);
    }
}
