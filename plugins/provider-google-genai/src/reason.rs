//! Maps the vendor's finish reasons. Pure.

use jaato_plugin_sdk::types::FinishReason;

/// The meaning of a finish reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FinishReasonMeaning {
    /// The answer is usable, complete or stopped.
    For(FinishReason),
    /// The model's output cannot be read. The next attempt may be better.
    Broken,
    /// The request or its history is at fault, so a retry has the same result.
    Refused,
}

/// Maps a finish reason. The session gets an unknown reason unchanged.
pub(crate) fn finish_reason_meaning(word: &str) -> FinishReasonMeaning {
    FinishReasonMeaning::For(match word {
        "STOP" => FinishReason::Stop,
        "MAX_TOKENS" => FinishReason::MaxTokens,
        "SAFETY"
        | "RECITATION"
        | "LANGUAGE"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "MODEL_ARMOR"
        | "IMAGE_SAFETY"
        | "IMAGE_RECITATION"
        | "IMAGE_PROHIBITED_CONTENT" => FinishReason::Safety,
        "MALFORMED_FUNCTION_CALL" | "MALFORMED_RESPONSE" | "UNEXPECTED_TOOL_CALL" => {
            return FinishReasonMeaning::Broken;
        }
        "TOO_MANY_TOOL_CALLS" | "MISSING_THOUGHT_SIGNATURE" => return FinishReasonMeaning::Refused,
        _ => FinishReason::Unknown,
    })
}

/// Maps the reason for which a prompt was blocked.
pub(crate) fn block_finish_reason(word: &str) -> FinishReason {
    match word {
        "SAFETY" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "IMAGE_SAFETY" | "MODEL_ARMOR"
        | "JAILBREAK" => FinishReason::Safety,
        _ => FinishReason::Refused,
    }
}

/// Returns true if the value gives a reason.
pub(crate) fn is_reason_given(word: &str) -> bool {
    !word.is_empty() && !word.ends_with("_UNSPECIFIED")
}
