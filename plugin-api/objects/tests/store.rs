//! Tests of the store as tools use it, with the examples of the seed and cases that they do not
//! cover.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use jaato_objects::{
    ENVIRONMENT_BYTES_MAX, HiddenValue, ItemFilter, Object, ObjectEnvironment, ObjectSelection,
    ObjectsAddition, estimate_tokens,
};
use jaato_types::objects::ObjectsChangeAnswer;
use jaato_types::{ErrorKind, Result};
use serde_json::{Value, json};

fn to_object(value: Value) -> Object {
    value.as_object().unwrap().clone()
}

fn to_objects(values: &[Value]) -> Vec<Object> {
    values.iter().cloned().map(to_object).collect()
}

fn add_item(
    store: &mut ObjectEnvironment,
    tool: &str,
    values: &[Value],
    metadata: Value,
) -> ObjectsChangeAnswer {
    store.add(tool, ObjectsAddition::new(to_objects(values), to_object(metadata))).unwrap()
}

/// Returns the objects without their references.
fn contents_of(found: Option<Vec<Object>>) -> Value {
    let mut found = found.unwrap();
    found.iter_mut().for_each(|object| drop(object.remove("_REF_ID")));
    json!(found)
}

fn error_kind<T: std::fmt::Debug>(result: Result<T>) -> ErrorKind {
    result.unwrap_err().kind
}

fn pet_environment() -> ObjectEnvironment {
    let mut store = ObjectEnvironment::default();
    let frog = json!({ "animal": "frog", "price": 3.99 });
    let metadata = json!({ "collection_name": "pet_food", "query_search_term": "animals" });
    add_item(&mut store, "query", &[frog], metadata);
    let average = json!({ "average_price": 5.28 });
    let group = json!({ "field": "animal", "value": "reindeer" });
    let metadata = json!({ "collection_name": "pet_food", "group_by": group });
    add_item(&mut store, "query", &[average], metadata);
    store
}

#[test]
fn objects_with_equal_metadata_join_one_item() {
    let mut store = ObjectEnvironment::default();
    assert!(store.is_empty(None) && store.is_empty(Some("query")));
    let first = add_item(&mut store, "query", &[json!({ "a": 1 })], json!({ "m": 1, "n": [2] }));
    let second = add_item(&mut store, "query", &[json!({ "a": 2 })], json!({ "n": [2.0], "m": 1 }));
    add_item(&mut store, "query", &[json!({ "a": 3 })], json!({ "m": 2, "n": [2] }));
    assert_eq!(first.references, ["query_1"]);
    assert_eq!(second.references, ["query_2"]);
    let items = store.get("query").unwrap();
    assert_eq!(items.len(), 2);
    assert_eq!(items[0].objects.len(), 2);
    assert!(!store.is_empty(None) && store.is_empty(Some("other")));
    assert_eq!(store.get("other"), None);
}

#[test]
fn item_with_a_name_is_separate_from_unnamed_ones() {
    let mut store = ObjectEnvironment::default();
    for name in [Some("animal_description"), None, Some("animal_description")] {
        let objects = to_objects(&[json!({ "animal": "frog" })]);
        let include_duplicates = true;
        let addition = ObjectsAddition {
            name: name.map(str::to_owned),
            objects,
            include_duplicates,
            ..ObjectsAddition::default()
        };
        store.add("descriptor", addition).unwrap();
    }
    let items = store.get("descriptor").unwrap();
    let shown: Vec<_> = items.iter().map(|it| (it.name.as_deref(), it.objects.len())).collect();
    assert_eq!(shown, [(Some("animal_description"), 2), (None, 1)]);
}

#[test]
fn duplicate_object_of_an_item_is_stored_again_only_on_request() {
    let mut store = ObjectEnvironment::default();
    let row = || json!({ "a": 1, "b": { "c": 2 } });
    assert_eq!(add_item(&mut store, "q", &[row()], json!({})).references, ["q_1"]);
    let same = json!({ "b": { "c": 2.0 }, "a": 1 });
    assert_eq!(add_item(&mut store, "q", &[same], json!({})).references, ["q_1"]);
    let again = ObjectsAddition {
        include_duplicates: true,
        ..ObjectsAddition::new(to_objects(&[row()]), Object::new())
    };
    assert_eq!(store.add("q", again).unwrap().references, ["q_2"]);
    // In another item, it is a new object.
    assert_eq!(add_item(&mut store, "q", &[row()], json!({ "m": 1 })).references, ["q_3"]);
}

