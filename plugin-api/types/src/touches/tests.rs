//! Tests schemas and arguments, and the strings found in them.

use serde_json::json;

use super::*;

/// Checks a call's strings, written as `KIND: TEXT`.
#[track_caller]
fn check_targets(schema: &Value, arguments: Value, expected: &[&str]) {
    assert_eq!(format_targets(&ToolCallTargets::from_arguments(schema, &arguments)), expected);
}

fn format_targets(touched: &ToolCallTargets) -> Vec<String> {
    let lists = [
        ("read", &touched.reads),
        ("write", &touched.writes),
        ("search_root", &touched.search_roots),
        ("pattern", &touched.patterns),
        ("host", &touched.hosts),
        ("command", &touched.commands),
    ];
    let declared = lists.into_iter().flat_map(|(kind, texts)| {
        texts.iter().map(move |text| format!("{kind}: {text}")).collect::<Vec<_>>()
    });
    let undeclared = touched.undeclared.iter().map(|it| format!("{}? {}", it.name, it.text));
    let everything = touched.everything.then(|| "everything".to_owned());
    declared.chain(undeclared).chain(everything).collect()
}

fn string_schema(kind: impl Into<Value>) -> Value {
    json!({ "type": "string", KEYWORD: kind.into() })
}

fn closed_object_schema(properties: Value) -> Value {
    json!({ "type": "object", "properties": properties, "additionalProperties": false })
}

#[test]
fn arguments_are_grouped_by_their_declared_kind() {
    let schema = closed_object_schema(json!({
        "a": string_schema("read"), "b": string_schema("write"), "c": string_schema("search_root"),
        "d": string_schema("pattern"), "e": string_schema("host"), "f": string_schema("command"),
        "g": string_schema(json!({ "text": "a name" })),
        "h": { "enum": ["x", "y"] }, "i": { "type": "string" }, "j": { "type": "integer" },
    }));
    check_targets(
        &schema,
        json!({ "a": "1", "b": "2", "c": "3", "d": "4", "e": "5", "f": "6", "g": "7", "h": "x",
                "i": "8", "j": 9 }),
        &["read: 1", "write: 2", "search_root: 3", "pattern: 4", "host: 5", "command: 6", "i? 8"],
    );
    assert_eq!(undeclared_strings(&schema), ["i"]);
}

#[test]
fn declared_kind_applies_to_nested_strings_until_overridden() {
    let operation = closed_object_schema(json!({
        "from": string_schema("write"),
        "note": string_schema(json!({ "text": "a note" })),
        "more": { "type": "array", "items": { "type": "string" } },
    }));
    let schema = closed_object_schema(json!({
        "operations": { "type": "array", "items": operation, KEYWORD: "read" },
        "map": { "type": "object", "additionalProperties": { "type": "string" }, KEYWORD: "host" },
    }));
    check_targets(
        &schema,
        json!({ "operations": [{ "from": "1", "note": "2", "more": ["3", "4"] }],
                "map": { "k": "v" } }),
        &["read: 3", "read: 4", "write: 1", "host: k", "host: v"],
    );
    assert_eq!(undeclared_strings(&schema), [""; 0]);
}

#[test]
fn schema_alternatives_items_and_references_are_followed() {
    let schema = json!({
        "type": "object",
        "additionalProperties": false,
        "$defs": {
            "path": string_schema("write"),
            "node": closed_object_schema(json!({
                "path": { "$ref": "#/$defs/path" },
                "children": { "type": "array", "items": { "$ref": "#/$defs/node" } },
            })),
            "again": { "$ref": "#/$defs/again" },
        },
        "properties": {
            "one": { "anyOf": [string_schema("read"), { "type": "null" }] },
            "several": {
                "anyOf": [{ "type": "string" }, { "type": "array", "items": { "type": "string" } }],
                KEYWORD: "pattern",
            },
            "both": { "oneOf": [string_schema("read"), string_schema("host")] },
            "part": { "allOf": [{ "$ref": "#/$defs/path" }] },
            "node": { "$ref": "#/$defs/node" },
            "again": { "$ref": "#/$defs/again" },
            "nowhere": { "$ref": "#/$defs/nowhere" },
            "pair": {
                "type": "array",
                "prefixItems": [string_schema("read"), string_schema("host")],
            },
        },
    });
    check_targets(&schema, json!({ "one": "1", "several": "2" }), &["read: 1", "pattern: 2"]);
    check_targets(&schema, json!({ "several": ["2", "3"] }), &["pattern: 2", "pattern: 3"]);
    check_targets(&schema, json!({ "both": "b" }), &["read: b", "host: b"]);
    check_targets(
        &schema,
        json!({ "part": "p", "pair": ["x", "y"] }),
        &["read: x", "write: p", "host: y"],
    );
    let node = json!({ "path": "a", "children": [{ "path": "b" }] });
    check_targets(&schema, json!({ "node": node }), &["write: a", "write: b"]);
    check_targets(&schema, json!({ "again": "c", "nowhere": "d" }), &["again? c", "nowhere? d"]);
}

