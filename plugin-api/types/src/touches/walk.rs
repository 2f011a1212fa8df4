//! Walks a schema and the arguments of a call together.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{ArgumentUse, KEYWORD, ToolCallTargets};

/// The maximum nesting depth of arguments.
const DEPTH_MAX: usize = 32;

/// The maximum number of values in a call.
const VALUES_MAX: usize = 10_000;

/// The maximum number of schemas that can apply to one value. Nested alternatives multiply.
const SCHEMAS_MAX: usize = 64;

/// A schema that can apply to a value, with the kind in effect there.
#[derive(Clone)]
pub(super) struct SchemaPosition<'a> {
    /// `None` if nothing is known about the value.
    pub(super) schema: Option<&'a Value>,
    pub(super) kind: Option<ArgumentUse>,
}

impl<'a> SchemaPosition<'a> {
    fn keyword_value(&self, name: &str) -> Option<&'a Value> {
        self.schema?.get(name)
    }

    /// Returns a nested place, which inherits the kind.
    fn nested_position(&self, schema: Option<&'a Value>) -> Self {
        Self { schema, kind: self.kind.clone() }
    }

    fn is_same(&self, other: &Self) -> bool {
        let is_same_schema = match (self.schema, other.schema) {
            (Some(one), Some(other)) => std::ptr::eq(one, other),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        is_same_schema && self.kind == other.kind
    }

    /// Returns true if values of a type are possible here.
    fn can_have_type(&self, wanted: &str) -> bool {
        self.keyword_value("type").is_none() || self.has_type_name(wanted)
    }

    fn has_type_name(&self, wanted: &str) -> bool {
        match self.keyword_value("type") {
            Some(Value::String(name)) => name == wanted,
            Some(Value::Array(names)) => names.iter().any(|name| name == wanted),
            _ => false,
        }
    }

    /// Returns the schema of an item of a list.
    fn item_schema(&self, at: usize) -> Option<&'a Value> {
        let listed = ["prefixItems", "items"]
            .into_iter()
            .find_map(|name| self.keyword_value(name).and_then(Value::as_array)?.get(at));
        let others = || self.keyword_value("items").filter(|items| items.is_object());
        listed.or_else(others).or_else(|| self.keyword_value("additionalItems"))
    }

    /// Returns the schema of a named property.
    fn property_schema(&self, name: &str) -> Option<&'a Value> {
        self.keyword_value("properties")?.get(name)
    }

    /// Returns a schema for properties whose names the caller chooses.
    fn free_property_schema(&self) -> Option<&'a Value> {
        let by_pattern = self.keyword_value("patternProperties").and_then(Value::as_object);
        let first = by_pattern.and_then(|schemas| schemas.values().next());
        first.or_else(|| self.keyword_value("additionalProperties").filter(|it| it.is_object()))
    }

    /// Returns true if the author of the schema lists all values, so that the caller cannot choose
    /// a path.
    fn has_listed_values(&self) -> bool {
        self.keyword_value("enum").is_some() || self.keyword_value("const").is_some()
    }

    /// Returns true if other schemas define the strings here.
    fn is_combined_schema(&self) -> bool {
        ["anyOf", "oneOf", "allOf", "$ref"].iter().any(|name| self.keyword_value(name).is_some())
    }
}

/// Whether to trust the author of a schema.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum SchemaTrust {
    Declarations,
    Nothing,
}

pub(super) struct SchemaWalk<'a> {
    root: &'a Value,
    trust: SchemaTrust,
    left: usize,
    touched: ToolCallTargets,
}

impl<'a> SchemaWalk<'a> {
    pub(super) fn new(root: &'a Value, trust: SchemaTrust) -> Self {
        Self { root, trust, left: VALUES_MAX, touched: ToolCallTargets::default() }
    }

    pub(super) fn visit_arguments(mut self, arguments: &Value) -> ToolCallTargets {
        let places = self.all_positions(SchemaPosition { schema: Some(self.root), kind: None });
        self.visit_value("", arguments, &places, 0);
        self.touched
    }

