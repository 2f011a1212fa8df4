//! Tests a C plugin, installed like any other: listed, called in a worker, trusted, called inside
//! jaato.

use serde_json::json;

use crate::house;
use crate::support::moon::compile_moon;

const PHASE: [&str; 3] = ["call", "moon_c_phase", r#"{"day": 16}"#];

#[test]
fn c_plugin_runs_in_a_worker_and_inside_jaato_once_trusted() {
    let house = house!();
    let Some(built) = compile_moon(env!("CARGO_MANIFEST_DIR"), None) else { return };
    let file = house.ship_to_user(&built);
    let list = house.run(&["plugin", "list", "--json"]).code(0).json();
    let plugins = list["plugins"].as_array().unwrap();
    let listed = plugins.iter().find(|plugin| plugin["name"] == "tool-moon-c").unwrap();
    assert_eq!(listed["version"], "0.1.0", "{list:#}");

    // The change applies immediately, without a restart of jaato. Its requests and waits cross the
    // process boundary too.
    let output = house.run(&PHASE).code(0);
    assert_eq!(output.json(), json!({ "phase": "full" }));
    assert!(output.stderr.contains("it runs in a worker"), "{output}");
    let asks = ["call", "moon_c_ask", r#"{"what": "session"}"#];
    let waits = ["call", "moon_c_slow", r#"{"day": 5}"#];
    let workspace = json!(house.workspace());
    let facts = house.run(&asks).code(0).json();
    assert_eq!(facts["working_directory"], workspace, "{facts:#}");
    assert_eq!(house.run(&waits).code(0).json(), json!({ "waited": true }));
    let refused = house.run(&["call", "moon_c_phase", r#"{"day": -1}"#]).code(2);
    assert!(refused.stderr.contains("`day` is at least 0"), "{refused}");

    let digest = listed["sha256"].as_str().unwrap();
    let path = file.to_str().unwrap();
    house.run(&["plugin", "trust", path, "--sha256", digest]).code(0);
    let shown = house.run(&["plugin", "show", "tool-moon-c"]).expect_silent();
    assert!(shown.stdout.contains("inside jaato, from a private copy"), "{shown}");
    assert_eq!(house.run(&PHASE).expect_silent().json(), json!({ "phase": "full" }));
    assert_eq!(house.run(&asks).expect_silent().json()["working_directory"], workspace);
    house.assert_no_processes();
}

#[test]
fn tools_with_deceptive_or_invalid_names_are_left_out_individually() {
    let house = house!();
    let Some(built) = compile_moon(env!("CARGO_MANIFEST_DIR"), Some("BAD_TOOLS")) else { return };
    house.ship_to_user(&built);
    let tools = house.run(&["tool", "list", "--json"]).code(0).json();
    let names: Vec<&str> =
        tools.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    // Of two tools with the same name, the first stays.
    for name in ["moon_c_phase", "moon_c_watch", "twice"] {
        assert_eq!(names.iter().filter(|other| **other == name).count(), 1, "{names:?}");
    }
    for name in &names {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        assert!(!name.is_empty() && name.chars().all(is_plain), "{names:?}");
        assert!(!["list", "dict", "text"].contains(name), "{names:?}");
    }
    let shown = house.run(&["plugin", "show", "tool-moon-c"]).code(0);
    assert_eq!(shown.stdout.matches("\n  left out    tool ").count(), 9, "{shown}");
    assert!(!shown.to_string().contains('\u{202e}'), "{shown}");
    assert_eq!(house.run(&PHASE).code(0).json(), json!({ "phase": "full" }));
    house.assert_no_processes();
}

#[test]
fn c_plugin_table_of_another_version_is_reported_in_one_line() {
    let house = house!();
    let Some(built) = compile_moon(env!("CARGO_MANIFEST_DIR"), Some("BAD_VERSION")) else { return };
    house.ship_to_user(&built);
    let output = house.run(&["plugin", "list"]);
    let text =
        "its export `JAATO_PLUGIN_C1` cannot be used: its table has version 2, this host speaks 1";
    assert!(output.to_string().contains(text), "{output}");
}
