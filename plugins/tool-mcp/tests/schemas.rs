//! Schemas from real generators: a tool can be called with any schema that its server sends.

use std::collections::BTreeMap;

use jaato_plugin_sdk::serde_json::{self, Map, Value, json};
use jaato_plugin_sdk::types::{ToolSpec, fit_arguments};
use jaato_plugin_testkit::check_arguments;
use tool_mcp::schema::{LoweredSchema, SCHEMA_BYTES_MAX, lower_schema, restore_property_names};

/// Schemas from generators in several languages, with arguments that the server accepts. The
/// extract of the Berkeley Function Calling Leaderboard is under Apache-2.0.
const SCHEMAS: &str = include_str!("fixtures/schemas.json");

fn lower_json(schema: &Value) -> LoweredSchema {
    lower_schema(schema.as_object().unwrap())
}

/// Writes arguments as a model does that reads the lowered schema.
fn rename_aliases(aliases: &BTreeMap<String, String>, value: &Value) -> Value {
    let alias = |name: &String| {
        let found = aliases.iter().find(|(_, server)| *server == name);
        found.map_or(name, |(alias, _)| alias).clone()
    };
    match value {
        Value::Object(map) => {
            map.iter().map(|(name, value)| (alias(name), rename_aliases(aliases, value))).collect()
        }
        Value::Array(list) => list.iter().map(|value| rename_aliases(aliases, value)).collect(),
        plain => plain.clone(),
    }
}

/// Passes arguments through the host and the plugin.
fn pass_arguments(lowered: &LoweredSchema, arguments: &Value) -> Result<Value, String> {
    let spec = ToolSpec { parameters: lowered.schema.clone(), foreign: true, ..<_>::default() };
    let given = fit_arguments(&spec, rename_aliases(&lowered.aliases, arguments));
    check_arguments(&spec, &given).map_err(|error| error.message)?;
    let given = given.as_object().unwrap().clone();
    Ok(Value::Object(restore_property_names(&lowered.aliases, given)))
}

#[test]
fn every_schema_of_the_corpus_is_lowered_and_its_tool_callable() {
    let corpus: Vec<Value> = serde_json::from_str(SCHEMAS).unwrap();
    assert!(corpus.len() > 50);
    for row in corpus {
        let lowered = lower_json(&row["schema"]);
        let (name, text) = (&row["name"], lowered.schema.to_string());
        assert!(!text.contains("\"$ref\""), "{name}: {text}");
        for given in row["arguments"].as_array().unwrap() {
            let sent = pass_arguments(&lowered, given)
                .unwrap_or_else(|why| panic!("{name}: {why}: {text}"));
            assert_eq!(sent, *given, "{name}: {text}");
        }
    }
}

#[track_caller]
fn check_lowered(schema: Value, expected: Value, is_cut: bool) {
    let lowered = lower_json(&schema);
    assert_eq!((lowered.schema, lowered.is_cut), (expected, is_cut));
}

#[test]
fn argument_constraints_of_a_schema_are_kept() {
    check_lowered(
        json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "x", "type": "object",
            "properties": { "a": { "$ref": "#/$defs/a%20b", "description": "Mine.", "$comment": "x" } },
            "required": ["a"], "additionalProperties": false,
            "$defs": { "a b": { "type": "string", "description": "Its.", "minLength": 1 } },
        }),
        json!({
            "type": "object",
            "properties": { "a": { "type": "string", "description": "Mine.", "minLength": 1 } },
            "required": ["a"], "additionalProperties": false,
        }),
        false,
    );
    check_lowered(json!({}), json!({ "type": "object", "properties": {} }), false);
}

#[test]
fn older_schema_keywords_are_modernized() {
    check_lowered(
        json!({
            "type": "object", "properties": {
                "at": { "type": "array", "items": [{ "type": "float" }], "additionalItems": false },
                "n": { "type": "Integer", "minimum": 1, "exclusiveMinimum": true },
                "s": { "type": "str", "nullable": true, "enum": ["a"] },
            },
            "dependencies": { "n": ["s"], "s": { "required": ["at"] } },
        }),
        json!({
            "type": "object", "properties": {
                "at": { "type": "array", "prefixItems": [{ "type": "number" }], "items": false },
                "n": { "type": "integer", "exclusiveMinimum": 1 },
                "s": { "type": ["string", "null"], "enum": ["a", null] },
            },
            "dependentRequired": { "n": ["s"] }, "dependentSchemas": { "s": { "required": ["at"] } },
        }),
        false,
    );
}