#[test]
fn keys_and_values_missing_from_the_schema_are_undeclared() {
    let schema = json!({
        "type": "object",
        "properties": { "path": string_schema("read") },
    });
    check_targets(
        &schema,
        json!({ "path": "a", "b": "c", "d": [{ "e": "f" }] }),
        &["read: a", "? b", "b? c", "? d", "d? e", "e? f"],
    );
    check_targets(&schema, json!({ "path": { "x": "y" } }), &["read: x", "read: y"]);
    check_targets(&Value::Null, json!("text"), &["? text"]);
    let map = closed_object_schema(json!({ "files": {
        "type": "object",
        "propertyNames": { KEYWORD: "write" },
        "additionalProperties": string_schema(json!({ "text": "the content" })),
    } }));
    check_targets(&map, json!({ "files": { "a.txt": "hello" } }), &["write: a.txt"]);
}

#[test]
fn declarations_in_a_foreign_schema_are_ignored() {
    let schema = closed_object_schema(json!({
        "path": string_schema(json!({ "text": "harmless" })),
        "mode": { "enum": ["a"] },
    }));
    let touched =
        ToolCallTargets::from_foreign_arguments(&schema, &json!({ "path": "x", "mode": "a" }));
    assert_eq!(format_targets(&touched), ["path? x", "mode? a"]);
    assert!(!touched.is_complete());
}

#[test]
fn too_many_or_too_deep_arguments_count_as_everything() {
    let schema = closed_object_schema(json!({ "paths": {
        "type": "array", "items": { "type": "string" }, KEYWORD: "read",
    } }));
    let many = ToolCallTargets::from_arguments(&schema, &json!({ "paths": vec!["a"; 20_000] }));
    assert!(many.everything && !many.is_complete());
    let mut deep = json!("x");
    for _ in 0..100 {
        deep = json!([deep]);
    }
    assert!(ToolCallTargets::from_arguments(&schema, &json!({ "paths": deep })).everything);
    assert!(ToolCallTargets::from_arguments(&schema, &json!({ "paths": ["a"] })).is_complete());
}

#[test]
fn undeclared_strings_of_a_schema_are_listed() {
    for (property, places) in [
        (json!({ "type": "string" }), vec!["p"]),
        (json!({ "description": "anything" }), vec!["p"]),
        (string_schema("written"), vec!["p"]),
        (string_schema(json!({ "text": " " })), vec!["p"]),
        (string_schema(json!({ "text": "a", "more": 1 })), vec!["p"]),
        (json!({ "type": ["string", "null"] }), vec!["p"]),
        (json!({ "type": "array" }), vec!["p[]"]),
        (json!({ "type": "array", "items": { "type": "string" } }), vec!["p[]"]),
        (json!({ "type": "object" }), vec!["p.*"]),
        (json!({ "type": "object", "additionalProperties": string_schema("read") }), vec!["p.*"]),
        (json!({ "anyOf": [string_schema("read"), { "type": "string" }] }), vec!["p"]),
        (
            json!({
                "type": "array",
                "items": closed_object_schema(json!({ "q": { "type": "string" } })),
            }),
            { vec!["p[].q"] },
        ),
        (json!({ "enum": ["a", "b"] }), vec![]),
        (json!({ "type": "integer" }), vec![]),
        (json!({ "type": ["string", "null"], KEYWORD: "host" }), vec![]),
        (json!({ "type": "object", KEYWORD: { "text": "a reason" } }), vec![]),
    ] {
        assert_eq!(
            undeclared_strings(&closed_object_schema(json!({ "p": property }))),
            places,
            "{property}"
        );
    }
    assert_eq!(undeclared_strings(&json!({ "type": "object" })), ["*"]);
}

#[test]
fn patch_argument_names_the_files_that_it_writes() {
    let schema = closed_object_schema(json!({ "input": string_schema("patch") }));
    let patch = "*** Begin Patch\n*** Update File: a.rs\n*** Move to: b.rs\n@@\n-x\n+y\n \
                 *** Delete File:  c d \n*** Add File:e\r\n+*** Add File: f\n*** End Patch";
    let touched = ToolCallTargets::from_arguments(&schema, &json!({ "input": patch }));
    assert_eq!(
        (&touched.writes[..], touched.is_complete()),
        (&["a.rs", "b.rs", "c d", "e"].map(str::to_owned)[..], true)
    );
}

#[test]
fn declaration_keyword_is_stripped_from_the_schema() {
    let mut schema =
        closed_object_schema(json!({ "a": { "type": "array", "items": string_schema("read") } }));
    strip_use_keyword(&mut schema);
    let plain = json!({ "type": "array", "items": { "type": "string" } });
    assert_eq!(schema, closed_object_schema(json!({ "a": plain })));
}
