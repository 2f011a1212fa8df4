//! A question and its answer as JSON, in the form that the original's webhooks and folders have.

use jaato_session::{Answer, Clock as _, Question, Scope, SystemClock};
use serde::Deserialize;
use serde_json::{Value, json};

/// Longest comment, in bytes: the model reads it.
const COMMENT_BYTES_MAX: usize = 16 * 1024;

/// Largest answer, in bytes.
pub const ANSWER_BYTES_MAX: u64 = 64 * 1024;

/// What can be answered: short, in full, what it means, and the decision's name.
const OPTIONS: [(&str, &str, &str, &str); 8] = [
    ("y", "yes", "Allow this call", "allow"),
    ("t", "turn", "Allow such calls for this turn", "allow_turn"),
    ("a", "always", "Allow such calls in this session", "allow_session"),
    ("p", "permanently", "Allow such calls for good", "allow_always"),
    ("n", "no", "Deny this call", "deny"),
    ("never", "never", "Deny such calls in this session", "deny_session"),
    ("c", "comment", "Deny with a comment for the model", "comment"),
    ("e", "edit", "Change the arguments and ask again", "edit"),
];

/// Makes the id of a question, which nobody can know before: a random UUID.
///
/// # Errors
/// When the system has no chance to give.
pub fn new_id() -> Result<String, String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| error.to_string())?;
    (bytes[6], bytes[8]) = (bytes[6] & 0x0f | 0x40, bytes[8] & 0x3f | 0x80);
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let groups = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]];
    Ok(groups.join("-"))
}

/// Returns this moment as text: RFC 3339 in UTC.
pub fn now() -> String {
    jaato_store::rfc3339(SystemClock::new().wall_ms())
}

/// Writes a question.
pub fn request(question: &Question<'_>, id: &str, now: &str) -> Value {
    let holds = !question.patterns.is_empty();
    let options = OPTIONS.into_iter().filter(|(_, _, _, decision)| {
        holds || !matches!(*decision, "allow_turn" | "allow_session" | "allow_always")
    });
    let options: Vec<Value> = options
        .map(|(short, full, description, decision)| {
            json!({
                "short": short, "full": full, "description": description, "decision": decision,
            })
        })
        .collect();
    let agent_type = if question.agent.is_some() { "subagent" } else { "main" };
    json!({
        "request_id": id,
        "timestamp": now,
        "tool_name": question.call.name,
        "arguments": question.call.arguments,
        "timeout_seconds": question.patience_ms.map(|ms| ms.div_ceil(1_000)),
        "default_on_timeout": "deny",
        "was_edited": question.was_edited,
        "context": {
            "session_id": question.session,
            "call_id": question.call.id,
            "plugin": question.tool.plugin,
            "called_by": question.by,
            "agent_type": agent_type,
            "agent_name": question.agent,
            "why": question.why,
            "times": question.times,
            "patterns": question.patterns,
            "commands": question.reading.commands,
            "risks": question.reading.risks,
            "hosts": question.reading.hosts,
            "display_info": question.preview,
        },
        "response_options": options,
    })
}

/// An answer as it comes. What it does not say has no effect.
#[derive(Deserialize)]
struct Response {
    request_id: Option<String>,
    decision: String,
    reason: Option<String>,
    #[serde(default)]
    remember: bool,
    remember_pattern: Option<String>,
    expires_at: Option<Value>,
    arguments: Option<Value>,
}

