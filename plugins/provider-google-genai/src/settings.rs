//! The settings of a request, with the vendor's names. Pure.
//!
//! The plugin refuses an option that a model does not support, because the user set it, and the
//! vendor's own error is less clear.

use jaato_plugin_sdk::serde::Serialize;
use jaato_plugin_sdk::serde_json::{Value, json};
use jaato_plugin_sdk::types::{CompletionRequest, Effort, ToolChoice};
use jaato_plugin_sdk::{Error, ErrorKind, Result};

use crate::facts::{GoogleModelFacts, GoogleThinking, SchemaConstraintSupport};
use crate::request_style::{GoogleRequestStyle, GoogleSchemaForm};
use crate::{openapi_subset, schema, thinking};

/// The request options that this provider supports.
pub const NAMES: [&str; 10] = [
    "max_output_tokens",
    "temperature",
    "stream",
    "effort",
    "tool_choice",
    "output_schema",
    "stop",
    "seed",
    "extra_body",
    "extra_headers",
];

/// The maximum number of stop sequences.
const STOPS_MAX: usize = 5;

/// The media type of an answer with a schema.
const JSON: &str = "application/json";

/// The field `generationConfig`. The field order is the order in the JSON.
#[derive(Debug, Default, PartialEq, Serialize)]
#[serde(crate = "jaato_plugin_sdk::serde", rename_all = "camelCase")]
pub(crate) struct GenerationConfig<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    stop_sequences: Vec<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_config: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_mime_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_json_schema: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_schema: Option<Value>,
}

impl<'a> GenerationConfig<'a> {
    /// Reads the settings from a request.
    ///
    /// # Errors
    /// `configuration` for an option that the model does not support.
    pub(crate) fn new(
        request: &'a CompletionRequest,
        facts: &GoogleModelFacts,
        habits: GoogleRequestStyle,
    ) -> Result<Self> {
        let options = &request.options;
        if facts.thinking == GoogleThinking::Unsaid
            && options.effort.is_some_and(is_thinking_effort)
        {
            return Err(unsupported_option_error(request, "effort"));
        }
        let held =
            options.output_schema.as_ref().filter(|_| enforces_answer_schema(request, facts));
        let held = held.map(schema::adapt_schema);
        let (json_schema, open_schema) = match (&held, habits.schemas) {
            (None, _) => (None, None),
            (Some(schema), GoogleSchemaForm::Json) => (Some(schema.clone()), None),
            (Some(schema), GoogleSchemaForm::Reduced) => {
                (None, Some(openapi_subset::reduce_schema(schema)))
            }
        };
        Ok(Self {
            temperature: options.temperature,
            max_output_tokens: options.max_output_tokens,
            stop_sequences: stop_sequences(request)?,
            // The vendor stores the seed as a signed 32-bit number.
            seed: options.seed.map(|seed| seed & u64::from(u32::MAX >> 1)),
            thinking_config: thinking::thinking_config(facts, options.effort, habits.thoughts),
            response_mime_type: held.is_some().then_some(JSON),
            response_json_schema: json_schema,
            response_schema: open_schema,
        })
    }

    /// Returns true if no setting is set.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Returns true if the vendor enforces the answer's schema. Otherwise the prompt asks the model to
/// follow it.
pub(crate) fn enforces_answer_schema(
    request: &CompletionRequest,
    facts: &GoogleModelFacts,
) -> bool {
    match facts.schemas {
        SchemaConstraintSupport::Never => false,
        SchemaConstraintSupport::WithoutTools => request.tools.is_empty(),
        SchemaConstraintSupport::Always => true,
    }
}

fn is_thinking_effort(effort: Effort) -> bool {
    !matches!(effort, Effort::None | Effort::Unknown)
}

fn stop_sequences(request: &CompletionRequest) -> Result<Vec<&str>> {
    let texts = request.options.stop.iter().map(String::as_str);
    let texts: Vec<&str> = texts.filter(|text| !text.is_empty()).collect();
    if texts.len() > STOPS_MAX {
        let text = format!(
            "too many stop sequences: the model accepts {STOPS_MAX}, found {}",
            texts.len()
        );
        return Err(Error::new(ErrorKind::Configuration, text));
    }
    Ok(texts)
}

/// Writes the field `toolConfig`. The vendor refuses a tool choice without tools.
pub(crate) fn tool_config(request: &CompletionRequest) -> Option<Value> {
    let choice = request.options.tool_choice.filter(|_| !request.tools.is_empty())?;
    let mode = match choice {
        ToolChoice::Auto => "AUTO",
        ToolChoice::Required => "ANY",
        ToolChoice::None => "NONE",
        ToolChoice::Unknown => return None,
    };
    Some(json!({ "functionCallingConfig": { "mode": mode } }))
}

fn unsupported_option_error(request: &CompletionRequest, option: &str) -> Error {
    let text = format!("the model `{}` does not accept the option `{option}`", request.model);
    Error::new(ErrorKind::Configuration, text).with_hint("leave it out, or use another model")
}
