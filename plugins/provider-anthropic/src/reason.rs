//! Maps the vendor's stop reasons. Pure.

use jaato_plugin_sdk::types::FinishReason;

/// Maps a stop reason. The session gets an unknown reason unchanged.
pub(crate) fn finish_reason(word: &str) -> FinishReason {
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
