//! Makes a server's schema one that models' vendors take and the host can check.
//!
//! Local `$ref`s are put in their place, as deep as that makes sense; nothing is ever fetched. What
//! is cut off becomes `{}`, which allows anything: the server checks its arguments itself, so a
//! schema that says less is safe, and one that refuses what the server takes is not.

use jaato_plugin_sdk::serde_json::{Map, Value, json};

/// Deepest schema that is kept; the host takes 32.
const DEPTH_MAX: usize = 24;
/// Values in one schema, references put in: definitions that name each other would double it with
/// each level.
const NODES_MAX: usize = 4000;
/// Largest schema, in bytes of JSON; the host takes 128 KiB.
pub const SCHEMA_BYTES_MAX: usize = 96 * 1024;
/// Longest name of a property, as vendors take it.
const PROPERTY_BYTES_MAX: usize = 64;

const TYPES: [&str; 7] = ["array", "boolean", "integer", "null", "number", "object", "string"];

/// What names or finds schemas, and says nothing of arguments.
const DROPPED: [&str; 9] = [
    "$schema",
    "$id",
    "$anchor",
    "$dynamicAnchor",
    "$dynamicRef",
    "$recursiveAnchor",
    "$vocabulary",
    "$comment",
    "x-mcp-header",
];
const ONE: [&str; 11] = [
    "items",
    "additionalProperties",
    "additionalItems",
    "not",
    "contains",
    "propertyNames",
    "if",
    "then",
    "else",
    "unevaluatedItems",
    "unevaluatedProperties",
];
const LISTS: [&str; 4] = ["anyOf", "oneOf", "allOf", "prefixItems"];
const MAPS: [&str; 3] = ["properties", "patternProperties", "dependentSchemas"];

/// A schema of arguments, and whether it says less than the server's.
#[derive(Debug, PartialEq)]
pub struct Cleaned {
    /// The schema.
    pub schema: Value,
    /// Whether something was cut off.
    pub is_cut: bool,
}

/// Cleans the schema of a tool's arguments.
pub fn clean(schema: &Map<String, Value>) -> Cleaned {
    let root = Value::Object(schema.clone());
    let mut cleaner = Cleaner { root: &root, nodes: 0, open: Vec::new(), is_cut: false };
    let mut cleaned = match cleaner.schema(&root, 0) {
        Value::Object(map) => map,
        _ => Map::new(),
    };
    // Whatever it says of alternatives: arguments are an object.
    cleaned.insert("type".to_owned(), json!("object"));
    if !cleaned.get("properties").is_some_and(Value::is_object) {
        cleaned.insert("properties".to_owned(), json!({}));
    }
    let is_cut = cleaner.is_cut;
    let schema = Value::Object(cleaned);
    match schema.to_string().len() > SCHEMA_BYTES_MAX {
        true => Cleaned { schema: json!({ "type": "object", "properties": {} }), is_cut: true },
        false => Cleaned { schema, is_cut },
    }
}

struct Cleaner<'a> {
    root: &'a Value,
    nodes: usize,
    /// References that are being put in.
    open: Vec<String>,
    is_cut: bool,
}

