//! A permission prompt and its answer as JSON, in the format of the original's webhooks and
//! folders.

use jaato_session::{SessionClock as _, SystemClock};
use jaato_types::SessionId;
use jaato_types::permission_prompt::{
    AllowedAnswer, PermissionAnswer, PermissionDecision, PermissionPrompt,
};
use serde::Deserialize;
use serde_json::{Value, json};

/// Longest comment, in bytes. The model reads it.
const COMMENT_BYTES_MAX: usize = 16 * 1024;

/// Largest answer, in bytes.
pub const ANSWER_BYTES_MAX: u64 = 64 * 1024;

/// Creates the unpredictable id of a question: a random UUID.
///
/// # Errors
/// If the system has no random bytes.
pub fn new_prompt_id() -> Result<String, String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| error.to_string())?;
    (bytes[6], bytes[8]) = (bytes[6] & 0x0f | 0x40, bytes[8] & 0x3f | 0x80);
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let groups = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]];
    Ok(groups.join("-"))
}

/// Returns the current time as RFC 3339 in UTC.
pub fn current_timestamp() -> String {
    jaato_store::format_rfc3339(SystemClock::new().wall_ms())
}

/// Returns a prompt as JSON.
pub fn prompt_json(
    (session, prompt): (&SessionId, &PermissionPrompt),
    id: &str,
    now: &str,
) -> Value {
    let agent_name = (!prompt.agent_name.is_empty()).then_some(&prompt.agent_name);
    json!({
        "request_id": id,
        "timestamp": now,
        "tool_name": prompt.tool,
        "arguments": prompt.arguments,
        "timeout_seconds": prompt.patience_ms.map(|ms| ms.div_ceil(1_000)),
        "default_on_timeout": "deny",
        "was_edited": prompt.was_edited,
        "title": prompt.title,
        "warning": prompt.warning,
        "context": {
            "session_id": session,
            "call_id": prompt.call_id,
            "plugin": prompt.plugin,
            "called_by": prompt.called_by,
            "agent_type": prompt.agent_type,
            "agent_name": agent_name,
            "why": prompt.why,
            "times": prompt.times,
            "patterns": prompt.patterns,
            "commands": prompt.commands,
            "risks": prompt.risks,
            "hosts": prompt.hosts,
            "display_info": prompt.preview,
        },
        "response_options": response_options(prompt),
    })
}

/// Lists the allowed answers as the original does: short and full name, description, and the
/// decision to send back. Comment and edit are always offered.
fn response_options(prompt: &PermissionPrompt) -> Vec<Value> {
    let option = |(number, answer): (usize, &AllowedAnswer)| {
        let pattern = answer.pattern.and_then(|index| prompt.patterns.get(index));
        let mut option = json!({
            "short": number.to_string(), "full": answer.label, "description": answer.label,
            "decision": decision_word(answer.decision),
        });
        if let Some(pattern) = pattern {
            option["remember_pattern"] = pattern.as_str().into();
        }
        if let Some(mode) = &answer.mode {
            option["mode"] = mode.as_str().into();
        }
        option
    };
    let mut options: Vec<Value> = (1..).zip(&prompt.answers).map(option).collect();
    options.extend([
        json!({
            "short": "c", "full": "comment", "description": "Deny with a comment for the model",
            "decision": "comment",
        }),
        json!({
            "short": "e", "full": "edit", "description": "Change the arguments and ask again",
            "decision": "edit",
        }),
    ]);
    options
}

/// The original's word for a decision.
fn decision_word(decision: PermissionDecision) -> &'static str {
    use PermissionDecision as Is;
    match decision {
        Is::AllowOnce => "allow",
        Is::AllowInTurn => "allow_turn",
        Is::AllowInSession => "allow_session",
        Is::AllowAlways => "allow_always",
        Is::Deny => "deny",
        Is::DenyInTurn => "deny_turn",
        Is::DenyInSession => "deny_session",
        Is::DenyAlways => "deny_always",
        Is::Edit => "edit",
    }
}

/// A received answer. Missing fields have no effect.
#[derive(Deserialize)]
struct ChannelResponse {
    request_id: Option<String>,
    decision: String,
    reason: Option<String>,
    #[serde(default)]
    remember: bool,
    remember_pattern: Option<String>,
    mode: Option<String>,
    expires_at: Option<Value>,
    arguments: Option<Value>,
}

