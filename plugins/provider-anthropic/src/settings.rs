//! The settings of a request, with the vendor's names. Pure.
//!
//! The plugin refuses an option that a model does not support. If it dropped the option silently,
//! the setting would have no effect.

use jaato_plugin_sdk::serde::Serialize;
use jaato_plugin_sdk::serde_json::{Value, json};
use jaato_plugin_sdk::types::{CompletionRequest, Effort, TOOLS_CHANGED, ToolChoice};
use jaato_plugin_sdk::{Error, ErrorKind, Result};

use crate::facts::{AnthropicModelFacts, AnthropicThinking};
use crate::{schema, thinking};

/// The request options that this provider supports.
pub const NAMES: [&str; 11] = [
    "max_output_tokens",
    "temperature",
    "stream",
    "effort",
    "tool_choice",
    "output_schema",
    "stop",
    "service_tier",
    "extra_body",
    "extra_headers",
    TOOLS_CHANGED,
];

/// The default output limit in tokens. It is enough for any answer, and limits the cost if a model
/// does not stop.
const TOKENS_BY_DEFAULT: u32 = 64_000;

/// The default limit for an answer that is not streamed. The vendor expects 128,000 tokens to take
/// an hour, and connections without data for ten minutes break.
const TOKENS_AT_ONCE: u32 = 21_333;

/// The temperature that has the same effect as none.
const NEUTRAL: f32 = 1.0;

/// The settings of a body. The field order is the order in the JSON.
#[derive(Serialize)]
#[serde(crate = "jaato_plugin_sdk::serde")]
pub(crate) struct AnthropicBodySettings<'a> {
    max_tokens: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    stop_sequences: Vec<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    service_tier: Option<&'a str>,
    /// Beta headers that the settings need.
    #[serde(skip)]
    pub(crate) betas: Vec<&'static str>,
}

impl<'a> AnthropicBodySettings<'a> {
    /// Reads the settings from a request. `effort` comes from the options, and is `Effort::None` if
    /// the model must not think.
    ///
    /// # Errors
    /// `configuration` for an option that the model does not support.
    pub(crate) fn new(
        request: &'a CompletionRequest,
        facts: &AnthropicModelFacts,
        effort: Option<Effort>,
    ) -> Result<Self> {
        let options = &request.options;
        let max_tokens = max_tokens(request, facts);
        let spoken = thinking::thinking_settings(facts, effort, max_tokens);
        if facts.thinking == AnthropicThinking::Never && effort.is_some_and(is_thinking_effort) {
            return Err(unsupported_option_error(request, "effort"));
        }
        let mut output_config = json!({});
        if let Some(effort) = spoken.effort {
            output_config["effort"] = json!(effort);
        }
        if let Some(schema) = &options.output_schema {
            let schema = schema::adapt_schema(schema);
            output_config["format"] = json!({ "type": "json_schema", "schema": schema });
        }
        let has_config = output_config.as_object().is_some_and(|config| !config.is_empty());
        Ok(Self {
            max_tokens,
            temperature: write_temperature(request, facts, spoken.is_on)?,
            stop_sequences: stop_sequences(request)?,
            tool_choice: tool_choice(request, facts, spoken.is_on)?,
            thinking: spoken.thinking,
            output_config: has_config.then_some(output_config),
            service_tier: options.service_tier.as_deref(),
            betas: spoken.betas,
        })
    }
}

fn is_thinking_effort(effort: Effort) -> bool {
    !matches!(effort, Effort::None | Effort::Unknown)
}

fn max_tokens(request: &CompletionRequest, facts: &AnthropicModelFacts) -> u32 {
    let by_default =
        if request.options.stream == Some(false) { TOKENS_AT_ONCE } else { TOKENS_BY_DEFAULT };
    match request.options.max_output_tokens {
        None => by_default.min(facts.output_tokens_max),
        Some(asked) if facts.is_known() => asked.clamp(1, facts.output_tokens_max),
        // Only the server knows the limit of other vendors' models.
        Some(asked) => asked.max(1),
    }
}

fn write_temperature(
    request: &CompletionRequest,
    facts: &AnthropicModelFacts,
    thinks: bool,
) -> Result<Option<f32>> {
    match request.options.temperature {
        // This is the model's default.
        Some(NEUTRAL) | None => Ok(None),
        Some(_) if !facts.samples => Err(unsupported_option_error(request, "temperature")),
        Some(_) if thinks => Err(option_with_thinking_error(request, "temperature")),
        temperature => Ok(temperature),
    }
}

fn stop_sequences(request: &CompletionRequest) -> Result<Vec<&str>> {
    let texts = request.options.stop.iter().map(String::as_str);
    let texts: Vec<&str> = texts.filter(|text| !text.is_empty()).collect();
    if texts.iter().any(|text| text.trim().is_empty()) {
        let text = "the server does not accept a stop sequence of only whitespace";
        return Err(Error::new(ErrorKind::Configuration, text));
    }
    Ok(texts)
}

fn tool_choice(
    request: &CompletionRequest,
    facts: &AnthropicModelFacts,
    thinks: bool,
) -> Result<Option<Value>> {
    // Servers refuse a tool choice without tools.
    let choice = request.options.tool_choice.filter(|_| !request.tools.is_empty());
    let word = match choice {
        None | Some(ToolChoice::Unknown) => return Ok(None),
        Some(ToolChoice::Auto) => "auto",
        Some(ToolChoice::None) => "none",
        Some(ToolChoice::Required) if !facts.can_be_forced => {
            return Err(unsupported_option_error(request, "tool_choice = \"required\""));
        }
        Some(ToolChoice::Required) if thinks && facts.thinking == AnthropicThinking::Budget => {
            return Err(option_with_thinking_error(request, "tool_choice = \"required\""));
        }
        Some(ToolChoice::Required) => "any",
    };
    Ok(Some(json!({ "type": word })))
}

fn unsupported_option_error(request: &CompletionRequest, option: &str) -> Error {
    let text = format!("the model `{}` does not accept the option `{option}`", request.model);
    Error::new(ErrorKind::Configuration, text).with_hint("leave it out, or use another model")
}

fn option_with_thinking_error(request: &CompletionRequest, option: &str) -> Error {
    let model = &request.model;
    let text = format!("the model `{model}` does not accept the option `{option}` while it thinks");
    Error::new(ErrorKind::Configuration, text).with_hint("leave it out, or `effort`")
}