impl Cleaner<'_> {
    fn cut(&mut self) -> Value {
        self.is_cut = true;
        json!({})
    }

    fn schema(&mut self, schema: &Value, depth: usize) -> Value {
        self.nodes += 1;
        let map = match schema {
            Value::Bool(_) => return schema.clone(),
            Value::Object(map) => map,
            _ => return self.cut(),
        };
        if depth >= DEPTH_MAX || self.nodes > NODES_MAX {
            return self.cut();
        }
        match map.get("$ref").and_then(Value::as_str) {
            Some(reference) => self.referred(reference, map, depth),
            None => Value::Object(self.keywords(map, depth)),
        }
    }

    /// Puts what a reference names in its place. What stands beside the reference is laid over it.
    fn referred(&mut self, reference: &str, map: &Map<String, Value>, depth: usize) -> Value {
        let beside = self.keywords(map, depth);
        let pointer = reference.strip_prefix('#').map(decoded);
        let target = pointer.as_deref().and_then(|pointer| self.root.pointer(pointer)).cloned();
        let is_loop = self.open.iter().any(|it| it == reference);
        let Some(target) = target.filter(|_| !is_loop) else {
            self.is_cut = true;
            return Value::Object(beside);
        };
        self.open.push(reference.to_owned());
        let found = self.schema(&target, depth + 1);
        self.open.pop();
        match found {
            Value::Object(mut found) => {
                found.extend(beside);
                Value::Object(found)
            }
            found if beside.is_empty() => found,
            _ => Value::Object(beside),
        }
    }

    fn keywords(&mut self, map: &Map<String, Value>, depth: usize) -> Map<String, Value> {
        let mut cleaned = Map::new();
        for (key, value) in map {
            let key = key.as_str();
            if DROPPED.contains(&key) || matches!(key, "$ref" | "$defs" | "definitions") {
                continue;
            }
            let value = match value {
                Value::Array(list) if LISTS.contains(&key) || key == "items" => {
                    Value::Array(list.iter().map(|it| self.schema(it, depth + 1)).collect())
                }
                Value::Object(map) if MAPS.contains(&key) => {
                    let is_names = key == "properties";
                    Value::Object(self.named(map, is_names, depth))
                }
                _ if LISTS.contains(&key) || MAPS.contains(&key) => continue,
                value if ONE.contains(&key) => self.schema(value, depth + 1),
                value => match self.plain(key, value) {
                    Some(value) => value,
                    None => continue,
                },
            };
            cleaned.insert(key.to_owned(), value);
        }
        self.match_required(&mut cleaned);
        cleaned
    }

    /// Cleans a map of schemas. A property whose name no vendor takes is left out: the server may
    /// still be given it where it allows more properties.
    fn named(
        &mut self,
        map: &Map<String, Value>,
        is_names: bool,
        depth: usize,
    ) -> Map<String, Value> {
        let mut cleaned = Map::new();
        for (name, schema) in map {
            if self.nodes > NODES_MAX || (is_names && !is_property(name)) {
                self.is_cut = true;
                continue;
            }
            cleaned.insert(name.clone(), self.schema(schema, depth + 1));
        }
        cleaned
    }

    /// Keeps a keyword whose value is no schema, if the value is one that it may have.
    fn plain(&mut self, key: &str, value: &Value) -> Option<Value> {
        self.nodes += 1;
        let is_type = |it: &Value| it.as_str().is_some_and(|it| TYPES.contains(&it));
        let is_good = match key {
            "type" => match value {
                Value::Array(names) => !names.is_empty() && names.iter().all(is_type),
                name => is_type(name),
            },
            "required" => value.as_array().is_some_and(|it| it.iter().all(Value::is_string)),
            "enum" => value.as_array().is_some_and(|it| !it.is_empty()),
            "title" | "description" => value.is_string(),
            _ => true,
        };
        match is_good && self.nodes <= NODES_MAX {
            true => Some(value.clone()),
            false => {
                self.is_cut = true;
                None
            }
        }
    }

    /// Requires no property that was left out.
    fn match_required(&mut self, map: &mut Map<String, Value>) {
        let Some(Value::Array(required)) = map.get("required") else { return };
        let is_there = |name: &Value| name.as_str().is_some_and(is_property);
        let kept: Vec<Value> = required.iter().filter(|it| is_there(it)).cloned().collect();
        if kept.len() < required.len() {
            // Else what is required could not be given.
            map.remove("additionalProperties");
            map.remove("unevaluatedProperties");
            map.insert("required".to_owned(), Value::Array(kept));
        }
    }
}

fn is_property(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
    (1..=PROPERTY_BYTES_MAX).contains(&name.len()) && name.bytes().all(is_plain)
}

