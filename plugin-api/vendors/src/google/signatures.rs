//! Signatures: signed parts must come back unchanged.

use parking_lot::Mutex;
use serde_json::{Value, json};

use super::contents::CheckedContent;
use super::models::FakeGoogleModel;
use super::{GoogleCheckResult, invalid_request};

/// The placeholder for a missing signature.
const SKIPS: &str = "skip_thought_signature_validator";

/// The issued signatures.
#[derive(Debug, Default)]
pub(super) struct IssuedSignatures {
    issued: Mutex<Vec<IssuedSignature>>,
}

#[derive(Debug)]
struct IssuedSignature {
    signature: String,
    model: &'static str,
    /// The part without the signature.
    part: Value,
}

impl IssuedSignatures {
    /// Signs an answer: its first call, or else its last part. In a stream, that part is an empty
    /// text.
    pub(super) fn sign_parts(
        &self,
        parts: &mut Vec<Value>,
        model: &FakeGoogleModel,
        streams: bool,
    ) {
        let is_text = |part: &Value| part.get("text").is_some();
        let first_call = parts.iter().position(|part| part.get("functionCall").is_some());
        if first_call.is_none() && (streams || !parts.last().is_some_and(is_text)) {
            parts.push(json!({ "text": "" }));
        }
        let place = first_call.unwrap_or(parts.len() - 1);
        let mut issued = self.issued.lock();
        // Base64, like all bytes in JSON.
        let signature = format!("c2ln{:04}", issued.len());
        let part = without_signature(&parts[place]);
        let name = super::models::find_model(model.name).map_or("", |known| known.name);
        parts[place]["thoughtSignature"] = json!(signature);
        issued.push(IssuedSignature { signature, model: name, part });
    }

    /// Checks the signatures that came back.
    pub(super) fn check_signatures(
        &self,
        contents: &[CheckedContent<'_>],
        model: &FakeGoogleModel,
    ) -> GoogleCheckResult {
        let issued = self.issued.lock();
        for part in contents.iter().flat_map(|content| &content.parts) {
            let Some(signature) = part.get("thoughtSignature") else { continue };
            let is_it = |known: &IssuedSignature| {
                known.signature == *signature
                    && known.model == model.name
                    && known.part == without_signature(part)
            };
            if signature != SKIPS && !issued.iter().any(is_it) {
                return Err(invalid_request("Corrupted thought signature."));
            }
        }
        if !model.should_check_signatures() {
            return Ok(());
        }
        let begin = contents.iter().rposition(CheckedContent::is_prompt).unwrap_or(0);
        for (index, content) in contents.iter().enumerate().skip(begin) {
            let first = content.parts.iter().find(|part| part.get("functionCall").is_some());
            if let Some(call) = first.filter(|call| call.get("thoughtSignature").is_none()) {
                let name = &call["functionCall"]["name"];
                return Err(invalid_request(format!(
                    "Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing thought_signature may lead to degraded model performance. Additional data, function call {name}, position {index}."
                )));
            }
        }
        Ok(())
    }
}

fn without_signature(part: &Value) -> Value {
    let mut plain = part.clone();
    if let Some(fields) = plain.as_object_mut() {
        fields.shift_remove("thoughtSignature");
    }
    plain
}
