//! The fields of a request other than tools and contents.

use serde_json::{Map, Value};

use super::models::{FakeGoogleModel, FakeGoogleThinking};
use super::request_target::GoogleRequestTarget;
use super::{
    GoogleCheckResult, check_fields, expect_list, expect_object, invalid_request, schemas,
};

const FIELDS: [&str; 7] = [
    "cachedContent",
    "contents",
    "generationConfig",
    "safetySettings",
    "systemInstruction",
    "toolConfig",
    "tools",
];

const GENERATION_FIELDS: [&str; 12] = [
    "candidateCount",
    "maxOutputTokens",
    "mediaResolution",
    "responseJsonSchema",
    "responseMimeType",
    "responseSchema",
    "seed",
    "stopSequences",
    "temperature",
    "thinkingConfig",
    "topK",
    "topP",
];

const MODES: [&str; 4] = ["ANY", "AUTO", "NONE", "VALIDATED"];

const STOPS_MAX: usize = 5;

/// Checks the names of the fields.
pub(super) fn check_body_fields(
    body: &Map<String, Value>,
    place: &GoogleRequestTarget<'_>,
) -> GoogleCheckResult {
    let other = if place.is_studio() { "serviceTier" } else { "labels" };
    check_fields("", body, &[&FIELDS[..], &[other]].concat())
}

/// Checks the settings.
pub(super) fn check_settings(
    body: &Map<String, Value>,
    model: &FakeGoogleModel,
    knows_json_schema: bool,
) -> GoogleCheckResult {
    check_system(body, model)?;
    check_tool_config(body)?;
    let Some(config) = body.get("generationConfig") else { return Ok(()) };
    let config = expect_object("generation_config", config)?;
    check_fields("generation_config", config, &GENERATION_FIELDS)?;
    check_numeric_options(config)?;
    let stops = expect_list("generation_config.stop_sequences", config.get("stopSequences"))?;
    if stops.len() > STOPS_MAX || stops.iter().any(|stop| stop.as_str().is_none_or(str::is_empty)) {
        return Err(invalid_request("generation_config.stop_sequences must have at most 5 texts"));
    }
    check_answer_format(body, config, model, knows_json_schema)?;
    config.get("thinkingConfig").map_or(Ok(()), |thinking| check_thinking(thinking, model))
}

/// Returns true if thoughts are shown.
pub(super) fn has_visible_thoughts(body: &Map<String, Value>, model: &FakeGoogleModel) -> bool {
    let thinking = body.get("generationConfig").map(|config| &config["thinkingConfig"]);
    model.should_sign_thoughts(body)
        && thinking.is_some_and(|thinking| thinking["includeThoughts"] == true)
}

fn check_system(body: &Map<String, Value>, model: &FakeGoogleModel) -> GoogleCheckResult {
    let Some(system) = body.get("systemInstruction") else { return Ok(()) };
    if !model.can_take_system_text() {
        return Err(invalid_request(format!(
            "Developer instruction is not enabled for models/{}",
            model.name
        )));
    }
    let system = expect_object("system_instruction", system)?;
    check_fields("system_instruction", system, &["parts", "role"])?;
    let parts = expect_list("system_instruction.parts", system.get("parts"))?;
    let is_text = |part: &Value| part["text"].as_str().is_some_and(|text| !text.is_empty());
    if parts.is_empty() || !parts.iter().all(is_text) {
        return Err(invalid_request("system_instruction.parts: must have text"));
    }
    Ok(())
}

fn check_tool_config(body: &Map<String, Value>) -> GoogleCheckResult {
    let Some(config) = body.get("toolConfig") else { return Ok(()) };
    let config = expect_object("tool_config", config)?;
    check_fields("tool_config", config, &["functionCallingConfig"])?;
    let calling =
        expect_object("tool_config.function_calling_config", &config["functionCallingConfig"])?;
    let known = ["mode", "allowedFunctionNames"];
    check_fields("tool_config.function_calling_config", calling, &known)?;
    if !MODES.contains(&calling["mode"].as_str().unwrap_or_default()) {
        return Err(invalid_request("Invalid value at 'tool_config.function_calling_config.mode'"));
    }
    if !body.contains_key("tools") {
        return Err(invalid_request(
            "Function calling config is set without function_declarations.",
        ));
    }
    Ok(())
}