#[test]
fn equal_rows_of_one_result_are_separate_objects() {
    let mut store = ObjectEnvironment::default();
    let row = || json!({ "animal": "frog" });
    let other = || json!({ "animal": "toad" });
    let two = [row(), other(), row()];
    assert_eq!(add_item(&mut store, "q", &two, json!({})).references, ["q_1", "q_2", "q_3"]);
    // The same result again adds nothing.
    assert_eq!(add_item(&mut store, "q", &two, json!({})).references, ["q_1", "q_2", "q_3"]);
    // A result with more equal rows adds only the additional ones.
    let three = [row(), row(), row()];
    assert_eq!(add_item(&mut store, "q", &three, json!({})).references, ["q_1", "q_3", "q_4"]);
    assert_eq!(store.get_objects("q", None).unwrap().len(), 4);
}

#[test]
fn objects_are_appended_to_an_item_that_is_there() {
    let mut store = pet_environment();
    let filter = ItemFilter::key("query_search_term", json!("animals"));
    let reindeer = to_objects(&[json!({ "animal": "reindeer", "price": 12.99 })]);
    let changed = store.append("query", reindeer.clone(), &filter).unwrap();
    assert_eq!(changed, ObjectsChangeAnswer { matched: 1, references: vec!["query_3".into()] });
    let expected =
        json!([{ "animal": "frog", "price": 3.99 }, { "animal": "reindeer", "price": 12.99 }]);
    assert_eq!(contents_of(store.get_objects("query", Some(&filter))), expected);
    let none = ItemFilter::key("query_search_term", json!("plants"));
    let error = store.append("query", reindeer.clone(), &none).unwrap_err();
    assert_eq!(
        error.message,
        "no item of `query` has `query_search_term` = \"plants\" in its metadata"
    );
    assert_eq!(error_kind(store.append("other", reindeer, &none)), ErrorKind::NotFound);
}

#[test]
fn objects_are_found_by_the_whole_metadata_by_a_key_or_all() {
    let store = pet_environment();
    let both = ItemFilter::key("collection_name", json!("pet_food"));
    let count = |filter: Option<&ItemFilter>| store.get_objects("query", filter).map(|it| it.len());
    assert_eq!(count(Some(&both)), Some(2));
    assert_eq!(count(None), Some(2));
    let whole = to_object(json!({ "collection_name": "pet_food", "query_search_term": "animals" }));
    assert_eq!(count(Some(&ItemFilter::Metadata(whole.clone()))), Some(1));
    let part = to_object(json!({ "collection_name": "pet_food" }));
    assert_eq!(count(Some(&ItemFilter::Metadata(part))), None);
    assert_eq!(store.get_objects("other", None), None);
}

#[test]
fn every_item_that_matches_is_replaced_and_keeps_its_metadata() {
    let mut store = pet_environment();
    let both = ItemFilter::key("collection_name", json!("pet_food"));
    let mut found = store.get_objects("query", Some(&both)).unwrap();
    found.truncate(1);
    found[0].insert("price".into(), json!(1));
    let changed = store.replace("query", found, &both).unwrap();
    assert_eq!(changed.matched, 2);
    let items = store.get("query").unwrap();
    assert_eq!(items[1].metadata["group_by"]["value"], "reindeer");
    let reference = |at: usize| items[at].objects[0]["_REF_ID"].as_str().unwrap();
    // An object keeps its reference only in its own item, because references are unique.
    assert_eq!((reference(0), reference(1)), ("query_1", "query_3"));
    assert_eq!(changed.references, ["query_1"]);
    assert_eq!(items[0].objects[0]["price"], 1);
    let none = ItemFilter::key("collection_name", Value::Null);
    assert_eq!(error_kind(store.replace("query", Vec::new(), &none)), ErrorKind::NotFound);
}

