//! Lowers a server's schema to one that all vendors accept and the host can check. Lowering never
//! fails.
//!
//! The result is JSON Schema 2020-12 with an object at the root, without references, `allOf` and
//! `oneOf`, and with property names from `[A-Za-z0-9_.-]`. Local `$ref`s are replaced by their
//! targets down to a depth limit, and nothing is ever fetched. A part that cannot be kept becomes
//! `{}`, which allows anything. Allowing too much is safe because the server checks its arguments
//! itself. Refusing arguments that the server accepts is not.

mod merge;
mod older_forms;

use std::collections::BTreeMap;

use jaato_plugin_sdk::serde_json::{Map, Value, json};
use percent_encoding::percent_decode_str;

use crate::names::legal_short_name;

/// The maximum depth of a schema. The host accepts 32.
const DEPTH_MAX: usize = 24;
/// The maximum number of values in one schema, with references resolved. Definitions that refer to
/// each other would otherwise double it with each level.
const NODES_MAX: usize = 4000;
/// The maximum size of a schema, in bytes of JSON. The host accepts 128 KiB.
pub const SCHEMA_BYTES_MAX: usize = 96 * 1024;
/// The maximum length of a property name that vendors accept.
const PROPERTY_BYTES_MAX: usize = 64;

/// Keywords that do not constrain arguments, or that would refuse more once another part is left
/// out. Keywords that begin with `$` are dropped too.
const DROPPED: [&str; 9] = [
    "contentSchema",
    "definitions",
    "discriminator",
    "nullable",
    "oneOf",
    "unevaluatedItems",
    "unevaluatedProperties",
    "x-mcp-header",
    "x-nullable",
];
/// Keywords that hold one schema.
const ONE: [&str; 8] =
    ["additionalProperties", "contains", "else", "if", "items", "not", "propertyNames", "then"];
/// Keywords that hold a list of schemas.
const LISTS: [&str; 3] = ["allOf", "anyOf", "prefixItems"];
/// Keywords that hold schemas by name.
const MAPS: [&str; 3] = ["dependentSchemas", "patternProperties", "properties"];

/// A schema of arguments that vendors and the host accept.
#[derive(Debug, Default, PartialEq)]
pub struct LoweredSchema {
    /// The schema.
    pub schema: Value,
    /// The server's property names by the names that replace them in the schema.
    pub aliases: BTreeMap<String, String>,
    /// Whether a part was left out.
    pub is_cut: bool,
}

/// Lowers the schema of a tool's arguments.
pub fn lower_schema(schema: &Map<String, Value>) -> LoweredSchema {
    let root = Value::Object(schema.clone());
    for check in [KeywordCheck::Whole, KeywordCheck::EachKeyword] {
        let lowered = SchemaLowering::lower_root(&root, check);
        let is_small = lowered.schema.to_string().len() <= SCHEMA_BYTES_MAX;
        if is_small && is_valid_schema(&lowered.schema) {
            return lowered;
        }
    }
    let schema = json!({ "type": "object", "properties": {} });
    LoweredSchema { schema, is_cut: true, ..LoweredSchema::default() }
}

/// Restores the server's property names in a call's arguments.
pub fn restore_property_names(
    aliases: &BTreeMap<String, String>,
    arguments: Map<String, Value>,
) -> Map<String, Value> {
    let restored = |(name, value): (String, Value)| {
        (aliases.get(&name).cloned().unwrap_or(name), restore_value(aliases, value))
    };
    arguments.into_iter().map(restored).collect()
}

fn restore_value(aliases: &BTreeMap<String, String>, value: Value) -> Value {
    match value {
        Value::Object(map) => Value::Object(restore_property_names(aliases, map)),
        Value::Array(list) => list.into_iter().map(|it| restore_value(aliases, it)).collect(),
        plain => plain,
    }
}

/// Returns true if the host can check values against a schema.
fn is_valid_schema(schema: &Value) -> bool {
    jsonschema::draft202012::new(schema).is_ok()
}

/// How to find keywords that the validator refuses.
#[derive(Clone, Copy, PartialEq, Eq)]
enum KeywordCheck {
    /// Only the whole schema is checked, which is fast. Most schemas are valid.
    Whole,
    /// Each keyword is checked alone and left out if it is invalid.
    EachKeyword,
}

struct SchemaLowering<'a> {
    root: &'a Value,
    check: KeywordCheck,
    nodes: usize,
    /// References that are being resolved.
    open: Vec<String>,
    aliases: BTreeMap<String, String>,
    is_cut: bool,
}

impl<'a> SchemaLowering<'a> {
    fn lower_root(root: &'a Value, check: KeywordCheck) -> LoweredSchema {
        let (nodes, open, aliases, is_cut) = (0, Vec::new(), BTreeMap::new(), false);
        let mut lowering = Self { root, check, nodes, open, aliases, is_cut };
        let mut schema = match lowering.lower_any_schema(root, 0) {
            Value::Object(map) => map,
            _ => Map::new(),
        };
        merge::flatten_root(&mut schema);
        // Arguments are always an object, so other types in the schema do not matter.
        schema.insert("type".to_owned(), json!("object"));
        if !schema.contains_key("properties") {
            schema.insert("properties".to_owned(), json!({}));
        }
        let Self { aliases, is_cut, .. } = lowering;
        LoweredSchema { schema: Value::Object(schema), aliases, is_cut }
    }

