//! Counts the tokens of an answer. Pure.

use jaato_plugin_sdk::serde_json::Value;
use jaato_plugin_sdk::types::Usage;

/// The counts so far. Each chunk repeats them, and early chunks omit some.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct GoogleUsageCounts {
    prompt: u64,
    tool_use: u64,
    cached: u64,
    answer: u64,
    thoughts: u64,
}

impl GoogleUsageCounts {
    /// Reads the counts of a chunk.
    pub(crate) fn add_counts(&mut self, usage: &Value) {
        let set = |place: &mut u64, key: &str| {
            if let Some(count) = usage[key].as_u64() {
                *place = count;
            }
        };
        set(&mut self.prompt, "promptTokenCount");
        set(&mut self.tool_use, "toolUsePromptTokenCount");
        set(&mut self.cached, "cachedContentTokenCount");
        set(&mut self.answer, "candidatesTokenCount");
        set(&mut self.thoughts, "thoughtsTokenCount");
    }

    /// Returns the usage. The vendor's prompt count includes cached tokens but not those that its
    /// own tools read, and its answer count excludes thoughts.
    pub(crate) fn to_usage(self) -> Usage {
        Usage {
            prompt_tokens: self.prompt.saturating_add(self.tool_use),
            output_tokens: self.answer.saturating_add(self.thoughts),
            cached_tokens: self.cached,
            reasoning_tokens: self.thoughts,
            ..Usage::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use jaato_plugin_sdk::serde_json::json;

    use super::*;

    #[test]
    fn usage_counts_thoughts_as_output_and_tool_prompts_as_prompt() {
        let mut counted = GoogleUsageCounts::default();
        counted.add_counts(&json!({ "promptTokenCount": 100, "totalTokenCount": 100 }));
        counted.add_counts(&json!({ "promptTokenCount": 100, "cachedContentTokenCount": 64,
            "candidatesTokenCount": 5, "thoughtsTokenCount": 30, "toolUsePromptTokenCount": 7,
            "totalTokenCount": 142, "trafficType": "ON_DEMAND" }));
        for odd in [json!(null), json!("x"), json!({ "promptTokenCount": -1 })] {
            counted.add_counts(&odd);
        }
        let expected = Usage {
            prompt_tokens: 107,
            output_tokens: 35,
            cached_tokens: 64,
            reasoning_tokens: 30,
            ..Usage::default()
        };
        assert_eq!(counted.to_usage(), expected);
    }
}
