//! What the model is shown of the environment, within a budget of tokens.

use std::fmt::Write as _;

use serde_json::Value;

use crate::item::reference;
use crate::store::Placed;
use crate::{Filter, ObjectEnvironment};

/// What is asked to be seen.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Selection {
    /// Of these tools; of all when empty.
    pub tools: Vec<String>,
    /// Of items that match.
    pub filter: Option<Filter>,
    /// Objects that are passed over.
    pub skip: usize,
    /// Most objects.
    pub take: Option<usize>,
}

/// Tells roughly how many tokens a text has: a token is four bytes of JSON.
pub fn estimate_tokens(text: &str) -> usize {
    text.len().div_ceil(4)
}

/// Lists what there is, without an object: tools, their items, how many objects each has, its metadata.
pub fn contents(environment: &ObjectEnvironment) -> String {
    let mut text = String::new();
    for shelf in &environment.tools {
        for placed in &shelf.items {
            head(&mut text, &shelf.tool, placed, None);
        }
    }
    text
}

impl ObjectEnvironment {
    /// Writes what the model sees: items that it named most often first, then those that changed last; as many
    /// objects as the budget holds, and of the rest what there is. Nothing where there is nothing to see.
    pub fn render(&self, tokens_max: usize) -> String {
        let mut items: Vec<(&str, &Placed)> = Vec::new();
        for shelf in &self.tools {
            let shown = shelf.items.iter().filter(|placed| !placed.item.objects.is_empty());
            items.extend(shown.map(|placed| (shelf.tool.as_str(), placed)));
        }
        // Stable: of equals those that came first.
        items.sort_by_key(|(_, placed)| {
            std::cmp::Reverse((self.times_named(placed), placed.revision))
        });
        let bytes_max = tokens_max.saturating_mul(4);
        let mut text = String::new();
        for (number, (tool, placed)) in items.iter().enumerate() {
            let heads: usize = items[number + 1..].iter().map(|_| HEAD_BYTES_ABOUT).sum();
            let room = bytes_max.saturating_sub(text.len() + heads);
            let lines = lines_within(placed, room);
            if text.len() + HEAD_BYTES_ABOUT > bytes_max && lines.is_empty() {
                let rest = items.len() - number;
                let _ = writeln!(text, "and {rest} more items");
                break;
            }
            head(&mut text, tool, placed, Some(lines.len()));
            lines.iter().for_each(|line| {
                let _ = writeln!(text, "{line}");
            });
        }
        text
    }

    /// Writes the objects that are asked for, and how many there are beside them.
    pub fn select(&self, selection: &Selection) -> Value {
        let Selection { tools, filter, skip, take } = selection;
        let (mut found, mut count) = (Vec::new(), 0_usize);
        for shelf in self.tools.iter().filter(|it| tools.is_empty() || tools.contains(&it.tool)) {
            let matches =
                |placed: &&Placed| filter.as_ref().is_none_or(|it| it.matches(&placed.item));
            for placed in shelf.items.iter().filter(matches) {
                let from = count;
                count += placed.item.objects.len();
                let until = take.map_or(usize::MAX, |take| skip.saturating_add(take));
                let shown = (from..count).filter(|at| (*skip..until).contains(at));
                let objects: Vec<Value> =
                    shown.map(|at| placed.item.objects[at - from].clone().into()).collect();
                if !objects.is_empty() || placed.item.objects.is_empty() {
                    found.push(serde_json::json!({
                        "tool": shelf.tool,
                        "name": placed.item.name,
                        "metadata": placed.item.metadata,
                        "objects": objects,
                    }));
                }
            }
        }
        serde_json::json!({ "items": found, "total_objects": count })
    }

    fn times_named(&self, placed: &Placed) -> u64 {
        let references = placed.item.objects.iter().filter_map(reference);
        references.filter_map(|reference| self.named.get(reference)).sum()
    }
}

/// What the line of an item takes, about.
const HEAD_BYTES_ABOUT: usize = 120;

/// Longest metadata in the line of an item.
const METADATA_BYTES_MAX: usize = 400;

/// The line of an item: `query "name" {"collection":"pets"}: 2 of 7 objects`.
fn head(text: &mut String, tool: &str, placed: &Placed, shown: Option<usize>) {
    text.push_str(tool);
    if let Some(name) = &placed.item.name {
        let _ = write!(text, " {}", Value::String(name.clone()));
    }
    if !placed.item.metadata.is_empty() {
        let metadata = Value::Object(placed.item.metadata.clone()).to_string();
        let cut = metadata.floor_char_boundary(METADATA_BYTES_MAX);
        let rest = if cut < metadata.len() { "…" } else { "" };
        let _ = write!(text, " {}{rest}", &metadata[..cut]);
    }
    let count = placed.item.objects.len();
    let objects = if count == 1 { "object" } else { "objects" };
    let _ = match shown {
        Some(shown) if shown < count => writeln!(text, ": {shown} of {count} {objects}"),
        _ => writeln!(text, ": {count} {objects}"),
    };
}

/// The objects, a line of JSON each, newest last, as many of the last as there is room for.
fn lines_within(placed: &Placed, bytes_max: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut bytes = 0;
    for object in placed.item.objects.iter().rev() {
        let line = Value::Object(object.clone()).to_string();
        bytes += line.len() + 1;
        if bytes > bytes_max {
            break;
        }
        lines.push(line);
    }
    lines.reverse();
    lines
}