#[test]
fn item_without_objects_keeps_its_metadata_and_counts_as_empty() {
    let mut store = pet_environment();
    add_item(&mut store, "other", &[json!({})], json!({}));
    let filter = ItemFilter::key("query_search_term", json!("animals"));
    assert_eq!(store.remove("query", Some(&filter)).unwrap().matched, 1);
    let items = store.get("query").unwrap();
    assert_eq!((items.len(), items[0].objects.len(), items[1].objects.len()), (2, 0, 1));
    assert_eq!(items[0].metadata["query_search_term"], "animals");
    assert_eq!(store.get_objects("query", Some(&filter)), Some(Vec::new()));
    assert_eq!(store.remove("query", None).unwrap().matched, 2);
    assert!(store.is_empty(Some("query")) && !store.is_empty(None));
    store.remove("other", None).unwrap();
    assert!(store.is_empty(None));
    assert_eq!(error_kind(store.remove("never", None)), ErrorKind::NotFound);
    assert_eq!(store.get("never"), None, "asking makes no tool");
}

#[test]
fn references_of_other_tools_are_replaced() {
    let mut store = pet_environment();
    let known = store.get_objects("query", None).unwrap();
    let changed = store.add("other", ObjectsAddition::new(known, Object::new())).unwrap();
    assert_eq!(changed.references, ["other_1", "other_2"]);
    let odd = add_item(&mut store, "other", &[json!({ "_REF_ID": 7, "x": 1 })], json!({}));
    assert_eq!(odd.references, ["other_3"]);
}

#[test]
fn hidden_values_are_not_shown_to_the_model_and_can_be_removed() {
    let mut store = ObjectEnvironment::default();
    let before = store.revision();
    assert_eq!(store.set_hidden("k", Some(HiddenValue::Json(json!(1)))).unwrap(), None);
    let bytes = HiddenValue::Bytes(vec![1, 2]);
    let old = store.set_hidden("k", Some(bytes.clone())).unwrap();
    assert_eq!(old, Some(HiddenValue::Json(json!(1))));
    assert_eq!(store.set_hidden("k", None).unwrap(), Some(bytes));
    assert!(store.hidden_values().is_empty() && store.is_empty(None));
    assert_eq!(store.revision(), before, "the model sees nothing of it");
    assert_eq!(store.render(0, 1000), None);
}

#[test]
fn environment_over_its_size_limit_is_unchanged() {
    let mut store = pet_environment();
    let most = HiddenValue::Bytes(vec![0; ENVIRONMENT_BYTES_MAX - 10_000]);
    store.set_hidden("most", Some(most)).unwrap();
    let saved = store.save();
    let huge = "x".repeat(6_000);
    let two = to_objects(&[json!({ "a": huge }), json!({ "b": huge })]);
    let both = ItemFilter::key("collection_name", json!("pet_food"));
    let addition = ObjectsAddition::new(two.clone(), Object::new());
    assert_eq!(error_kind(store.add("q", addition)), ErrorKind::LimitReached);
    assert_eq!(error_kind(store.append("query", two.clone(), &both)), ErrorKind::LimitReached);
    assert_eq!(
        error_kind(store.replace("query", two[..1].to_vec(), &both)),
        ErrorKind::LimitReached
    );
    let bytes = HiddenValue::Bytes(vec![0; 20_000]);
    assert_eq!(error_kind(store.set_hidden("k", Some(bytes))), ErrorKind::LimitReached);
    assert!(store.save() == saved, "nothing has changed");
    // Removing objects makes room.
    add_item(&mut store, "big", &[json!({ "a": huge })], json!({}));
    store.remove("big", None).unwrap();
    add_item(&mut store, "big", &[json!({ "a": huge })], json!({}));
}

