//! Sets the cache marks of a request. Pure.
//!
//! A mark makes the server cache everything up to and including its block. The next request hits
//! the cache at each of its own marks, and up to twenty blocks before a mark. The plugin therefore
//! marks the newest message, which the next request extends, and the message that was the newest
//! one request earlier, which is found regardless of the number of blocks between them. The marks
//! on the tools and the system text serve other conversations that start the same way. Below the
//! server's minimum size, a mark has no effect and no cost.

use jaato_plugin_sdk::serde_json::{Value, json};

use crate::history::AnthropicMessage;

/// Marks the last block.
pub(crate) fn mark_last_block(blocks: &mut [Value]) {
    if let Some(last) = blocks.last_mut() {
        last["cache_control"] = json!({ "type": "ephemeral" });
    }
}

/// Marks the newest user message and the previous one, which precedes the last answer.
pub(crate) fn mark_user_messages(turns: &mut [AnthropicMessage]) {
    let users = turns.iter_mut().rev().filter_map(|turn| match turn {
        AnthropicMessage::User { results, said, .. } => {
            Some(if said.is_empty() { results } else { said })
        }
        AnthropicMessage::Model(_) => None,
    });
    for blocks in users.take(2) {
        mark_last_block(blocks);
    }
}
