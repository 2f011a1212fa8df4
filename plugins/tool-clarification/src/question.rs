//! A question from the model, its form field, and the answer in the tool result.

use jaato_plugin_sdk::form::{FieldKind, FieldOption, FormField};
use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::serde;

/// A question.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
#[serde(crate = "jaato_plugin_sdk::serde")]
pub struct ClarificationQuestion {
    text: String,
    #[serde(default)]
    question_type: QuestionType,
    #[serde(default)]
    choices: Vec<Choice>,
    #[serde(default = "is_required_by_default")]
    required: bool,
    /// From 1; 0 for none.
    #[serde(default)]
    default_choice: usize,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(crate = "jaato_plugin_sdk::serde", rename_all = "snake_case")]
enum QuestionType {
    #[default]
    SingleChoice,
    MultipleChoice,
    FreeText,
}

#[derive(Debug, serde::Serialize, serde::Deserialize)]
#[serde(crate = "jaato_plugin_sdk::serde", untagged)]
enum Choice {
    Plain(String),
    Named { text: String },
}

fn is_required_by_default() -> bool {
    true
}

impl Choice {
    fn choice_text(&self) -> &str {
        let (Self::Plain(text) | Self::Named { text }) = self;
        text
    }
}

impl ClarificationQuestion {
    /// Returns the question's type. Without choices it is free text.
    fn effective_type(&self) -> QuestionType {
        if self.choices.is_empty() { QuestionType::FreeText } else { self.question_type }
    }

    /// Creates the form field. Choices are named by their number, starting at 1.
    ///
    /// # Errors
    /// An error if the default is not one of the choices.
    pub fn to_form_field(&self, number: usize) -> Result<FormField> {
        let option = |(index, choice): (usize, &Choice)| FieldOption {
            value: (index + 1).to_string(),
            label: choice.choice_text().to_owned(),
            description: String::new(),
        };
        if self.default_choice > self.choices.len() {
            let count = self.choices.len();
            let text =
                format!("question {number}: `default_choice` is not one of its {count} choices");
            return Err(Error::new(ErrorKind::InvalidArguments, text)
                .with_hint("choices are numbered from 1"));
        }
        let default = (self.default_choice > 0).then(|| self.default_choice.to_string());
        let (kind, default) = match self.effective_type() {
            QuestionType::SingleChoice => (FieldKind::Choice, default.map(|it| json!(it))),
            QuestionType::MultipleChoice => (FieldKind::Several, default.map(|it| json!([it]))),
            QuestionType::FreeText => (FieldKind::Text, None),
        };
        Ok(FormField {
            name: number.to_string(),
            text: self.text.clone(),
            kind,
            options: match kind {
                FieldKind::Text => Vec::new(),
                _ => self.choices.iter().enumerate().map(option).collect(),
            },
            default,
            is_optional: !self.required,
        })
    }

    /// Returns the answer for the tool result.
    pub fn response_json(&self, value: Option<&Value>) -> Value {
        let number = |value: &Value| value.as_str()?.parse::<usize>().ok();
        let text = |number: usize| Some(self.choices.get(number.checked_sub(1)?)?.choice_text());
        match (self.effective_type(), value) {
            (_, None) => json!({ "skipped": true }),
            (QuestionType::FreeText, Some(value)) => json!({ "value": value, "type": "free_text" }),
            (QuestionType::SingleChoice, Some(value)) => {
                let selected = number(value);
                json!({
                    "selected": selected,
                    "text": selected.and_then(text),
                    "type": "single_choice",
                })
            }
            (QuestionType::MultipleChoice, Some(value)) => {
                let values = value.as_array().map(Vec::as_slice).unwrap_or_default();
                let selected: Vec<usize> = values.iter().filter_map(number).collect();
                let texts: Vec<&str> = selected.iter().filter_map(|&it| text(it)).collect();
                json!({ "selected": selected, "texts": texts, "type": "multiple_choice" })
            }
        }
    }
}
