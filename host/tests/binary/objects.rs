//! Tests the object environment: filled by tools, seen by the model, by clients and by users.

use serde_json::{Value, json};

use crate::house;
use crate::support::{House, fixture};

fn tool_call(name: &str, arguments: Value) -> Value {
    json!({ "call": { "name": name, "arguments": arguments } })
}

fn find_call(count: u32) -> Value {
    tool_call("find_animals", json!({ "count": count, "collection": "pond" }))
}

fn set_up_house() -> Option<House> {
    let house = House::new()?;
    house.ship(&fixture("finds"));
    Some(house)
}

#[test]
fn objects_found_by_a_tool_reach_model_and_clients_during_the_call() {
    let Some(house) = set_up_house() else { return };
    let view = tool_call("view_environment", json!({ "tool_names": ["find_animals"], "skip": 1 }));
    house.set_script(&json!({ "answers": [
        { "steps": [find_call(2)] },
        {
            "expect": {
                "tool_result": "\"references\":[\"find_animals_1\",\"find_animals_2\"]",
                "data": "{\"environment\":{\"find_animals\":[{\"metadata\":{\"collection\":\"pond\"}",
                "tools": ["change_animals", "find_animals", "get_environment", "view_environment"],
            },
            "steps": [view],
        },
        { "expect": { "tool_result": "\"total_objects\":2" }, "steps": [{ "text": "two frogs" }] },
    ] }));
    let words = ["run", "--yes", "--output", "json", "--objects=hidden", "which animals?"];
    let lines = house.run(&words).code(0).json_lines();
    let told: Vec<&Value> = lines.iter().filter(|it| it["event"] == "objects_added").collect();
    assert_eq!(told.len(), 2, "each object is reported at once");
    assert_eq!(
        (&told[0]["source"], &told[0]["tool"]),
        (&json!("fixture-finds"), &json!("find_animals"))
    );
    assert_eq!((&told[1]["payload_type"], &told[1]["text"]), (&json!("table"), &json!("frog 2")));
    let expected = json!([{ "animal": "frog", "number": 2, "_REF_ID": "find_animals_2" }]);
    assert_eq!(told[1]["objects"], expected);
    let at = |event: &str| lines.iter().position(|line| line["event"] == event).unwrap();
    assert!(at("objects_added") < at("tool_call_finished"));
    let last = lines.last().unwrap();
    assert_eq!(last["environment"]["find_animals"][0]["objects"].as_array().unwrap().len(), 2);
    assert_eq!(last["hidden_environment"], json!({ "raw": { "bytes": 3 } }));
    house.assert_no_processes();
}

#[test]
fn notices_and_objects_of_a_call_are_reported_in_order() {
    for is_isolated in [false, true] {
        let Some(house) = set_up_house() else { return };
        if is_isolated {
            house.isolate_plugin("fixture-finds");
        }
        house.set_script(&json!({ "answers": [
            { "steps": [tool_call("change_animals", json!({ "how": "tell" }))] },
            { "steps": [{ "text": "told" }] },
        ] }));
        let lines = house.run(&["run", "--yes", "--output", "json", "tell"]).code(0).json_lines();
        let told = lines.iter().filter_map(|line| match line["event"].as_str()? {
            "notice" if line["text"].as_str()?.starts_with("now ") => Some("notice"),
            "objects_added" => Some("objects"),
            _ => None,
        });
        let expected = ["notice", "objects"].repeat(20);
        assert_eq!(told.collect::<Vec<_>>(), expected, "isolated: {is_isolated}");
    }
}

#[test]
fn user_sees_found_objects_and_lists_them_with_the_objects_command() {
    let house = house!(ships "finds");
    house.set_script(&json!({ "answers": [
        { "steps": [find_call(1)] },
        { "steps": [{ "text": "a frog" }] },
    ] }));
    let input = "which animals?\n/objects\n/objects hidden\n/objects all\n";
    let output = house.command(&["chat", "--yes"]).input(input).run();
    let shown = json!({ "environment": { "find_animals": [{
        "metadata": { "collection": "pond" },
        "objects": [{ "animal": "frog", "number": 1, "_REF_ID": "find_animals_1" }],
    }] } });
    let mut hidden = shown.clone();
    hidden["hidden_environment"] = json!({ "raw": { "bytes": 3 } });
    assert_eq!(output.stdout, format!("a frog\n{shown:#}\n{hidden:#}\n"), "{output}");
    assert!(output.stderr.contains("fixture-finds │ frog 1\n"), "{output}");
    assert!(output.stderr.contains("write it as `objects [hidden]`"), "{output}");
}