    /// Returns a place with all alternatives, parts and references of its schema.
    fn all_positions(&self, place: SchemaPosition<'a>) -> Vec<SchemaPosition<'a>> {
        let mut found: Vec<SchemaPosition<'a>> = Vec::new();
        let mut open = vec![place];
        while let Some(mut place) = open.pop() {
            if found.len() >= SCHEMAS_MAX {
                return vec![SchemaPosition { schema: None, kind: None }];
            }
            if let (Some(declared), SchemaTrust::Declarations) =
                (place.keyword_value(KEYWORD), self.trust)
            {
                // An invalid keyword declares nothing.
                place.kind = ArgumentUse::parse(declared);
            }
            if found.iter().any(|known| known.is_same(&place)) {
                continue;
            }
            for name in ["anyOf", "oneOf", "allOf"] {
                let schemas =
                    place.keyword_value(name).and_then(Value::as_array).into_iter().flatten();
                open.extend(schemas.map(|schema| place.nested_position(Some(schema))));
            }
            for name in ["then", "else"] {
                open.extend(
                    place.keyword_value(name).map(|schema| place.nested_position(Some(schema))),
                );
            }
            if let Some(reference) = place.keyword_value("$ref").and_then(Value::as_str) {
                let target = reference.strip_prefix('#');
                open.push(
                    place.nested_position(target.and_then(|pointer| self.root.pointer(pointer))),
                );
            }
            found.push(place);
        }
        found
    }

    fn visit_value(
        &mut self,
        name: &str,
        value: &Value,
        places: &[SchemaPosition<'a>],
        depth: usize,
    ) {
        if self.left == 0 || depth > DEPTH_MAX {
            self.touched.everything = true;
            return;
        }
        self.left -= 1;
        match value {
            Value::String(text) => self.visit_string(name, text, places),
            Value::Array(items) => {
                for (at, item) in items.iter().enumerate() {
                    let below = self.positions_below(places, |place| place.item_schema(at));
                    self.visit_value(name, item, &below, depth + 1);
                }
            }
            Value::Object(entries) => {
                for (key, value) in entries {
                    if !places.iter().any(|place| place.property_schema(key).is_some()) {
                        // The caller chose the key.
                        let keys = self
                            .positions_below(places, |place| place.keyword_value("propertyNames"));
                        self.visit_string(name, key, &keys);
                    }
                    let below = self.positions_below(places, |place| {
                        place.property_schema(key).or_else(|| place.free_property_schema())
                    });
                    self.visit_value(key, value, &below, depth + 1);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Returns the places below some places, according to the matching schemas. If there are none,
    /// only the kinds continue.
    fn positions_below(
        &self,
        places: &[SchemaPosition<'a>],
        find: impl Fn(&SchemaPosition<'a>) -> Option<&'a Value>,
    ) -> Vec<SchemaPosition<'a>> {
        let found =
            places.iter().filter_map(|place| Some(place.nested_position(Some(find(place)?))));
        let found: Vec<_> = found.flat_map(|place| self.all_positions(place)).collect();
        if found.is_empty() {
            return places.iter().map(|place| place.nested_position(None)).collect();
        }
        found
    }

    fn visit_string(&mut self, name: &str, text: &str, places: &[SchemaPosition<'a>]) {
        let places = places
            .iter()
            .filter(|place| place.can_have_type("string") && !place.is_combined_schema());
        let mut kinds: Vec<Option<&ArgumentUse>> = Vec::new();
        let mut is_listed = false;
        for place in places {
            if place.has_listed_values() && self.trust == SchemaTrust::Declarations {
                is_listed = true;
            } else if !kinds.contains(&place.kind.as_ref()) {
                kinds.push(place.kind.as_ref());
            }
        }
        if kinds.is_empty() && !is_listed {
            kinds.push(None);
        }
        kinds.into_iter().for_each(|kind| self.touched.record_target(kind, name, text));
    }

    /// Finds the strings that a schema takes.
    pub(super) fn visit_schema(
        &mut self,
        path: &str,
        place: &SchemaPosition<'a>,
        depth: usize,
        found: &mut StringPositions,
    ) {
        if self.left == 0 || depth > DEPTH_MAX {
            found.insert((format!("{path}: more than is read"), None));
            return;
        }
        self.left -= 1;
        for place in self.all_positions(place.clone()) {
            if place.has_listed_values() {
                continue;
            }
            if place.can_have_type("string") && !place.is_combined_schema() {
                found.insert((path.to_owned(), place.kind.clone()));
            }
            if place.has_type_name("array") || place.keyword_value("items").is_some() {
                let inside = format!("{path}[]");
                let listed = place.keyword_value("prefixItems").and_then(Value::as_array);
                let items = listed.into_iter().flatten().chain(place.item_schema(usize::MAX));
                let items: Vec<_> = items.map(|items| place.nested_position(Some(items))).collect();
                if items.is_empty() {
                    found.insert((inside.clone(), place.kind.clone()));
                }
                for items in items {
                    self.visit_schema(&inside, &items, depth + 1, found);
                }
            }
            if place.has_type_name("object") || place.keyword_value("properties").is_some() {
                self.visit_properties(path, &place, depth, found);
            }
        }
    }

    fn visit_properties(
        &mut self,
        path: &str,
        place: &SchemaPosition<'a>,
        depth: usize,
        found: &mut StringPositions,
    ) {
        let named = |name: &str| match path {
            "" => name.to_owned(),
            _ => format!("{path}.{name}"),
        };
        let properties = place.keyword_value("properties").and_then(Value::as_object);
        for (name, schema) in properties.into_iter().flatten() {
            self.visit_schema(&named(name), &place.nested_position(Some(schema)), depth + 1, found);
        }
        let is_closed = place.keyword_value("additionalProperties") == Some(&Value::Bool(false));
        if is_closed && place.keyword_value("patternProperties").is_none() {
            return;
        }
        // The caller chooses keys and values.
        let keys =
            place.keyword_value("propertyNames").map(|schema| place.nested_position(Some(schema)));
        for keys in keys.iter().flat_map(|keys| self.all_positions(keys.clone())) {
            found.insert((named("*"), keys.kind));
        }
        if keys.is_none() {
            found.insert((named("*"), place.kind.clone()));
        }
        match place.free_property_schema() {
            Some(schema) => {
                self.visit_schema(
                    &named("*"),
                    &place.nested_position(Some(schema)),
                    depth + 1,
                    found,
                );
            }
            None => _ = found.insert((named("*"), place.kind.clone())),
        }
    }
}

/// The places of strings, with their declared kinds.
type StringPositions = BTreeSet<(String, Option<ArgumentUse>)>;
