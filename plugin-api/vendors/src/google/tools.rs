//! The list of tools.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{
    GoogleCheckResult, check_fields, expect_list, expect_object, invalid_request, schemas,
};

const FIELDS: [&str; 6] =
    ["behavior", "description", "name", "parameters", "parametersJsonSchema", "response"];

/// The longest name.
const NAME_CHARS_MAX: usize = 128;

/// Checks the list.
pub(super) fn check_tools(body: &Map<String, Value>, knows_json_schema: bool) -> GoogleCheckResult {
    let Some(tools) = body.get("tools") else { return Ok(()) };
    let tools = expect_list("tools", Some(tools))?;
    let mut names = BTreeSet::new();
    for (index, tool) in tools.iter().enumerate() {
        let place = format!("tools[{index}]");
        let tool = expect_object(&place, tool)?;
        check_fields(&place, tool, &["functionDeclarations"])?;
        let declared = expect_list(&place, tool.get("functionDeclarations"))?;
        for (index, declared) in declared.iter().enumerate() {
            let place = format!("{place}.function_declarations[{index}]");
            check_declaration(&place, declared, knows_json_schema)?;
            let name = declared["name"].as_str().unwrap_or_default();
            if !names.insert(name) {
                return Err(invalid_request(format!(
                    "Duplicate function declaration found: {name}"
                )));
            }
        }
    }
    match names.is_empty() {
        true => Err(invalid_request("tools: at least one tool must be declared")),
        false => Ok(()),
    }
}

fn check_declaration(place: &str, declared: &Value, knows_json_schema: bool) -> GoogleCheckResult {
    let fields = expect_object(place, declared)?;
    let known: Vec<&str> = FIELDS
        .into_iter()
        .filter(|field| knows_json_schema || *field != "parametersJsonSchema")
        .collect();
    check_fields(place, fields, &known)?;
    if !is_valid_name(declared["name"].as_str().unwrap_or_default()) {
        return Err(invalid_request(format!(
            "GenerateContentRequest.{place}.name: Invalid function name. Must start with a letter or an underscore. Must be alphanumeric (a-z, A-Z, 0-9), underscores (_), dots (.), colons (:), or dashes (-), with a maximum length of 128."
        )));
    }
    match (fields.get("parameters"), fields.get("parametersJsonSchema")) {
        (Some(_), Some(_)) => Err(invalid_request(format!(
            "{place}: parameters and parameters_json_schema are exclusive"
        ))),
        (Some(open), None) => {
            let place = format!("{place}.parameters");
            if open["type"] != "OBJECT" || open["properties"].as_object().is_none_or(Map::is_empty)
            {
                return Err(invalid_request(format!(
                    "{place}.properties: should be non-empty for OBJECT type"
                )));
            }
            schemas::check_openapi_schema(&place, open)
        }
        (None, Some(json)) => {
            let place = format!("{place}.parameters_json_schema");
            match json["type"] == "object" {
                true => schemas::check_json_schema(&place, json),
                false => Err(invalid_request(format!("{place}: schema must be of type object"))),
            }
        }
        (None, None) => Ok(()),
    }
}

/// Returns true if a tool may have this name.
pub(super) fn is_valid_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_.:-".contains(c);
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(is_plain)
        && name.len() <= NAME_CHARS_MAX
}
