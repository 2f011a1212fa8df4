//! Merges schemas: several that must all hold, or alternatives.
//!
//! If the parts disagree, the result allows more.

use jaato_plugin_sdk::serde_json::{Map, Value, json};

use super::older_forms;

/// Keywords that vendors refuse at the root or that do not constrain an object.
const NOT_AT_ROOT: [&str; 7] = ["const", "enum", "if", "items", "not", "nullable", "prefixItems"];

/// Adds a schema that must also hold.
pub fn merge_schema(into: &mut Map<String, Value>, other: Map<String, Value>) {
    let is_open = can_have_other_properties(into) || can_have_other_properties(&other);
    for (key, value) in other {
        let Some(known) = into.get_mut(&key) else {
            into.insert(key, value);
            continue;
        };
        match (key.as_str(), known, value) {
            ("required", Value::Array(known), Value::Array(names)) => {
                add_missing_values(known, names)
            }
            ("type", known, value) => {
                if let Some(both) = common_types(known, &value) {
                    *known = both;
                }
            }
            ("enum", Value::Array(known), Value::Array(values)) => {
                if known.iter().any(|it| values.contains(it)) {
                    known.retain(|it| values.contains(it));
                }
            }
            (
                "properties" | "patternProperties" | "dependentSchemas",
                Value::Object(known),
                Value::Object(named),
            ) => {
                for (name, schema) in named {
                    match (known.get_mut(&name), schema) {
                        (Some(Value::Object(known)), Value::Object(schema)) => {
                            merge_schema(known, schema)
                        }
                        (_, schema) => drop(known.insert(name, schema)),
                    }
                }
            }
            ("items" | "additionalProperties", Value::Object(known), Value::Object(schema)) => {
                merge_schema(known, schema);
            }
            ("anyOf", _, _) => {}
            (_, known, value) => *known = value,
        }
    }
    if is_open && into.get("additionalProperties") == Some(&Value::Bool(false)) {
        into.remove("additionalProperties");
    }
}

/// Resolves contradictions between the keywords of a lowered schema. Returns true if a keyword was
/// left out.
pub fn resolve_contradictions(schema: &mut Map<String, Value>) -> bool {
    let mut is_cut = false;
    if let Some(types) = schema.get("type") {
        let values = schema.get("enum").and_then(Value::as_array).into_iter().flatten();
        let mut odd = values.chain(schema.get("const")).filter(|value| !has_type(types, value));
        match (odd.next(), odd.next()) {
            (None, _) => {}
            (Some(Value::Null), None) => older_forms::allow_null(schema),
            // The values express the server's intent.
            _ => {
                schema.shift_remove("type");
                is_cut = true;
            }
        }
    }
    if !schema.contains_key("if") {
        schema.remove("then");
        schema.remove("else");
    }
    let is_array = schema.get("type").is_some_and(|types| type_names(types).contains(&"array"));
    if (is_array || schema.contains_key("prefixItems")) && !schema.contains_key("items") {
        // OpenAI refuses an array without `items`.
        schema.insert("items".to_owned(), json!({}));
    }
    let is_closed = schema.get("additionalProperties") == Some(&Value::Bool(false))
        && !schema.contains_key("patternProperties");
    let properties = schema.get("properties").and_then(Value::as_object);
    let properties =
        properties.map(|it| it.keys().cloned().collect::<Vec<_>>()).unwrap_or_default();
    if is_closed && let Some(Value::Array(required)) = schema.get_mut("required") {
        // Required properties that the schema forbids could never be given.
        required.retain(|name| properties.iter().any(|known| name == known));
    }
    is_cut
}

/// Replaces the choices at the root by the properties of all branches. A property is required if
/// every branch requires it.
pub fn flatten_root(root: &mut Map<String, Value>) {
    let mut take = |key: &str| root.shift_remove(key);
    let any = match take("anyOf") {
        Some(Value::Array(any)) => any,
        _ => Vec::new(),
    };
    let mut conditional: Vec<Value> = ["then", "else"].into_iter().filter_map(take).collect();
    if !conditional.is_empty() {
        conditional.push(json!({}));
    }
    for key in NOT_AT_ROOT {
        root.shift_remove(key);
    }
    merge_branches(root, any);
    merge_branches(root, conditional);
}

