//! Why a model stopped, in the vendor's words. Pure.

use jaato_plugin_sdk::types::FinishReason;

/// Reads the vendor's word. One that is not here goes to the session as it is.
pub(crate) fn of_word(word: &str) -> FinishReason {
    match word {
        "end_turn" | "stop_sequence" => FinishReason::Stop,
        "max_tokens" => FinishReason::MaxTokens,
        "tool_use" => FinishReason::ToolUse,
        "pause_turn" => FinishReason::Paused,
        "refusal" => FinishReason::Refused,
        "model_context_window_exceeded" => FinishReason::ContextExceeded,
        _ => FinishReason::Unknown,
    }
}
