//! Cuts a large result where the environment has no temporary folder to keep the whole in.

use jaato_types::files::{RESULT_CHARS_MAX, ResultCut, ResultKept};

/// A cut at a line's end must keep so much of the text.
const KEPT_PERCENT_MIN: usize = 80;

/// Cuts a text, at a line's end where that keeps most of it.
pub(in crate::environment) fn cut_result(cut: &ResultCut, text: String) -> ResultKept {
    let chars_max = cut.chars_max.unwrap_or(RESULT_CHARS_MAX).min(RESULT_CHARS_MAX);
    let bytes = text.len() as u64;
    let Some((end, _)) = text.char_indices().nth(chars_max) else {
        return ResultKept { text, bytes, ..ResultKept::default() };
    };
    let begin = &text[..end];
    let end = match begin.rfind('\n') {
        Some(line) if (line + 1) * 100 > end * KEPT_PERCENT_MIN => line + 1,
        Some(_) | None => end,
    };
    ResultKept { text: text[..end].to_owned(), bytes, is_cut: true, ..ResultKept::default() }
}