/// Merges several alternative schemas into the root.
fn merge_branches(root: &mut Map<String, Value>, branches: Vec<Value>) {
    let may_be_object = |branch: &Map<String, Value>| {
        branch.get("type").is_none_or(|types| type_names(types).contains(&"object"))
    };
    let branches = branches.into_iter().filter_map(|branch| match branch {
        Value::Object(mut branch) if may_be_object(&branch) => {
            // Handles a choice inside a choice.
            flatten_root(&mut branch);
            Some(branch)
        }
        _ => None,
    });
    let branches: Vec<Map<String, Value>> = branches.collect();
    let Some(first) = branches.first() else { return };
    let mut required = required_properties(first);
    required
        .retain(|name| branches.iter().all(|branch| required_properties(branch).contains(name)));
    let known = required_properties(root);
    let others = |branch: &Map<String, Value>| -> Vec<String> {
        let mut names = required_properties(branch);
        names.retain(|name| !required.contains(name) && !known.contains(name));
        names
    };
    let sets: Vec<Vec<String>> = branches.iter().map(others).collect();
    let mut variants: Map<String, Value> = Map::new();
    for branch in &branches {
        let properties = branch.get("properties").and_then(Value::as_object);
        for (name, schema) in properties.into_iter().flatten() {
            let list = variants.entry(name).or_insert_with(|| json!([]));
            if let Value::Array(list) = list {
                add_missing_values(list, vec![schema.clone()]);
            }
        }
    }
    // If a branch does not name a property of the root, the root's schema for it applies.
    let of_root = root.get("properties").and_then(Value::as_object);
    let is_everywhere = |name: &str| {
        let has = |branch: &Map<String, Value>| branch.get("properties")?.get(name).map(drop);
        branches.iter().all(|branch| has(branch).is_some())
    };
    variants.retain(|name, _| {
        of_root.is_none_or(|known| !known.contains_key(name)) || is_everywhere(name)
    });
    let either = |(name, list): (String, Value)| match list {
        Value::Array(list) => (name, union_of_variants(list)),
        other => (name, other),
    };
    let mut merged = Map::new();
    if !variants.is_empty() {
        merged.insert("properties".to_owned(), variants.into_iter().map(either).collect());
    }
    let is_closed = |branch: &Map<String, Value>| {
        branch.get("additionalProperties") == Some(&Value::Bool(false))
    };
    if branches.iter().all(is_closed) {
        merged.insert("additionalProperties".to_owned(), json!(false));
    }
    if !required.is_empty() {
        merged.insert("required".to_owned(), json!(required));
    }
    merge_schema(root, merged);
    if branches.len() > 1 && sets.iter().all(|set| !set.is_empty()) {
        let sets: Vec<String> = sets.iter().map(|set| format!("`{}`", set.join("`, `"))).collect();
        let about = root.get("description").and_then(Value::as_str).unwrap_or_default();
        let about = format!("{about} Give one of these: {}.", sets.join(" or "));
        root.insert("description".to_owned(), about.trim_start().into());
    }
}

/// Returns a schema that allows everything that one of the variants allows.
fn union_of_variants(mut variants: Vec<Value>) -> Value {
    let values = |schema: &Value| match (schema.get("const"), schema.get("enum")) {
        (Some(only), _) => Some(vec![only.clone()]),
        (None, Some(Value::Array(values))) => Some(values.clone()),
        _ => None,
    };
    match variants.len() {
        1 => variants.remove(0),
        _ => match variants.iter().map(values).collect::<Option<Vec<_>>>() {
            // These constants name the branch of a union.
            Some(lists) => {
                let mut all = Vec::new();
                lists.into_iter().for_each(|list| add_missing_values(&mut all, list));
                let mut first = variants.remove(0);
                if let Value::Object(first) = &mut first {
                    first.shift_remove("const");
                    first.insert("enum".to_owned(), Value::Array(all));
                    resolve_contradictions(first);
                }
                first
            }
            None => json!({ "anyOf": variants }),
        },
    }
}

fn required_properties(schema: &Map<String, Value>) -> Vec<String> {
    let names = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    names.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Returns true if a schema names properties and allows others.
fn can_have_other_properties(schema: &Map<String, Value>) -> bool {
    schema.contains_key("properties")
        && schema.get("additionalProperties") != Some(&Value::Bool(false))
}

fn add_missing_values(known: &mut Vec<Value>, more: Vec<Value>) {
    for value in more {
        if !known.contains(&value) {
            known.push(value);
        }
    }
}

fn type_names(types: &Value) -> Vec<&str> {
    match types {
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
        name => name.as_str().into_iter().collect(),
    }
}

/// Returns the types that both schemas allow, or `None` if no type is in both.
fn common_types(one: &Value, other: &Value) -> Option<Value> {
    let (one, other) = (type_names(one), type_names(other));
    let is_in = |name: &str, list: &[&str]| {
        list.contains(&name) || (name == "integer" && list.contains(&"number"))
    };
    let mut both: Vec<&str> = one.iter().copied().filter(|name| is_in(name, &other)).collect();
    both.extend(other.iter().filter(|name| !one.contains(name) && is_in(name, &one)));
    match both[..] {
        [] => None,
        [only] => Some(only.into()),
        _ => Some(json!(both)),
    }
}

/// Returns true if a value has one of these types.
fn has_type(types: &Value, value: &Value) -> bool {
    let is_whole = value.as_f64().is_some_and(|number| number.fract() == 0.0);
    type_names(types).iter().any(|name| match *name {
        "array" => value.is_array(),
        "boolean" => value.is_boolean(),
        "integer" => is_whole,
        "null" => value.is_null(),
        "number" => value.is_number(),
        "object" => value.is_object(),
        _ => value.is_string(),
    })
}
