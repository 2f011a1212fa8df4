//! `tool-clarification`: the model asks the user for information that it cannot find out itself.
//!
//! The model writes a [`ClarificationQuestion`], which becomes a field of a form. The host shows
//! the form and makes sure that each answer is one of the choices.
#![forbid(unsafe_code)]

mod question;

use jaato_plugin_sdk::form::{FormAnswer, FormOutcome, form};
use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::serde_json::Map;
use jaato_plugin_sdk::types::touches::KEYWORD as TOUCHES;

use question::ClarificationQuestion;

/// The maximum number of questions in one call. A form cannot have more fields.
const QUESTIONS_MAX: usize = 20;

/// Ask the user what you cannot find out yourself. Ask everything at once.
#[tool_fn(
    core,
    category = "communication",
    read_only,
    open_world = false,
    auto_approval,
    schema = json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "context": { "type": "string", TOUCHES: { "text": "a question to the user" }, "description": "Why you ask." },
            "questions": { "type": "array", "minItems": 1, "maxItems": QUESTIONS_MAX, "description": "At most 20.", "items": {
                "type": "object",
                "additionalProperties": false,
                "properties": {
                    "text": { "type": "string", TOUCHES: { "text": "a question to the user" }, "description": "The question." },
                    "question_type": {
                        "enum": ["single_choice", "multiple_choice", "free_text"],
                        "default": "single_choice",
                        "description": "Kind of answer.",
                    },
                    "choices": {
                        "type": "array",
                        "items": { "type": ["string", "object"] },
                        TOUCHES: { "text": "answers to choose from" },
                        "description": "The choices.",
                    },
                    "required": {
                        "type": "boolean",
                        "default": true,
                        "description": "Cannot be skipped.",
                    },
                    "default_choice": {
                        "type": "integer",
                        "minimum": 0,
                        "description": "Counts from 1; 0: none.",
                    },
                },
                "required": ["text"],
            } },
        },
        "required": ["context", "questions"],
    })
)]
async fn request_clarification(
    cx: &Cx<ClarificationPlugin>,
    context: String,
    questions: Vec<ClarificationQuestion>,
) -> Result<Output> {
    let mut asked = form(context);
    for (index, question) in questions.iter().enumerate() {
        asked = asked.field(question.to_form_field(index + 1)?);
    }
    let answer = cx.ask(&asked).await?;
    Ok(Output::json(answers_result(&questions, &answer)))
}

/// Returns the result that tells the model the user's answer.
fn answers_result(questions: &[ClarificationQuestion], answer: &FormAnswer) -> Value {
    let message = match answer.outcome {
        FormOutcome::Answered => {
            let response = |(index, question): (usize, &ClarificationQuestion)| {
                let number = (index + 1).to_string();
                let response = question.response_json(answer.values.get(&number));
                (number, response)
            };
            let responses: Map<String, Value> =
                questions.iter().enumerate().map(response).collect();
            return json!({ "responses": responses });
        }
        FormOutcome::Nobody => {
            let reason = answer.reason.as_deref().unwrap_or("no user is there");
            format!("No one can answer: {reason}. Decide yourself, and say what you assumed.")
        }
        _ => "User cancelled the clarification request.".to_owned(),
    };
    json!({ "cancelled": true, "message": message })
}

/// The plugin, which has no state.
pub struct ClarificationPlugin;

impl State for ClarificationPlugin {
    async fn create(_home: &Home, _saved: Option<Value>) -> Result<Self> {
        Ok(Self)
    }

    fn describe(description: &mut Description) {
        description.services = vec!["ask".to_owned()];
    }
}

export_plugin! { state: ClarificationPlugin, tools }