    fn cut_schema(&mut self) -> Value {
        self.is_cut = true;
        json!({})
    }

    /// Lowers a schema to an object, or to `false`.
    fn lower_any_schema(&mut self, schema: &Value, depth: usize) -> Value {
        self.nodes += 1;
        let map = match schema {
            Value::Bool(true) => return json!({}),
            Value::Bool(false) => return json!(false),
            Value::Object(map) => map,
            _ => return self.cut_schema(),
        };
        if depth >= DEPTH_MAX || self.nodes > NODES_MAX {
            return self.cut_schema();
        }
        let mut lowered = self.lower_keywords(map, depth);
        if let Some(reference) = map.get("$ref").and_then(Value::as_str) {
            match self.lower_reference(reference, depth) {
                Some(Value::Object(mut target)) => {
                    merge::merge_schema(&mut target, lowered);
                    self.is_cut |= merge::resolve_contradictions(&mut target);
                    lowered = target;
                }
                Some(never) if lowered.is_empty() => return never,
                Some(_) => {}
                None => self.is_cut = true,
            }
        }
        if ["nullable", "x-nullable"].iter().any(|key| map.get(*key) == Some(&Value::Bool(true))) {
            older_forms::allow_null(&mut lowered);
        }
        Value::Object(lowered)
    }

    /// Lowers the target of a reference. Returns `None` for a missing target or a loop.
    fn lower_reference(&mut self, reference: &str, depth: usize) -> Option<Value> {
        let own = ["$id", "id"].iter().find_map(|key| self.root.get(*key)?.as_str());
        let local = own.and_then(|own| reference.strip_prefix(own)).unwrap_or(reference);
        let target =
            self.root.pointer(&percent_decode_str(local.strip_prefix('#')?).decode_utf8_lossy())?;
        if self.open.iter().any(|open| open == local) {
            return None;
        }
        self.open.push(local.to_owned());
        let lowered = self.lower_any_schema(target, depth + 1);
        self.open.pop();
        Some(lowered)
    }

    fn lower_keywords(&mut self, map: &Map<String, Value>, depth: usize) -> Map<String, Value> {
        let mut lowered = Map::new();
        let is_tuple = map.get("items").is_some_and(Value::is_array);
        for (key, value) in map {
            let (key, value) = match (key.as_str(), value) {
                ("items", Value::Array(list)) => {
                    ("prefixItems", self.lower_schema_list("prefixItems", list, depth))
                }
                ("additionalItems", value) if is_tuple => {
                    ("items", self.lower_subschema("items", value, depth))
                }
                ("oneOf", Value::Array(list)) if !map.contains_key("anyOf") => {
                    ("anyOf", self.lower_schema_list("anyOf", list, depth))
                }
                ("dependencies", Value::Object(named)) => {
                    self.lower_dependencies(named, depth, &mut lowered);
                    continue;
                }
                ("type", Value::String(name)) if name.eq_ignore_ascii_case("any") => continue,
                ("additionalItems" | "dependencies", _) | ("id", Value::String(_)) => continue,
                ("exclusiveMinimum" | "exclusiveMaximum", Value::Bool(_)) => continue,
                (key, _) if key.starts_with('$') || DROPPED.contains(&key) => continue,
                (key, value) if ONE.contains(&key) => {
                    (key, self.lower_subschema(key, value, depth))
                }
                (key, Value::Array(list)) if LISTS.contains(&key) => {
                    (key, self.lower_schema_list(key, list, depth))
                }
                (key, Value::Object(named)) if MAPS.contains(&key) => {
                    (key, Some(Value::Object(self.lower_named_schemas(key, named, depth))))
                }
                (key, _) if LISTS.contains(&key) || MAPS.contains(&key) => (key, None),
                (key, value) => (key, self.lower_plain_value(key, value)),
            };
            match value {
                Some(value) => drop(lowered.insert(key.to_owned(), value)),
                None => self.is_cut = true,
            }
        }
        let patterns = |map: &Map<String, Value>| {
            map.get("patternProperties").and_then(Value::as_object).map_or(0, Map::len)
        };
        if self.nodes > NODES_MAX || patterns(&lowered) < patterns(map) {
            // The server may accept the properties that were left out.
            lowered.remove("additionalProperties");
        }
        if !self.aliases.is_empty() {
            // The keyword refers to the server's names.
            lowered.remove("propertyNames");
        }
        older_forms::convert_exclusive_bounds(map, &mut lowered);
        if let Some(Value::Array(all)) = lowered.remove("allOf") {
            all.into_iter().for_each(|one| match one {
                Value::Object(one) => merge::merge_schema(&mut lowered, one),
                _ => self.is_cut = true,
            });
        }
        self.is_cut |= merge::resolve_contradictions(&mut lowered);
        lowered
    }