#[test]
fn a_choice_at_the_root_becomes_one_object() {
    let branch = |kind: &str, name: &str| {
        json!({
            "type": "object", "required": ["kind", name], "additionalProperties": false,
            "properties": { "kind": { "const": kind }, name: { "type": "string" } },
        })
    };
    check_lowered(
        json!({ "oneOf": [branch("file", "path"), branch("page", "url"), { "type": "null" }] }),
        json!({
            "properties": {
                "kind": { "enum": ["file", "page"] },
                "path": { "type": "string" }, "url": { "type": "string" },
            },
            "additionalProperties": false, "required": ["kind"],
            "description": "Give one of these: `path` or `url`.", "type": "object",
        }),
        false,
    );
    check_lowered(
        json!({
            "allOf": [
                { "properties": { "a": { "type": ["string", "null"] } }, "required": ["a"] },
                { "properties": { "a": { "type": "string" }, "b": {} }, "required": ["b"] },
            ],
        }),
        json!({
            "properties": { "a": { "type": "string" }, "b": {} },
            "required": ["a", "b"], "type": "object",
        }),
        false,
    );
}

#[test]
fn refused_property_names_get_an_alias_that_is_restored_for_the_server() {
    let lowered = lower_json(&json!({
        "type": "object", "required": ["$filter"], "additionalProperties": false,
        "properties": { "$filter": { "type": "string", "description": "Which." } },
    }));
    let alias = "_filter-0c097d40d6";
    let expected = json!({
        "type": "object", "required": [alias], "additionalProperties": false,
        "properties": { alias: { "type": "string", "description": "The server calls it `$filter`. Which." } },
    });
    assert_eq!(lowered.schema, expected);
    let given = json!({ alias: "x", "list": [{ alias: { alias: 1 } }] });
    let sent = restore_property_names(&lowered.aliases, given.as_object().unwrap().clone());
    let expected = json!({ "$filter": "x", "list": [{ "$filter": { "$filter": 1 } }] });
    assert_eq!(Value::Object(sent), expected);
}

#[test]
fn invalid_schema_keywords_are_dropped_alone() {
    check_lowered(
        json!({
            "type": ["object", "null"], "required": "a", "properties": {
                "a": { "type": "frob", "minLength": 1 }, "b": { "enum": 1 }, "c": 1, "ok": true,
                "p": { "type": "string", "pattern": "[", "minLength": "3", "maxLength": 9 },
            },
        }),
        json!({
            "type": "object", "properties": {
                "a": { "minLength": 1 }, "b": {}, "c": {}, "ok": {},
                "p": { "type": "string", "maxLength": 9 },
            },
        }),
        true,
    );
}

#[test]
fn null_for_a_non_nullable_argument_is_left_out() {
    let lowered = lower_json(&json!({ "type": "object", "properties": {
        "flag": { "type": "boolean" }, "either": { "oneOf": [{ "type": "string" }, { "const": 1 }] },
        "level": { "enum": [1, 2] }, "maybe": { "type": "integer", "nullable": true },
    } }));
    let given = json!({ "flag": null, "either": null, "level": null, "maybe": null });
    assert_eq!(pass_arguments(&lowered, &given).unwrap(), json!({ "maybe": null }));
}

#[test]
fn recursive_and_huge_schemas_stay_small() {
    check_lowered(
        json!({
            "type": "object", "properties": { "tree": { "$ref": "#/$defs/tree" } },
            "$defs": { "tree": { "type": "object", "properties": { "left": { "$ref": "#/$defs/tree" } } } },
        }),
        json!({
            "type": "object",
            "properties": { "tree": { "type": "object", "properties": { "left": {} } } },
        }),
        true,
    );
    let mut defs = Map::new();
    for level in 0..40 {
        let next = json!({ "$ref": format!("#/$defs/d{}", level + 1) });
        let bomb = json!({ "type": "object", "properties": { "a": next, "b": next, "c": next } });
        defs.insert(format!("d{level}"), bomb);
    }
    let bomb = lower_json(&json!({ "$ref": "#/$defs/d0", "$defs": defs }));
    assert!(bomb.is_cut && bomb.schema.to_string().len() <= SCHEMA_BYTES_MAX);
    let mut deep = json!({ "type": "string" });
    for _ in 0..500 {
        deep = json!({ "type": "object", "properties": { "x": deep } });
    }
    let deep = lower_json(&deep);
    assert!(deep.is_cut && deep.schema.to_string().matches("properties").count() < 30);
    let large = "x".repeat(SCHEMA_BYTES_MAX);
    check_lowered(
        json!({ "type": "object", "properties": { "a": { "description": large } } }),
        json!({ "type": "object", "properties": {} }),
        true,
    );
}
