//! Why a model stopped, in the vendor's words. Pure.

use jaato_plugin_sdk::types::FinishReason;

/// What a word means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The answer is one, whole or stopped.
    For(FinishReason),
    /// The model wrote what cannot be read; the next attempt may be better.
    Broken,
    /// The request is at fault, or what led to it: asked again it ends alike.
    Refused,
}

/// Reads the vendor's word. One that is not here goes to the session as it is.
pub(crate) fn of_word(word: &str) -> Ended {
    Ended::For(match word {
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
            return Ended::Broken;
        }
        "TOO_MANY_TOOL_CALLS" | "MISSING_THOUGHT_SIGNATURE" => return Ended::Refused,
        _ => FinishReason::Unknown,
    })
}

/// Reads the word for why a prompt was not even answered.
pub(crate) fn of_block(word: &str) -> FinishReason {
    match word {
        "SAFETY" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "IMAGE_SAFETY" | "MODEL_ARMOR"
        | "JAILBREAK" => FinishReason::Safety,
        _ => FinishReason::Refused,
    }
}

/// Tells whether a word says that something has ended, or was blocked.
pub(crate) fn is_given(word: &str) -> bool {
    !word.is_empty() && !word.ends_with("_UNSPECIFIED")
}
