//! Writes tool results as plain text, with a mark for failures, and truncates long ones.

use jaato_plugin_sdk::types::{Result, ToolResult};
use serde_json::{Map, Value};

use crate::tokenizer::ModelTokenizer;

/// The maximum number of tokens in one result. Two cores with AVX2 read them in ten seconds, at 69
/// tokens per second.
pub const RESULT_TOKENS_MAX: usize = 700;

/// After this many failed calls in a row, the model must say what failed.
pub const FAILURES_MAX: usize = 4;

/// Returns true if a call failed: with an error, or for a command, by its return code.
pub fn is_failed_result(result: &ToolResult) -> bool {
    let content = &result.content;
    let is_refused = content.get("success") == Some(&Value::Bool(false));
    result.is_error
        || failed_return_code(content).is_some()
        || is_refused
        || content.contains_key("error")
}

/// Returns a result as text.
pub(super) fn plain_result_text(result: &ToolResult) -> String {
    let text = content_text(&result.content);
    match failed_return_code(&result.content) {
        // A failed command without output shows its return code.
        Some(code) if text.is_empty() => format!("return code {code}"),
        None if text.is_empty() => "(no output)".to_owned(),
        _ => text,
    }
}

fn failed_return_code(content: &Map<String, Value>) -> Option<&Value> {
    content.get("returncode").filter(|code| code.as_i64() != Some(0))
}

/// Writes text fields unchanged, and other fields with their names. The return code is only a mark.
fn content_text(content: &Map<String, Value>) -> String {
    let mut lines = Vec::new();
    for (name, value) in content.iter().filter(|(name, _)| *name != "returncode") {
        match (name.as_str(), value) {
            (_, Value::Null) => {}
            (_, Value::String(text)) if text.trim().is_empty() => {}
            ("stdout" | "stderr" | "result" | "message" | "hint", Value::String(text)) => {
                lines.push(text.trim_end().to_owned());
            }
            ("error", Value::Object(error)) => {
                let texts = ["message", "hint"].map(|name| error.get(name).and_then(Value::as_str));
                lines.extend(texts.into_iter().flatten().map(str::to_owned));
            }
            (_, Value::String(text)) => lines.push(format!("{name}: {}", text.trim_end())),
            _ => lines.push(format!("{name}: {value}")),
        }
    }
    lines.join("\n")
}

/// Removes the middle of a long text and adds a note.
pub(super) fn truncate_middle(text: &str, tokenizer: &ModelTokenizer) -> Result<String> {
    let tokens = tokenizer.encode_plain(text)?;
    if tokens.len() <= RESULT_TOKENS_MAX {
        return Ok(text.to_owned());
    }
    let (head, tail) = (RESULT_TOKENS_MAX * 2 / 3, RESULT_TOKENS_MAX / 3);
    let spelled = |tokens: &[u32]| {
        let bytes: Vec<u8> =
            tokens.iter().flat_map(|token| tokenizer.token_bytes(*token)).copied().collect();
        // Remove half characters at the cut.
        String::from_utf8_lossy(&bytes).trim_matches(char::REPLACEMENT_CHARACTER).to_owned()
    };
    let (head, tail) = (spelled(&tokens[..head]), spelled(&tokens[tokens.len() - tail..]));
    Ok(format!("{head}\n[the middle of {} lines is left out]\n{tail}", text.lines().count()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check_result_text(content: Value, is_error: bool, expected: (&str, bool)) {
        let content = content.as_object().unwrap().clone();
        let result = ToolResult { content, is_error, ..ToolResult::default() };
        assert_eq!((plain_result_text(&result).as_str(), is_failed_result(&result)), expected);
    }

    #[test]
    fn a_result_is_its_text_and_a_failed_call_is_marked() {
        let shell = |stdout: &str, stderr: &str, code: Value| json!({"stdout": stdout, "stderr": stderr, "returncode": code});
        check_result_text(shell("a\n", "", json!(0)), false, ("a", false));
        check_result_text(shell("a\n", "b\n", json!(2)), false, ("a\nb", true));
        check_result_text(shell("", "", json!(0)), false, ("(no output)", false));
        check_result_text(shell("", "", json!(1)), false, ("return code 1", true));
        check_result_text(shell("", "", Value::Null), false, ("return code null", true));
        check_result_text(json!({"result": "text\n"}), false, ("text", false));
        check_result_text(
            json!({"success": true, "path": "a"}),
            false,
            ("success: true\npath: a", false),
        );
        check_result_text(json!({"success": false}), false, ("success: false", true));
        let error = json!({"error": {"kind": "tool", "message": "no file", "hint": "look"}});
        check_result_text(error, true, ("no file\nlook", true));
        check_result_text(json!({"n": 1, "of": [2]}), false, ("n: 1\nof: [2]", false));
        check_result_text(json!({}), true, ("(no output)", true));
    }
}
