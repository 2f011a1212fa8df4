//! Tests of the tools on a host in memory: they match the content of the folder.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use jaato_plugin_sdk::prelude::{Error, ErrorKind, json};
use jaato_plugin_sdk::types::service::SessionFacts;
use jaato_plugin_sdk::types::tools_set::TOOLS_SET;
use jaato_plugin_testkit::{FakeHost, FakeServiceReply};

/// Returns a host whose session works in a folder.
fn recipe_host(folder: &str) -> FakeHost {
    let facts = SessionFacts { working_directory: folder.to_owned(), ..SessionFacts::default() };
    FakeHost::new(tool_recipes::__jaato::MODULE).with_session(facts)
}

fn tool_names(host: &FakeHost) -> Vec<String> {
    let set = host.tools_set().unwrap_or_default();
    set.tools.iter().map(|tool| tool.name.to_string()).collect()
}

/// Creates a new folder below the one for tests.
fn recipe_folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(folder.join("recipes")).unwrap();
    folder
}

fn recipe_text(name: &str) -> String {
    format!("name = '{name}'\ndescription = 'Says {name}.'\ntemplate = '{name} it is'")
}

#[test]
fn a_recipe_is_a_tool_that_answers_with_its_text() {
    let host = recipe_host(env!("CARGO_MANIFEST_DIR"));
    host.instance().unwrap();
    assert_eq!(tool_names(&host), ["explain_for"]);
    let arguments = json!({ "path": "src/lib.rs", "reader": "a child" });
    let output = host.call("explain_for", arguments).unwrap();
    let text = output.content["result"].as_str().unwrap();
    assert!(text.starts_with("Explain `src/lib.rs` to a child."), "{text}");
    let unfit = host.call("explain_for", json!({ "path": "src/lib.rs" })).unwrap_err();
    assert_eq!(unfit.kind, ErrorKind::InvalidArguments);
}

#[test]
fn reload_finds_added_changed_and_removed_recipes() {
    let folder = recipe_folder("reload");
    let file = |name: &str| folder.join(format!("recipes/{name}.recipe.toml"));
    fs::write(file("a"), recipe_text("moon")).unwrap();
    let host = recipe_host(folder.to_str().unwrap());
    let instance = host.create(None).unwrap();
    assert_eq!(tool_names(&host), ["moon"]);

    fs::remove_file(file("a")).unwrap();
    fs::write(file("b"), recipe_text("sun")).unwrap();
    fs::write(file("c"), recipe_text("sun")).unwrap();
    fs::write(file("d"), "name = 1").unwrap();
    let shown = instance.command("recipes", json!({ "what": "reload" })).unwrap();
    let text = shown.content["result"].as_str().unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "sun: Says sun.");
    assert_eq!(lines[1], "recipes/c.recipe.toml: another recipe is called `sun`");
    assert!(lines[2].starts_with("recipes/d.recipe.toml: "), "{text}");
    assert_eq!(tool_names(&host), ["sun"]);
    assert_eq!(instance.call("sun", json!({})).unwrap().content["result"], "sun it is");
    let gone = instance.start_frame("moon", b"\x02\0\0\0{}".to_vec()).wait().result;
    assert_eq!(gone.unwrap_err().kind, ErrorKind::UnknownTool);
}

#[test]
fn missing_folder_gives_no_tools_but_the_plugin_works() {
    let nothing = recipe_host("/");
    let shown = nothing.instance().unwrap().command("recipes", json!({})).unwrap();
    assert_eq!(shown.content["result"], "`recipes` contains no recipes");
}

#[test]
fn tool_change_refused_by_the_rate_limit_is_retried_after_the_wait() {
    let refused = AtomicBool::new(false);
    let host = recipe_host(env!("CARGO_MANIFEST_DIR")).with_service(TOOLS_SET, move |_| {
        if refused.swap(true, Ordering::Relaxed) {
            FakeServiceReply::from_value(&json!({ "tools": 1 }))
        } else {
            Err(Error::new(ErrorKind::LimitReached, "at most once a second").temporary())
        }
    });
    let shown = host.instance().unwrap().command("recipes", json!({})).unwrap();
    assert!(shown.content["result"].as_str().unwrap().starts_with("explain_for: "));
    assert_eq!(host.elapsed(), Duration::from_secs(1));
}
