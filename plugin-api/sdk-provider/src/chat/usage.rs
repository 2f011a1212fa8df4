//! Reads the usage of an answer in the forms of many servers. Pure.

use jaato_plugin_sdk::serde_json::Value;
use jaato_plugin_sdk::types::Usage;

/// Reads the usage of a chunk, or `None` if it reports none.
pub(crate) fn read_chunk_usage(chunk: &Value) -> Option<Usage> {
    // Groq reports it there.
    let places = [&chunk["usage"], &chunk["x_groq"]["usage"]];
    let usage = places.into_iter().find(|usage| usage.is_object())?;
    let first = |paths: &[&str]| {
        paths.iter().find_map(|path| usage.pointer(path).and_then(Value::as_u64)).unwrap_or(0)
    };
    let prompt_tokens = first(&["/prompt_tokens"]);
    let output = first(&["/completion_tokens"]);
    let reasoning_tokens = first(&["/completion_tokens_details/reasoning_tokens"]);
    Some(Usage {
        prompt_tokens,
        output_tokens: output_tokens(prompt_tokens, output, reasoning_tokens, usage),
        // The second path is DeepSeek's.
        cached_tokens: first(&["/prompt_tokens_details/cached_tokens", "/prompt_cache_hit_tokens"]),
        cache_write_tokens: first(&[
            "/prompt_tokens_details/cache_write_tokens",
            "/cache_write_tokens",
            "/prompt_tokens_details/cache_creation_tokens",
            "/cache_creation_input_tokens",
        ]),
        reasoning_tokens,
        cost_micro_usd: usage["cost"].as_f64().and_then(micro_usd),
        ..Usage::default()
    })
}

/// Counts the output tokens with reasoning. xAI reports reasoning separately, which the total
/// shows.
pub fn output_tokens(prompt: u64, output: u64, reasoning: u64, usage: &Value) -> u64 {
    let with_reasoning = output.saturating_add(reasoning);
    let total = usage["total_tokens"].as_u64();
    let is_beside = reasoning > 0 && total == Some(prompt.saturating_add(with_reasoning));
    if is_beside { with_reasoning } else { output }
}

/// Converts dollars to millionths. OpenRouter's credits are dollars.
pub fn micro_usd(dollars: f64) -> Option<u64> {
    let micro = (dollars * 1e6).round();
    // Casts from floats saturate.
    (micro >= 0.0 && micro.is_finite()).then_some(micro as u64)
}

#[cfg(test)]
mod tests {
    use jaato_plugin_sdk::serde_json::json;

    use super::*;

    #[track_caller]
    fn check_usage(usage: Value, expected: Usage) {
        assert_eq!(read_chunk_usage(&json!({ "usage": usage })), Some(expected));
    }

    #[test]
    fn openai_usage_is_parsed() {
        check_usage(
            json!({ "prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 14,
                "prompt_tokens_details": { "cached_tokens": 8, "audio_tokens": 0 },
                "completion_tokens_details": { "reasoning_tokens": 3 } }),
            Usage {
                prompt_tokens: 9,
                output_tokens: 5,
                cached_tokens: 8,
                reasoning_tokens: 3,
                ..Usage::default()
            },
        );
    }

    #[test]
    fn reasoning_tokens_reported_separately_are_added_to_the_output() {
        check_usage(
            json!({ "prompt_tokens": 12, "completion_tokens": 2, "total_tokens": 354,
                "completion_tokens_details": { "reasoning_tokens": 340 } }),
            Usage {
                prompt_tokens: 12,
                output_tokens: 342,
                reasoning_tokens: 340,
                ..Usage::default()
            },
        );
    }

    #[test]
    fn openrouter_usage_and_cost_are_parsed() {
        check_usage(
            json!({ "prompt_tokens": 9, "completion_tokens": 5, "cost": 0.001_234_6,
                "prompt_tokens_details": { "cached_tokens": 1, "cache_write_tokens": 7 } }),
            Usage {
                prompt_tokens: 9,
                output_tokens: 5,
                cached_tokens: 1,
                cache_write_tokens: 7,
                cost_micro_usd: Some(1_235),
                ..Usage::default()
            },
        );
        let cost = |cost: Value| read_chunk_usage(&json!({ "usage": { "cost": cost } })).unwrap();
        assert_eq!(cost(json!(0)).cost_micro_usd, Some(0));
        for odd in [json!(-1), json!("0.1"), json!(null), json!({ "total": 1 })] {
            assert_eq!(cost(odd).cost_micro_usd, None);
        }
    }

    #[test]
    fn usage_in_other_vendors_fields_is_parsed() {
        check_usage(
            json!({ "prompt_tokens": 9, "prompt_cache_hit_tokens": 8 }),
            Usage { prompt_tokens: 9, cached_tokens: 8, ..Usage::default() },
        );
        let groq = json!({ "usage": null, "x_groq": { "usage": { "prompt_tokens": 9 } } });
        assert_eq!(read_chunk_usage(&groq).map(|usage| usage.prompt_tokens), Some(9));
        for none in [json!({}), json!({ "usage": null }), json!(null), json!({ "x_groq": 1 })] {
            assert_eq!(read_chunk_usage(&none), None);
        }
    }
}