/// Undoes the percent encoding of a fragment, as far as pointers need it.
fn decoded(pointer: &str) -> String {
    let mut decoded = String::new();
    let mut rest = pointer;
    while let Some(at) = rest.find('%') {
        decoded.push_str(&rest[..at]);
        let code = rest.get(at + 1..at + 3).and_then(|it| u8::from_str_radix(it, 16).ok());
        match code.filter(u8::is_ascii) {
            Some(code) => {
                decoded.push(char::from(code));
                rest = &rest[at + 3..];
            }
            None => {
                decoded.push('%');
                rest = &rest[at + 1..];
            }
        }
    }
    decoded + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(schema: Value, expected: Value, is_cut: bool) {
        let cleaned = clean(schema.as_object().unwrap());
        assert_eq!(cleaned, Cleaned { schema: expected, is_cut });
    }

    #[test]
    fn what_names_schemas_goes_and_what_they_say_stays() {
        check(
            json!({
                "$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "x",
                "type": "object",
                "properties": { "a": { "type": "string", "description": "A.", "$comment": "x" }, "$id": {} },
                "required": ["a"], "additionalProperties": false,
            }),
            json!({
                "type": "object",
                "properties": { "a": { "type": "string", "description": "A." } },
                "required": ["a"], "additionalProperties": false,
            }),
            true,
        );
        check(json!({}), json!({ "type": "object", "properties": {} }), false);
    }

    #[test]
    fn a_local_reference_is_put_in_its_place() {
        check(
            json!({
                "type": "object",
                "properties": { "a": { "$ref": "#/$defs/a%20b", "description": "Mine." } },
                "$defs": { "a b": { "type": "string", "description": "Its." } },
            }),
            json!({ "type": "object", "properties": { "a": { "type": "string", "description": "Mine." } } }),
            false,
        );
    }

    #[test]
    fn loops_and_references_to_elsewhere_allow_anything() {
        check(
            json!({
                "type": "object",
                "properties": {
                    "tree": { "$ref": "#/$defs/tree" },
                    "far": { "$ref": "https://evil.example/schema.json" },
                    "own": { "$ref": "#/nowhere" },
                },
                "$defs": { "tree": { "type": "object", "properties": { "left": { "$ref": "#/$defs/tree" } } } },
            }),
            json!({
                "type": "object",
                "properties": {
                    "tree": { "type": "object", "properties": { "left": {} } },
                    "far": {}, "own": {},
                },
            }),
            true,
        );
    }

    #[test]
    fn a_bomb_stays_small() {
        let mut defs = Map::new();
        for level in 0..40 {
            let next = json!({ "$ref": format!("#/$defs/d{}", level + 1) });
            let bomb =
                json!({ "type": "object", "properties": { "a": next, "b": next, "c": next } });
            defs.insert(format!("d{level}"), bomb);
        }
        let schema = json!({ "$ref": "#/$defs/d0", "$defs": defs });
        let cleaned = clean(schema.as_object().unwrap());
        assert!(cleaned.is_cut && cleaned.schema.to_string().len() <= SCHEMA_BYTES_MAX);
        let mut deep = json!({ "type": "string" });
        for _ in 0..500 {
            deep = json!({ "type": "object", "properties": { "x": deep } });
        }
        let cleaned = clean(deep.as_object().unwrap());
        assert!(cleaned.is_cut && cleaned.schema.to_string().matches("properties").count() < 30);
        let large = json!({ "type": "object", "properties": { "a": { "description": "x".repeat(SCHEMA_BYTES_MAX) } } });
        assert_eq!(
            clean(large.as_object().unwrap()),
            Cleaned { schema: json!({ "type": "object", "properties": {} }), is_cut: true }
        );
    }

    #[test]
    fn keywords_of_the_wrong_type_cost_themselves() {
        check(
            json!({
                "type": ["object", "null"], "required": "a", "properties": {
                    "a": { "type": "any" }, "b": { "enum": 1 }, "c": 1, "ok": true,
                    "a name with blanks": { "type": "string" },
                },
            }),
            json!({
                "type": "object",
                "properties": { "a": {}, "b": {}, "c": {}, "ok": true },
            }),
            true,
        );
    }

    #[test]
    fn a_required_property_that_no_vendor_takes_can_still_be_given() {
        check(
            json!({
                "type": "object", "properties": { "$filter": { "type": "string" }, "b": {} },
                "required": ["$filter", "b"], "additionalProperties": false,
            }),
            json!({ "type": "object", "properties": { "b": {} }, "required": ["b"] }),
            true,
        );
    }
}
