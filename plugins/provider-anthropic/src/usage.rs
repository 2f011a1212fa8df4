//! Counts the tokens of an answer. Pure.

use jaato_plugin_sdk::serde_json::Value;
use jaato_plugin_sdk::types::Usage;

/// The counts so far. Later events repeat or correct them, and omit unchanged ones.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct AnthropicUsageCounts {
    input: u64,
    cache_read: u64,
    cache_write: u64,
    output: u64,
    thinking: u64,
}

impl AnthropicUsageCounts {
    /// Reads the counts of an event.
    pub(crate) fn add_counts(&mut self, usage: &Value) {
        let set = |place: &mut u64, path: &str| {
            if let Some(count) = usage.pointer(path).and_then(Value::as_u64) {
                *place = count;
            }
        };
        set(&mut self.input, "/input_tokens");
        set(&mut self.cache_read, "/cache_read_input_tokens");
        set(&mut self.cache_write, "/cache_creation_input_tokens");
        set(&mut self.output, "/output_tokens");
        set(&mut self.thinking, "/output_tokens_details/thinking_tokens");
    }

    /// Returns the usage. The vendor's input count excludes tokens read from or written to the
    /// cache.
    pub(crate) fn to_usage(self) -> Usage {
        let cached = self.cache_read.saturating_add(self.cache_write);
        Usage {
            prompt_tokens: self.input.saturating_add(cached),
            output_tokens: self.output,
            cached_tokens: self.cache_read,
            cache_write_tokens: self.cache_write,
            reasoning_tokens: self.thinking,
            ..Usage::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use jaato_plugin_sdk::serde_json::json;

    use super::*;

    #[test]
    fn later_usage_replaces_earlier_and_prompt_tokens_include_the_cache() {
        let mut counted = AnthropicUsageCounts::default();
        counted.add_counts(&json!({ "input_tokens": 5, "cache_read_input_tokens": 100,
            "cache_creation_input_tokens": 20, "output_tokens": 1 }));
        counted.add_counts(&json!({ "input_tokens": null, "output_tokens": 42,
            "output_tokens_details": { "thinking_tokens": 30 } }));
        for odd in [json!(null), json!("x"), json!({ "output_tokens": -1, "input_tokens": "5" })] {
            counted.add_counts(&odd);
        }
        let expected = Usage {
            prompt_tokens: 125,
            output_tokens: 42,
            cached_tokens: 100,
            cache_write_tokens: 20,
            reasoning_tokens: 30,
            ..Usage::default()
        };
        assert_eq!(counted.to_usage(), expected);
        counted.add_counts(&json!({ "input_tokens": u64::MAX }));
        assert_eq!(counted.to_usage().prompt_tokens, u64::MAX);
    }
}
