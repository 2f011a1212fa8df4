//! Removes a plugin's keys from the names and notices that it passes on from its server.
//!
//! The model's own text and the arguments of its calls stay unchanged, because a user may ask a
//! model to write a key to a file.

use jaato_types::{Completion, Delta, ModelInfo, Part, ToolCall};

/// Cleans an answer: the ids and names of its tool calls, and its finish reason.
pub fn clean_completion(completion: &mut Completion, clean: impl Fn(&str) -> String) {
    if let Some(word) = &mut completion.finish_word {
        *word = clean(word);
    }
    for part in &mut completion.parts {
        if let Part::ToolCall(call) = part {
            clean_call(call, &clean);
        }
    }
}

/// Cleans the server's facts about a model.
pub fn clean_model(model: &mut ModelInfo, clean: impl Fn(&str) -> String) {
    let accepts = model.accepts.iter_mut().flatten();
    let texts = [&mut model.name, &mut model.title].into_iter().chain(accepts);
    for text in texts.chain(&mut model.asset) {
        *text = clean(text);
    }
}

/// Cleans a delta that precedes the answer.
pub(crate) fn clean_delta(delta: &mut Delta, clean: impl Fn(&str) -> String) {
    match delta {
        Delta::ToolCall(call) => clean_call(call, clean),
        Delta::Notice { text, .. } | Delta::Progress { label: text, .. } => *text = clean(text),
        Delta::Text { .. }
        | Delta::Thought { .. }
        | Delta::Output { .. }
        | Delta::FileChanged(_)
        | Delta::PlanChanged(_)
        | Delta::Alive
        | Delta::Unknown => {}
    }
}

fn clean_call(call: &mut ToolCall, clean: impl Fn(&str) -> String) {
    call.id = clean(call.id.as_str()).into();
    call.name = clean(call.name.as_str()).into();
}

#[cfg(test)]
mod tests {
    use jaato_types::FinishReason;
    use serde_json::json;

    use super::*;

    const KEY: &str = "sk-secret-0123456789";

    fn clean(text: &str) -> String {
        text.replace(KEY, "********")
    }

    fn test_call() -> ToolCall {
        serde_json::from_value(json!({
            "id": format!("call_{KEY}"), "name": KEY, "arguments": { "text": KEY }
        }))
        .unwrap()
    }

    #[test]
    fn keys_are_masked_in_server_names_but_not_in_model_text() {
        let mut completion = Completion {
            finish_word: Some(KEY.to_owned()),
            parts: vec![Part::text(KEY), Part::ToolCall(test_call())],
            ..Completion::new(Vec::new(), FinishReason::Unknown, Default::default())
        };
        clean_completion(&mut completion, clean);
        let made = serde_json::to_string(&completion).unwrap();
        assert_eq!(made.matches(KEY).count(), 2, "{made}");
        assert_eq!(made.matches("********").count(), 3, "{made}");

        let title = format!("{KEY} large");
        let mut model =
            ModelInfo { title, accepts: Some(vec![KEY.to_owned()]), ..ModelInfo::new(KEY) };
        clean_model(&mut model, clean);
        assert!(!serde_json::to_string(&model).unwrap().contains(KEY), "{model:?}");

        let mut deltas = [Delta::ToolCall(test_call()), Delta::notice(KEY), Delta::text(KEY)];
        deltas.iter_mut().for_each(|delta| clean_delta(delta, clean));
        let made = serde_json::to_string(&deltas).unwrap();
        assert_eq!(made.matches(KEY).count(), 2, "{made}");
    }
}
