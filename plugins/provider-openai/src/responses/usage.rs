//! Counts the tokens of an answer. Pure.

use jaato_plugin_sdk::serde_json::Value;
use jaato_plugin_sdk::types::Usage;
use jaato_plugin_sdk_provider::chat::{micro_usd, output_tokens};

/// Reads the usage of a response. Returns `None` without usage data. Cached tokens are part of the
/// input tokens.
pub(super) fn read_usage(response: &Value) -> Option<Usage> {
    let usage = response.get("usage").filter(|usage| usage.is_object())?;
    let first = |paths: &[&str]| {
        paths.iter().find_map(|path| usage.pointer(path).and_then(Value::as_u64)).unwrap_or(0)
    };
    let (prompt_tokens, output) = (first(&["/input_tokens"]), first(&["/output_tokens"]));
    let reasoning_tokens = first(&["/output_tokens_details/reasoning_tokens"]);
    Some(Usage {
        prompt_tokens,
        output_tokens: output_tokens(prompt_tokens, output, reasoning_tokens, usage),
        cached_tokens: first(&["/input_tokens_details/cached_tokens"]),
        cache_write_tokens: first(&[
            "/input_tokens_details/cache_write_tokens",
            "/input_tokens_details/cache_creation_tokens",
        ]),
        reasoning_tokens,
        // Only OpenRouter sends a cost.
        cost_micro_usd: usage["cost"].as_f64().and_then(micro_usd),
        ..Usage::default()
    })
}
