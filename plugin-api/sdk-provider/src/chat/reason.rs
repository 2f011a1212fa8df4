//! Interprets the stop reasons of many servers.
//!
//! Pure. An unlisted word becomes `unknown` and is passed to the session unchanged. Such an answer
//! may be incomplete, so it must not silently count as complete.

use jaato_plugin_sdk::types::FinishReason;

/// The model has finished.
const STOP: [&str; 12] = [
    "stop",
    "eos",
    "eos_token",
    "end",
    "end_turn",
    "stop_sequence",
    "stop_string",
    "complete",
    "completed",
    "finish",
    "finished",
    "normal",
];

/// The answer reached the token limit.
const MAX_TOKENS: [&str; 8] = [
    "length",
    "max_tokens",
    "max_output_tokens",
    "max_new_tokens",
    "max_length",
    "max_output",
    "max_output_reached",
    "error_limit",
];

/// The context window is full.
const CONTEXT: [&str; 4] =
    ["model_length", "context_length", "context_length_exceeded", "model_context_window_exceeded"];

/// The model waits for tool results.
const TOOL_USE: [&str; 6] =
    ["tool_calls", "tool_call", "tool_use", "function_call", "function_calls", "tools"];

/// A content filter stopped the answer.
const SAFETY: [&str; 17] = [
    "content_filter",
    "content_filtered",
    "guardrail_intervened",
    "safety",
    "image_safety",
    "recitation",
    "image_recitation",
    "language",
    "blocklist",
    "prohibited_content",
    "image_prohibited_content",
    "spii",
    "sensitive",
    "moderation",
    "blocked",
    "model_armor",
    "error_toxic",
];

/// The model declined.
const REFUSED: [&str; 2] = ["refusal", "refused"];

/// The server failed or aborted the answer.
const ERROR: [&str; 13] = [
    "error",
    "failed",
    "abort",
    "aborted",
    "cancelled",
    "canceled",
    "user_cancel",
    "timeout",
    "network_error",
    "insufficient_system_resource",
    "malformed_function_call",
    "malformed_response",
    "unexpected_tool_call",
];

/// Words that servers send while the model has not stopped.
const NO_WORDS: [&str; 3] = ["", "null", "none"];

/// Returns true if a word means that the model has stopped.
pub fn is_reason_given(word: &str) -> bool {
    !NO_WORDS.contains(&normalize_word(word).as_str())
}

/// Converts a server's word.
pub fn finish_reason(word: &str) -> FinishReason {
    let plain = normalize_word(word);
    let is_one_of = |words: &[&str]| words.contains(&plain.as_str());
    if is_one_of(&STOP) {
        FinishReason::Stop
    } else if is_one_of(&MAX_TOKENS) {
        FinishReason::MaxTokens
    } else if is_one_of(&CONTEXT) {
        FinishReason::ContextExceeded
    } else if is_one_of(&TOOL_USE) {
        FinishReason::ToolUse
    } else if is_one_of(&SAFETY) {
        FinishReason::Safety
    } else if is_one_of(&REFUSED) {
        FinishReason::Refused
    } else if is_one_of(&ERROR) {
        FinishReason::Error
    } else {
        FinishReason::Unknown
    }
}

/// Normalizes a word. Servers differ in case and hyphens, and Google's servers add the prefix
/// `FINISH_REASON_`.
fn normalize_word(word: &str) -> String {
    let word = word.trim().to_lowercase().replace('-', "_");
    word.strip_prefix("finish_reason_").unwrap_or(&word).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stop_reasons_are_recognized_in_any_spelling() {
        for (word, expected) in [
            ("stop", FinishReason::Stop),
            (" STOP ", FinishReason::Stop),
            ("COMPLETE", FinishReason::Stop),
            ("eos_token", FinishReason::Stop),
            ("length", FinishReason::MaxTokens),
            ("model_length", FinishReason::ContextExceeded),
            ("MAX_TOKENS", FinishReason::MaxTokens),
            ("FINISH_REASON_MAX_TOKENS", FinishReason::MaxTokens),
            ("max-tokens", FinishReason::MaxTokens),
            ("model_context_window_exceeded", FinishReason::ContextExceeded),
            ("tool_use", FinishReason::ToolUse),
            ("PROHIBITED_CONTENT", FinishReason::Safety),
            ("sensitive", FinishReason::Safety),
            ("content-filter", FinishReason::Safety),
            ("refusal", FinishReason::Refused),
            ("abort", FinishReason::Error),
            ("insufficient_system_resource", FinishReason::Error),
            ("pause_turn", FinishReason::Unknown),
            ("moon", FinishReason::Unknown),
        ] {
            assert_eq!(finish_reason(word), expected, "{word}");
            assert!(is_reason_given(word), "{word}");
        }
    }

    #[test]
    fn empty_and_null_stop_reasons_count_as_missing() {
        for word in ["", " ", "null", "NULL", "None"] {
            assert!(!is_reason_given(word), "{word}");
        }
    }
}