#[test]
fn rendered_environment_starts_with_named_and_new_tools() {
    let mut store = ObjectEnvironment::default();
    for (tool, count) in [("old", 2), ("named", 2), ("new", 1)] {
        let rows: Vec<Value> = (0..count).map(|row| json!({ "row": row })).collect();
        add_item(&mut store, tool, &rows, json!({ "from": tool }));
    }
    store.record_mentions("as named_2 says, and no_such_9 or named_99");
    let row =
        |tool: &str, row: u32| json!({ "row": row, "_REF_ID": format!("{tool}_{}", row + 1) });
    let item = |tool: &str, objects: &[Value]| json!([{ "metadata": { "from": tool }, "objects": objects }]);
    let expected = json!({ "environment": {
        "named": item("named", &[row("named", 0), row("named", 1)]),
        "new": item("new", &[row("new", 0)]),
        "old": item("old", &[row("old", 0), row("old", 1)]),
    } });
    // The texts are compared, because the order matters.
    assert_eq!(store.render(0, 1000).unwrap().to_string(), expected.to_string());
    let item = |tool: &str, count: u32| json!([{ "metadata": { "from": tool }, "objects": count }]);
    let expected =
        json!({ "old": item("old", 2), "named": item("named", 2), "new": item("new", 1) });
    assert_eq!(store.contents_json(), expected);
}

#[test]
fn render_shows_only_changes_since_the_last_revision() {
    let mut store = ObjectEnvironment::default();
    assert_eq!(store.render(0, 1000), None);
    add_item(&mut store, "a", &[json!({ "x": 1 })], json!({}));
    add_item(&mut store, "b", &[json!({ "x": 1 })], json!({}));
    let seen = store.revision();
    assert_eq!(store.render(seen, 1000), None);
    add_item(&mut store, "a", &[json!({ "x": 2 })], json!({}));
    let new = store.render(seen, 1000).unwrap();
    let expected = json!({ "environment": {
        "a": [{ "objects": [{ "x": 2, "_REF_ID": "a_2" }], "total_objects": 2 }],
    } });
    assert_eq!(new, expected);
    let seen = store.revision();
    store.remove("b", None).unwrap();
    assert_eq!(
        store.render(seen, 1000).unwrap(),
        json!({ "environment": { "b": [{ "objects": [] }] } })
    );
    assert_eq!(store.render(0, 1000).unwrap()["environment"].as_object().unwrap().len(), 1);
}

#[test]
fn objects_over_the_token_budget_are_counted() {
    let mut store = ObjectEnvironment::default();
    for item in 0..200 {
        let rows: Vec<Value> =
            (0..50).map(|row| json!({ "row": row, "text": "some words" })).collect();
        add_item(&mut store, "query", &rows, json!({ "item": item }));
    }
    for tokens in [0, 10, 100, 1000, 10_000] {
        let shown = store.render(0, tokens).unwrap();
        // The number of remaining objects may exceed the budget.
        assert!(estimate_tokens(&shown) <= tokens + 20, "{tokens}: {}", estimate_tokens(&shown));
        let items = shown["environment"]["query"].as_array().cloned().unwrap_or_default();
        let count: usize = items.iter().map(|item| item["objects"].as_array().unwrap().len()).sum();
        assert_eq!(count as u64 + shown["more_objects"]["query"].as_u64().unwrap(), 10_000);
        if let Some(first) = items.first() {
            assert_eq!(first["metadata"]["item"], 199, "the newest");
            assert_eq!(first["objects"].as_array().unwrap().last().unwrap()["row"], 49);
        }
    }
}

#[test]
fn selection_is_paged_and_an_empty_match_returns_nothing() {
    let store = pet_environment();
    let select = |tools: &[&str], filter: Option<ItemFilter>, skip, take| {
        let tools = tools.iter().map(|tool| (*tool).to_owned()).collect();
        store.select(&ObjectSelection { tools, filter, skip, take })
    };
    let all = select(&[], None, 0, None);
    assert_eq!(
        (&all["total_objects"], all["environment"]["query"].as_array().unwrap().len()),
        (&json!(2), 2)
    );
    let second = select(&["query"], None, 1, Some(1));
    let items = second["environment"]["query"].as_array().unwrap();
    assert_eq!((items.len(), &items[0]["objects"][0]["average_price"]), (1, &json!(5.28)));
    let none = select(&["other"], None, 0, None);
    assert_eq!(none, json!({ "environment": {}, "total_objects": 0 }));
    let none = select(&[], Some(ItemFilter::key("collection_name", json!("plants"))), 0, None);
    assert_eq!(none["environment"], json!({}));
    assert_eq!(select(&[], None, 9, None)["environment"], json!({}));
}