    /// Lowers a schema that a keyword holds.
    fn lower_subschema(&mut self, key: &str, value: &Value, depth: usize) -> Option<Value> {
        if !value.is_object() && !value.is_boolean() {
            return None;
        }
        match self.lower_any_schema(value, depth + 1) {
            // Inside these keywords, a schema that allows more would make the whole refuse more.
            lowered if ["if", "not"].contains(&key) => Some(lowered).filter(|it| it == value),
            Value::Bool(_) if key != "items" && key != "additionalProperties" => None,
            lowered => Some(lowered),
        }
    }

    /// Lowers a list of schemas. In a choice, a schema that allows nothing is left out.
    fn lower_schema_list(&mut self, key: &str, list: &[Value], depth: usize) -> Option<Value> {
        let mut lowered = Vec::new();
        for schema in list {
            match self.lower_any_schema(schema, depth + 1) {
                Value::Bool(_) if key == "prefixItems" => lowered.push(self.cut_schema()),
                Value::Bool(_) => self.is_cut = true,
                schema => lowered.push(schema),
            }
        }
        (!lowered.is_empty()).then_some(Value::Array(lowered))
    }

    /// Lowers schemas by name. A property that cannot have a value is left out.
    fn lower_named_schemas(
        &mut self,
        key: &str,
        named: &Map<String, Value>,
        depth: usize,
    ) -> Map<String, Value> {
        let mut lowered = Map::new();
        for (name, schema) in named {
            let is_pattern = key == "patternProperties";
            if self.nodes > NODES_MAX
                || (is_pattern && !self.is_keyword_accepted(key, &json!({ name: {} })))
            {
                self.is_cut = true;
                continue;
            }
            let Value::Object(mut schema) = self.lower_any_schema(schema, depth + 1) else {
                continue;
            };
            let known = if is_pattern { name.clone() } else { self.property_alias(name) };
            if key == "properties" && known != *name {
                let about = schema.get("description").and_then(Value::as_str).unwrap_or_default();
                let about = format!("The server calls it `{name}`. {about}");
                schema.insert("description".to_owned(), about.trim_end().into());
            }
            lowered.insert(known, Value::Object(schema));
        }
        lowered
    }

    /// Splits the older keyword into the two that replaced it.
    fn lower_dependencies(
        &mut self,
        named: &Map<String, Value>,
        depth: usize,
        lowered: &mut Map<String, Value>,
    ) {
        let (lists, schemas): (Map<_, _>, Map<_, _>) =
            named.clone().into_iter().partition(|(_, value)| value.is_array());
        if let Some(lists) = self.lower_plain_value("dependentRequired", &Value::Object(lists)) {
            lowered.insert("dependentRequired".to_owned(), lists);
        }
        if !schemas.is_empty() {
            let schemas = self.lower_named_schemas("dependentSchemas", &schemas, depth);
            lowered.insert("dependentSchemas".to_owned(), Value::Object(schemas));
        }
    }

    /// Lowers a keyword whose value is not a schema. Returns `None` for an invalid value.
    fn lower_plain_value(&mut self, key: &str, value: &Value) -> Option<Value> {
        self.nodes += 1;
        let lowered = match key {
            "type" => older_forms::known_types(value)?,
            "required" => self.lower_property_names(value)?,
            "dependentRequired" => {
                let lists = value.as_object()?.iter();
                lists
                    .map(|(name, list)| {
                        Some((self.property_alias(name), self.lower_property_names(list)?))
                    })
                    .collect::<Option<Map<_, _>>>()?
                    .into()
            }
            "enum" if value.as_array().is_none_or(Vec::is_empty) => return None,
            "title" | "description" if !value.is_string() => return None,
            _ => value.clone(),
        };
        (self.nodes <= NODES_MAX && self.is_keyword_accepted(key, &lowered)).then_some(lowered)
    }

    /// Returns true if the validator accepts a keyword, or if keywords are not checked
    /// individually.
    fn is_keyword_accepted(&self, key: &str, value: &Value) -> bool {
        self.check == KeywordCheck::Whole || is_valid_schema(&json!({ key: value }))
    }

    /// Lists property names without duplicates.
    fn lower_property_names(&mut self, value: &Value) -> Option<Value> {
        let mut names: Vec<Value> = Vec::new();
        for name in value.as_array()?.iter().filter_map(Value::as_str) {
            let name = Value::String(self.property_alias(name));
            if !names.contains(&name) {
                names.push(name);
            }
        }
        Some(Value::Array(names))
    }

    /// Returns the name of a property for vendors: its own, or an alias that ends with part of its
    /// digest.
    fn property_alias(&mut self, name: &str) -> String {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
        if (1..=PROPERTY_BYTES_MAX).contains(&name.len()) && name.bytes().all(is_plain) {
            return name.to_owned();
        }
        let alias = legal_short_name(name, PROPERTY_BYTES_MAX);
        self.aliases.insert(alias.clone(), name.to_owned());
        alias
    }
}
