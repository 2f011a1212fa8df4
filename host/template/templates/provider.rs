//! `template-name`: a model that repeats the user's message.
#![forbid(unsafe_code)]
use jaato_plugin_sdk::prelude::*;

struct TemplateName;

impl Provider for TemplateName {
    type State = ();

    fn spec() -> ProviderSpec {
        ProviderSpec {
            name: "template-short".to_owned(),
            title: "repeats the user's message".to_owned(),
            default_model: "echo".to_owned(),
            models: vec![ModelInfo {
                title: "for trying out".to_owned(),
                ..ModelInfo::new("echo")
            }],
            ..ProviderSpec::default()
        }
    }

    async fn complete(cx: &Cx, request: CompletionRequest) -> Result<Completion> {
        let text = answer(&request.messages);
        cx.emit(&Delta::text(text.clone()));
        Ok(Completion::new(
            vec![Part::text(text)],
            FinishReason::Stop,
            Usage::default(),
        ))
    }
}

export_plugin! { state: (), provider: TemplateName }

/// A real provider maps the whole request to its server's form and asks that.
fn answer(messages: &[Message]) -> String {
    messages.last().map(Message::text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_message_is_answered() {
        assert_eq!(answer(&[Message::user("a"), Message::user("b")]), "b");
        assert_eq!(answer(&[]), "");
    }
}
