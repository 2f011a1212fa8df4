//! Marks up to where the server is to remember a request. Pure.
//!
//! A mark writes one entry: all up to and with its block. The next request finds an entry at each
//! of its own marks, and at up to twenty blocks before one. So the newest message is marked, which
//! the next request goes on from, and the message that was the newest one request before, which is
//! found however many blocks have come since. The tools and the system text are marked for other
//! conversations that begin alike. Below the server's least size a mark does nothing and costs
//! nothing.

use jaato_plugin_sdk::serde_json::{Value, json};

use crate::history::Turn;

/// Marks the last of some blocks.
pub(crate) fn mark_last(blocks: &mut [Value]) {
    if let Some(last) = blocks.last_mut() {
        last["cache_control"] = json!({ "type": "ephemeral" });
    }
}

/// Marks the newest message and the one that was the newest before: the user's before the last
/// answer.
pub(crate) fn mark_turns(turns: &mut [Turn]) {
    let users = turns.iter_mut().rev().filter_map(|turn| match turn {
        Turn::User { results, said, .. } => Some(if said.is_empty() { results } else { said }),
        Turn::Model(_) => None,
    });
    for blocks in users.take(2) {
        mark_last(blocks);
    }
}