impl ChannelResponse {
    /// Returns true if the answer has expired. A time that jaato cannot read counts as past.
    fn is_expired(&self) -> bool {
        let Some(expires_at) = &self.expires_at else { return false };
        let moment = match expires_at {
            Value::String(text) => jaato_store::parse_rfc3339(text),
            Value::Number(seconds) => seconds.as_f64().map(|seconds| (seconds * 1e3) as i64),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
        };
        let now = i64::try_from(SystemClock::new().wall_ms()).unwrap_or(i64::MAX);
        moment.is_none_or(|moment| moment <= now)
    }
}

/// Reads an answer to a prompt.
///
/// # Errors
/// What is wrong with the answer, without quoting it.
pub fn parse_answer(
    bytes: &[u8],
    id: &str,
    prompt: &PermissionPrompt,
) -> Result<PermissionAnswer, String> {
    let response: ChannelResponse = serde_json::from_slice(bytes)
        .map_err(|_| "the answer is not a JSON object with a text `decision`".to_owned())?;
    if response.request_id.as_ref().is_some_and(|named| named != id) {
        return Err("the answer is for another prompt".to_owned());
    }
    if response.is_expired() {
        return Ok(PermissionAnswer::once(PermissionDecision::Deny));
    }
    let mut pattern = match &response.remember_pattern {
        None => None,
        Some(text) => match prompt.patterns.iter().position(|offered| offered == text) {
            Some(index) => Some(index),
            None => return Err("`remember_pattern` is not one of the offered patterns".to_owned()),
        },
    };
    let comment = response.reason.filter(|reason| !reason.trim().is_empty());
    if comment.as_ref().is_some_and(|comment| comment.len() > COMMENT_BYTES_MAX) {
        return Err(format!("`reason` has more than {COMMENT_BYTES_MAX} bytes"));
    }
    let decision = response.decision.trim().to_ascii_lowercase();
    let mut decision = parse_decision(&decision, response.remember)
        .ok_or_else(|| "`decision` is not a known value".to_owned())?;
    // jaato cannot end a remembered decision at a set time, so it does not remember this one.
    if decision.can_run() && response.expires_at.is_some() {
        decision = PermissionDecision::AllowOnce;
    }
    if decision.is_for_one_call() {
        pattern = None;
    }
    let arguments = response.arguments.filter(|_| decision == PermissionDecision::Edit);
    if decision == PermissionDecision::Edit && arguments.is_none() {
        return Err("`edit` requires `arguments`".to_owned());
    }
    let answer = PermissionAnswer {
        pattern,
        mode: response.mode,
        comment,
        arguments,
        ..PermissionAnswer::once(decision)
    };
    match prompt.is_allowed(&answer) {
        true => Ok(answer),
        false => Err("the prompt does not allow this answer".to_owned()),
    }
}

