//! The prompt cache: an entry at each mark, found again by everything before it.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::bound_thoughts::hash_texts;
use super::models::FakeAnthropicModel;

/// The number of blocks that a mark looks back for an entry, including its own.
const LOOK_BACK: usize = 20;

/// The number of bytes that count as one token.
const TOKEN_BYTES: usize = 4;

/// The entries so far.
#[derive(Debug, Default)]
pub(super) struct FakePromptCache {
    entries: BTreeSet<String>,
}

/// The tokens of a request.
#[derive(Debug, Clone, Copy)]
pub(super) struct AnthropicTokenCounts {
    pub(super) total: u64,
    pub(super) read: u64,
    pub(super) written: u64,
}

/// A block with everything before it.
struct CacheBlockPrefix {
    hash: String,
    tokens: u64,
    is_marked: bool,
}

impl FakePromptCache {
    /// Returns the cached tokens of a request, and adds entries at its marks.
    pub(super) fn count_tokens(
        &mut self,
        body: &Map<String, Value>,
        model: &FakeAnthropicModel,
    ) -> AnthropicTokenCounts {
        let places = cache_prefixes(body, model);
        let total = places.last().map_or(0, |place| place.tokens);
        let marks: Vec<usize> = (0..places.len()).filter(|at| places[*at].is_marked).collect();
        let found = marks.iter().filter_map(|mark| {
            let near = (0..=*mark).rev().take(LOOK_BACK);
            let known = |at: &usize| self.entries.contains(&places[*at].hash);
            near.into_iter().find(known).map(|at| places[at].tokens)
        });
        let read = found.max().unwrap_or(0);
        let mut end = read;
        for place in marks.iter().map(|mark| &places[*mark]) {
            if place.tokens >= model.cache_min {
                self.entries.insert(place.hash.clone());
                end = end.max(place.tokens);
            }
        }
        AnthropicTokenCounts { total, read, written: end - read }
    }
}

fn cache_prefixes(body: &Map<String, Value>, model: &FakeAnthropicModel) -> Vec<CacheBlockPrefix> {
    let mut places: Vec<CacheBlockPrefix> = Vec::new();
    let mut bytes = 0;
    let mut add = |before: &str, role: &str, block: &Value| {
        let mut block = block.clone();
        let is_marked =
            block.as_object_mut().is_some_and(|it| it.remove("cache_control").is_some());
        let text = block.to_string();
        bytes += text.len();
        let last = places.last().map_or("", |place| place.hash.as_str());
        let hash = hash_texts(&[last, before, role, &text]);
        places.push(CacheBlockPrefix { hash, tokens: (bytes / TOKEN_BYTES) as u64, is_marked });
    };
    let list = |name: &str| body.get(name).and_then(Value::as_array).cloned().unwrap_or_default();
    for tool in list("tools") {
        add(model.name, "tools", &tool);
    }
    match body.get("system") {
        Some(text @ Value::String(_)) => add(model.name, "system", text),
        _ => list("system").iter().for_each(|block| add(model.name, "system", block)),
    }
    // Another thinking mode or tool choice changes only the entries of the messages.
    let of = |name: &str| body.get(name).map(Value::to_string).unwrap_or_default();
    let before = format!("{}{}{}", model.name, of("thinking"), of("tool_choice"));
    for message in list("messages") {
        let role = message["role"].as_str().unwrap_or_default();
        match &message["content"] {
            Value::Array(blocks) => blocks.iter().for_each(|block| add(&before, role, block)),
            text => add(&before, role, text),
        }
    }
    places
}