fn check_numeric_options(config: &Map<String, Value>) -> GoogleCheckResult {
    let within = |key: &str, least: f64, most: f64| match config.get(key) {
        None => Ok(()),
        Some(value) if value.as_f64().is_some_and(|it| (least..=most).contains(&it)) => Ok(()),
        Some(value) => Err(invalid_request(format!(
            "Unable to submit request because {key} must be between {least} and {most}, not {value}"
        ))),
    };
    let whole = |key: &str| config.get(key).is_none_or(|value| value.is_i64() || value.is_u64());
    if !whole("seed") || !whole("maxOutputTokens") {
        return Err(invalid_request("Invalid value at 'generation_config' (TYPE_INT32)"));
    }
    within("temperature", 0.0, 2.0)?;
    within("maxOutputTokens", 1.0, 65_536.0)?;
    within("seed", f64::from(i32::MIN), f64::from(i32::MAX))
}

fn check_answer_format(
    body: &Map<String, Value>,
    config: &Map<String, Value>,
    model: &FakeGoogleModel,
    knows_json_schema: bool,
) -> GoogleCheckResult {
    let form = config.get("responseMimeType").and_then(Value::as_str);
    let (open, json) = (config.get("responseSchema"), config.get("responseJsonSchema"));
    if json.is_some() && !knows_json_schema {
        return check_fields("generation_config", config, &GENERATION_FIELDS[..3]);
    }
    if open.is_some() && json.is_some() {
        return Err(invalid_request("response_schema and response_json_schema are exclusive"));
    }
    if (open.is_some() || json.is_some()) && form != Some("application/json") {
        return Err(invalid_request("response_schema needs response_mime_type 'application/json'"));
    }
    if form == Some("application/json") {
        if model.generation.0 == 0 {
            return Err(invalid_request(format!(
                "JSON mode is not enabled for models/{}",
                model.name
            )));
        }
        if model.generation.0 < 3 && body.contains_key("tools") {
            return Err(invalid_request(
                "Function calling with a response mime type: 'application/json' is unsupported",
            ));
        }
    }
    open.map_or(Ok(()), |open| {
        schemas::check_openapi_schema("generation_config.response_schema", open)
    })?;
    json.map_or(Ok(()), |json| {
        schemas::check_json_schema("generation_config.response_json_schema", json)
    })
}

fn check_thinking(thinking: &Value, model: &FakeGoogleModel) -> GoogleCheckResult {
    let fields = expect_object("generation_config.thinking_config", thinking)?;
    let known = ["includeThoughts", "thinkingBudget", "thinkingLevel"];
    check_fields("generation_config.thinking_config", fields, &known)?;
    let (budget, level) = (fields.get("thinkingBudget"), fields.get("thinkingLevel"));
    let shows = thinking["includeThoughts"] == true;
    if budget.is_some() && level.is_some() {
        return Err(invalid_request(
            "You can only set only one of thinking budget and thinking level.",
        ));
    }
    let refused =
        |what: String| Err(invalid_request(format!("Unable to submit request because {what}")));
    let only_where_on = || {
        refused("thinking_config.include_thoughts is only enabled when thinking is enabled.".into())
    };
    match (model.thinking, budget.and_then(Value::as_i64), level.and_then(Value::as_str)) {
        (FakeGoogleThinking::Never, ..) => {
            Err(invalid_request(format!("Thinking is not enabled for models/{}", model.name)))
        }
        (FakeGoogleThinking::Levels(levels), None, Some(level)) if !levels.contains(&level) => {
            refused(format!("thinking_level {level} is not supported by this model."))
        }
        (FakeGoogleThinking::Levels(_), None, _) => Ok(()),
        (FakeGoogleThinking::Levels(_), Some(_), _) => {
            refused("thinking_budget is not supported by this model.".into())
        }
        (FakeGoogleThinking::Budget { .. }, _, Some(_)) => {
            refused("Thinking level is not supported for this model.".into())
        }
        (FakeGoogleThinking::Budget { by_default: false, .. }, None, None) if shows => {
            only_where_on()
        }
        (FakeGoogleThinking::Budget { can_be_off: true, .. }, Some(0), None) if shows => {
            only_where_on()
        }
        (FakeGoogleThinking::Budget { can_be_off: true, .. }, Some(0), None) => Ok(()),
        (FakeGoogleThinking::Budget { .. }, None | Some(-1), None) => Ok(()),
        (FakeGoogleThinking::Budget { min, max, .. }, Some(budget), None) => {
            if (min..=max).contains(&budget) {
                return Ok(());
            }
            refused(format!("the thinking budget {budget} is not between {min} and {max}."))
        }
    }
}