/// Reads the original's word for a decision.
fn parse_decision(word: &str, remember: bool) -> Option<PermissionDecision> {
    use PermissionDecision as Is;
    Some(match word {
        "y" | "yes" | "allow" if remember => Is::AllowInSession,
        "y" | "yes" | "allow" | "once" | "allow_once" => Is::AllowOnce,
        "t" | "turn" | "allow_turn" => Is::AllowInTurn,
        "a" | "always" | "allow_session" => Is::AllowInSession,
        "p" | "permanently" | "allow_always" => Is::AllowAlways,
        "n" | "no" | "deny" if remember => Is::DenyInSession,
        "n" | "no" | "deny" | "c" | "comment" => Is::Deny,
        "deny_turn" => Is::DenyInTurn,
        "never" | "deny_session" => Is::DenyInSession,
        "deny_always" => Is::DenyAlways,
        "e" | "edit" => Is::Edit,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use PermissionDecision as Is;

    use super::*;

    fn sample_prompt() -> PermissionPrompt {
        let mut prompt = PermissionPrompt::default();
        prompt.patterns = ["exactly `x`".to_owned(), "any `x`".to_owned()].into();
        prompt.answers = vec![
            AllowedAnswer::once(Is::AllowOnce, "Yes"),
            AllowedAnswer::for_pattern(Is::AllowInSession, 1, "Yes, in this session"),
        ];
        prompt
    }

    #[track_caller]
    fn check_parsed_answer(response: Value, expected: Result<PermissionAnswer, &str>) {
        let bytes = response.to_string();
        assert_eq!(
            parse_answer(bytes.as_bytes(), "1", &sample_prompt()),
            expected.map_err(str::to_owned),
            "{response}"
        );
    }

    fn answer_for_pattern(
        decision: Is,
        pattern: Option<usize>,
    ) -> Result<PermissionAnswer, &'static str> {
        Ok(PermissionAnswer { pattern, ..PermissionAnswer::once(decision) })
    }

    #[test]
    fn decision_words_of_the_wire_format_are_understood() {
        for word in ["allow", "YES", "y", "once", "allow_once"] {
            check_parsed_answer(
                json!({ "decision": word }),
                answer_for_pattern(Is::AllowOnce, None),
            );
        }
        for word in ["deny", "no", "n", "c"] {
            let comment = Some("not now".to_owned());
            let response = json!({ "decision": word, "reason": "not now" });
            let denied = PermissionAnswer { comment, ..PermissionAnswer::once(Is::Deny) };
            check_parsed_answer(response, Ok(denied));
        }
        check_parsed_answer(json!({ "decision": "t" }), answer_for_pattern(Is::AllowInTurn, None));
        check_parsed_answer(
            json!({ "decision": "allow_session" }),
            answer_for_pattern(Is::AllowInSession, None),
        );
        let wide = "any `x`";
        let response = json!({ "decision": "allow", "remember": true, "remember_pattern": wide });
        check_parsed_answer(response, answer_for_pattern(Is::AllowInSession, Some(1)));
        check_parsed_answer(
            json!({ "decision": "never" }),
            answer_for_pattern(Is::DenyInSession, None),
        );
        let arguments = Some(json!({ "a": 1 }));
        let edited = PermissionAnswer { arguments, ..PermissionAnswer::once(Is::Edit) };
        check_parsed_answer(json!({ "decision": "edit", "arguments": { "a": 1 } }), Ok(edited));
    }

    #[test]
    fn answer_with_a_future_expiry_applies_only_once() {
        for expires_at in [json!("9999-01-01T00:00:00Z"), json!("9998-12-31"), json!(1e11)] {
            let response = json!({ "decision": "allow_session", "expires_at": expires_at });
            check_parsed_answer(response, answer_for_pattern(Is::AllowOnce, None));
        }
        let without_end = json!({ "decision": "allow", "expires_at": null });
        check_parsed_answer(without_end, answer_for_pattern(Is::AllowOnce, None));
    }

    #[test]
    fn an_expired_answer_denies() {
        for expires_at in [
            json!("2001-01-01T00:00:00Z"),
            json!("2001-01-01T00:00:00.123456"),
            json!("2001-01-01 00:00:00+02:00"),
            json!("2001-01-01"),
            json!(978_307_200),
            json!(0),
            json!(-1.5),
            json!("soon"),
            json!(""),
            json!(true),
            json!({}),
        ] {
            for decision in ["allow", "y", "allow_session", "allow_always", "deny", "edit"] {
                let response = json!({ "decision": decision, "expires_at": expires_at });
                check_parsed_answer(response, answer_for_pattern(Is::Deny, None));
            }
        }
    }

    #[test]
    fn an_answer_that_was_not_offered_is_refused() {
        let refused = Err("the prompt does not allow this answer");
        check_parsed_answer(json!({ "decision": "allow_always" }), refused.clone());
        check_parsed_answer(json!({ "decision": "allow", "mode": "accept-edits" }), refused);
    }

    #[test]
    fn invalid_channel_response_is_refused_with_the_reason() {
        check_parsed_answer(
            json!([]),
            Err("the answer is not a JSON object with a text `decision`"),
        );
        check_parsed_answer(json!({ "decision": "all" }), Err("`decision` is not a known value"));
        check_parsed_answer(json!({ "decision": "" }), Err("`decision` is not a known value"));
        check_parsed_answer(json!({ "decision": "edit" }), Err("`edit` requires `arguments`"));
        let response = json!({ "decision": "allow", "request_id": "2" });
        check_parsed_answer(response, Err("the answer is for another prompt"));
        let response =
            json!({ "decision": "allow", "remember": true, "remember_pattern": "git *" });
        check_parsed_answer(response, Err("`remember_pattern` is not one of the offered patterns"));
        let long = "x".repeat(COMMENT_BYTES_MAX + 1);
        check_parsed_answer(
            json!({ "decision": "n", "reason": long }),
            Err("`reason` has more than 16384 bytes"),
        );
    }
}