/// Reads an answer to a question.
///
/// # Errors
/// Says what is wrong with it, and nothing of it.
pub fn answer(bytes: &[u8], id: &str, patterns: &[String]) -> Result<Answer, String> {
    let response: Response = serde_json::from_slice(bytes)
        .map_err(|_| "the answer is no JSON object with a text `decision`".to_owned())?;
    if response.request_id.as_ref().is_some_and(|named| named != id) {
        return Err("the answer is for another question".to_owned());
    }
    let pattern = match &response.remember_pattern {
        None => None,
        Some(text) => match patterns.iter().position(|offered| offered == text) {
            Some(index) => Some(index),
            None => return Err("`remember_pattern` is none that was offered".to_owned()),
        },
    };
    let comment = response.reason.filter(|reason| !reason.trim().is_empty());
    if comment.as_ref().is_some_and(|comment| comment.len() > COMMENT_BYTES_MAX) {
        return Err(format!("`reason` has more than {COMMENT_BYTES_MAX} bytes"));
    }
    let like = |scope| match scope {
        // What is to end at some moment is not remembered: nothing here would end it.
        Scope::Turn | Scope::Session | Scope::Always if response.expires_at.is_none() => {
            Answer::AllowLike { scope, pattern: pattern.unwrap_or(0) }
        }
        Scope::Once | Scope::Turn | Scope::Session | Scope::Always => Answer::AllowOnce,
    };
    Ok(match response.decision.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" | "allow" if response.remember => like(Scope::Session),
        "y" | "yes" | "allow" | "once" | "allow_once" => Answer::AllowOnce,
        "t" | "turn" | "allow_turn" => like(Scope::Turn),
        "a" | "always" | "allow_session" => like(Scope::Session),
        "p" | "permanently" | "allow_always" => like(Scope::Always),
        "n" | "no" | "deny" if response.remember => {
            Answer::DenyLike { scope: Scope::Session, pattern, comment }
        }
        "n" | "no" | "deny" | "c" | "comment" => Answer::Deny { comment },
        "never" | "deny_session" => Answer::DenyLike { scope: Scope::Session, pattern, comment },
        "deny_always" => Answer::DenyLike { scope: Scope::Always, pattern, comment },
        "e" | "edit" => match response.arguments {
            Some(arguments) => Answer::Edit { arguments },
            None => return Err("`edit` comes with `arguments`".to_owned()),
        },
        _ => return Err("`decision` is none that is known".to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(response: Value, expected: Result<Answer, &str>) {
        let patterns = ["exactly this call of `x`".to_owned(), "every call of `x`".to_owned()];
        let bytes = response.to_string();
        assert_eq!(
            answer(bytes.as_bytes(), "1", &patterns),
            expected.map_err(str::to_owned),
            "{response}"
        );
    }

    fn like(scope: Scope, pattern: usize) -> Result<Answer, &'static str> {
        Ok(Answer::AllowLike { scope, pattern })
    }

    #[test]
    fn the_words_of_the_original_mean_what_they_meant() {
        for word in ["allow", "YES", "y", "once", "allow_once"] {
            check(json!({ "decision": word }), Ok(Answer::AllowOnce));
        }
        for word in ["deny", "no", "n", "c"] {
            let comment = Some("not now".to_owned());
            let response = json!({ "decision": word, "reason": "not now" });
            check(response, Ok(Answer::Deny { comment }));
        }
        check(json!({ "decision": "t" }), like(Scope::Turn, 0));
        check(json!({ "decision": "allow_session" }), like(Scope::Session, 0));
        let wide = "every call of `x`";
        let response = json!({ "decision": "allow", "remember": true, "remember_pattern": wide });
        check(response, like(Scope::Session, 1));
        let never = Answer::DenyLike { scope: Scope::Session, pattern: None, comment: None };
        check(json!({ "decision": "never" }), Ok(never));
        let edited = Answer::Edit { arguments: json!({ "a": 1 }) };
        check(json!({ "decision": "edit", "arguments": { "a": 1 } }), Ok(edited));
    }

    #[test]
    fn what_should_end_at_some_time_holds_once() {
        let expires_at = "2020-01-01T00:00:00Z";
        let response = json!({ "decision": "allow_session", "expires_at": expires_at });
        check(response, Ok(Answer::AllowOnce));
    }

    #[test]
    fn what_is_no_answer_is_one_to_nothing() {
        check(json!([]), Err("the answer is no JSON object with a text `decision`"));
        check(json!({ "decision": "all" }), Err("`decision` is none that is known"));
        check(json!({ "decision": "" }), Err("`decision` is none that is known"));
        check(json!({ "decision": "edit" }), Err("`edit` comes with `arguments`"));
        let response = json!({ "decision": "allow", "request_id": "2" });
        check(response, Err("the answer is for another question"));
        let response =
            json!({ "decision": "allow", "remember": true, "remember_pattern": "git *" });
        check(response, Err("`remember_pattern` is none that was offered"));
        let long = "x".repeat(COMMENT_BYTES_MAX + 1);
        check(
            json!({ "decision": "n", "reason": long }),
            Err("`reason` has more than 16384 bytes"),
        );
    }
}