#[test]
fn objects_are_changed_silently_and_found_by_metadata() {
    let Some(house) = set_up_house() else { return };
    let change = |how: &str| tool_call("change_animals", json!({ "how": how }));
    let after =
        |result: &str, step: Value| json!({ "expect": { "tool_result": result }, "steps": [step] });
    house.set_script(&json!({ "answers": [
        { "steps": [change("append")] },
        after("there are no objects of `find_animals`", find_call(1)),
        after("find_animals_1", change("append")),
        after("{\"matched\":1,\"references\":[\"find_animals_2\"]}", change("replace")),
        after("{\"matched\":1,\"references\":[\"find_animals_3\"]}", change("look")),
        after("\"objects\":[{\"animal\":\"toad\",\"_REF_ID\":\"find_animals_3\"}],\"none\":null,\"is_empty\":false,\"raw\":[1,2,3]", change("add")),
        after("change_animals_1", change("remove")),
        after("{\"matched\":1,\"references\":[]}", change("look")),
        after("\"items\":1,\"objects\":[],\"none\":null,\"is_empty\":false", json!({ "text": "done" })),
    ] }));
    let lines = house.run(&["run", "--yes", "--output", "json", "go"]).code(0).json_lines();
    let told = lines.iter().filter(|line| line["event"] == "objects_added").count();
    assert_eq!(told, 1, "only found objects are reported");
    house.assert_no_processes();
}

#[test]
fn call_typed_by_a_user_has_its_own_objects() {
    let house = house!(ships "finds");
    let arguments = json!({ "count": 1, "collection": "pond" }).to_string();
    let output = house.run(&["call", "find_animals", &arguments]).code(0);
    assert_eq!(output.json()["references"], json!(["find_animals_1"]));
}

#[test]
fn untrusted_plugin_accesses_only_objects_of_its_own_tools() {
    let house = house!(ships "finds");
    house.ship_to_user(&fixture("asks"));
    let ask = |operation: &str, request: Value| json!({ "tool": "ask_service", "args": { "operation": operation, "request": request } });
    let theirs = || json!({ "tool": "find_animals" });
    let toad = json!([{ "animal": "toad" }]);
    let pond = json!({ "metadata_key": "collection", "metadata_value": "pond" });
    let mut change = json!({ "tool": "find_animals", "objects": toad });
    change.as_object_mut().unwrap().extend(pond.as_object().unwrap().clone());
    let refused = [
        ask("objects.result", json!({ "tool": "find_animals", "objects": toad })),
        ask("objects.add", json!({ "tool": "find_animals", "objects": toad })),
        ask("objects.append", change.clone()),
        ask("objects.replace", change),
        ask("objects.get", theirs()),
        ask("objects.get_objects", theirs()),
        ask("objects.remove", theirs()),
        ask("objects.is_empty", theirs()),
    ];
    let find = json!({ "tool": "find_animals", "args": { "count": 1, "collection": "pond" } });
    let mut lines = vec![find];
    lines.extend(refused.clone());
    lines.extend([
        ask("objects.hidden_get", json!({ "key": "raw" })),
        ask("objects.hidden_set", json!({ "key": "raw", "json": "its" })),
        ask("objects.hidden_get", json!({ "key": "raw" })),
        ask("objects.is_empty", json!({})),
        ask("objects.add", json!({ "objects": toad })),
        json!({ "tool": "change_animals", "args": { "how": "look" } }),
    ]);
    let input = lines.iter().map(Value::to_string).collect::<Vec<_>>().join("\n");
    let told = house.command(&["call", "--batch"]).input(input).run();
    let told = told.json_lines();
    for (line, asked) in told[1..].iter().zip(&refused) {
        assert_eq!(line["error"]["kind"], "permission_denied", "{asked}: {line}");
        let text = line["error"]["message"].as_str().unwrap();
        assert!(text.contains("`fixture-asks` is not trusted"), "{text}");
    }
    let rest = &told[1 + refused.len()..];
    let answer = |line: &Value| line["result"]["answer"].clone();
    assert_eq!(answer(&rest[0]), json!({}), "another plugin's hidden value is not visible");
    assert_eq!(answer(&rest[1]), json!({}));
    assert_eq!(answer(&rest[2]), json!({ "json": "its" }));
    assert_eq!(answer(&rest[3]), json!({ "is_empty": true }));
    assert_eq!(answer(&rest[4])["references"], json!(["ask_service_1"]));
    let look = &rest[5]["result"];
    assert_eq!(look["raw"], json!([1, 2, 3]), "the trusted plugin's value is unchanged");
    assert_eq!(look["objects"][0]["animal"], "frog");
}

#[test]
fn a_trusted_plugin_reaches_the_objects_of_all_tools() {
    let house = house!(ships "finds");
    house.ship(&fixture("asks"));
    let input = [
        json!({ "tool": "find_animals", "args": { "count": 1, "collection": "pond" } }),
        json!({ "tool": "ask_service", "args": {
            "operation": "objects.get_objects", "request": { "tool": "find_animals" },
        } }),
    ];
    let input = input.iter().map(Value::to_string).collect::<Vec<_>>().join("\n");
    let told = house.command(&["call", "--batch"]).input(input).run();
    let told = told.json_lines();
    assert_eq!(told[1]["result"]["answer"]["objects"][0]["animal"], "frog");
}
