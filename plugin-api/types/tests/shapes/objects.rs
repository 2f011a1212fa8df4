//! The JSON of the service `objects`.

use std::fmt::Write as _;

use jaato_types::objects::*;
use serde_json::{Value, json};

use super::{ShapeList, to_map};

/// Adds the lines of this module.
pub fn add_shapes(shapes: &mut ShapeList) {
    shapes.start_section("services: objects");
    writeln!(shapes.text, "{RESULT} {ADD} {APPEND} {GET} {GET_OBJECTS} {REPLACE} {REMOVE}")
        .unwrap();
    writeln!(shapes.text, "{IS_EMPTY} {HIDDEN_GET} {HIDDEN_SET} {REFERENCE_KEY}").unwrap();
    writeln!(shapes.text, "{TOOLS} {CLEAR} {HIDDEN_KEYS}").unwrap();
    let moon = || to_map(json!({ "name": "moon" }));
    let filter = ObjectsFilter {
        tool: Some("look".to_owned()),
        metadata: Some(to_map(json!({ "sky": "night" }))),
        metadata_key: Some("sky".to_owned()),
        metadata_value: Some(Value::Null),
    };
    shapes.add(&EnvironmentItem {
        name: Some("moons".to_owned()),
        metadata: to_map(json!({ "sky": "night" })),
        objects: vec![moon()],
    });
    shapes.add(&ObjectsAdd {
        tool: Some("look".to_owned()),
        name: Some("moons".to_owned()),
        objects: vec![moon()],
        metadata: to_map(json!({ "sky": "night" })),
        include_duplicates: true,
        payload_type: Some("table".to_owned()),
        text: Some("a moon".to_owned()),
        mapping: [("title".to_owned(), "name".to_owned())].into(),
    });
    shapes.add(&filter);
    shapes.add(&ObjectsChange { filter, objects: vec![moon()] });
    shapes.add(&ObjectsChangeAnswer { matched: 1, references: vec!["r1".to_owned()] });
    shapes.add(&ObjectItemsAnswer { items: Some(Vec::new()) });
    shapes.add(&ObjectsAnswer { objects: Some(vec![moon()]) });
    shapes.add(&ObjectsEmptyAnswer { is_empty: true });
    let look = ToolObjects::new("look", 1, 2);
    shapes.add(&look);
    shapes.add(&ObjectToolsAnswer { tools: vec![look] });
    shapes.add(&ObjectsClear { hidden: true });
    shapes.add(&HiddenKeys { keys: vec!["k".to_owned()] });
    shapes.add(&HiddenKey { key: "k".to_owned() });
    let value = HiddenValueEncoding { json: Some(Value::Null), bytes: true };
    shapes.add(&HiddenSet { key: "k".to_owned(), value: value.clone() });
    shapes.add(&HiddenValueAnswer { value });
}
