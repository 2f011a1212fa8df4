//! Tests `/plugin reload` in a conversation and `jaato plugin reload` outside of one.

use std::fs;

use serde_json::json;

use crate::house;
use crate::reload::{
    NAME, OTHER_TOOL, ReloadChat, count_answers, create_edition, edition_call, expect_edition,
    no_expectation, place_file, scripted_answers, text_step, tool_call,
};
use crate::support::fixture;

#[test]
fn reload_command_restarts_a_disabled_plugin() {
    let house = house!(drops in "editions");
    let dies = || (no_expectation(), tool_call("leave", json!({})));
    let mut steps = vec![
        (no_expectation(), edition_call()),
        (expect_edition("ONE", 1), tool_call("leave", json!({}))),
    ];
    steps.extend((0..4).map(|_| dies()));
    steps.push((no_expectation(), edition_call()));
    steps.push((
        json!({ "tool_result": "was disabled after its worker crashed" }),
        text_step("first"),
    ));
    steps.push((no_expectation(), edition_call()));
    steps.push((expect_edition("ONE", 2), text_step("second")));
    house.set_script(&scripted_answers(&steps));
    let mut chat = ReloadChat::start(&house);
    chat.send_message("a", "first");
    chat.send_message("/plugin reload fixture-editions\nb", "second");
    let stderr = chat.end(&house);
    assert!(stderr.contains("plugin `fixture-editions` 0.1.0 restarts"), "{stderr}");
}

#[test]
fn reload_of_a_named_plugin_restarts_it_with_its_saved_state() {
    for shipped in [true, false] {
        let house = house!();
        let built = fixture("editions");
        let _ = if shipped { house.ship(&built) } else { house.ship_to_user(&built) };
        house.set_script(&count_answers(&[("ONE", 1, "first"), ("ONE", 2, "second")]));
        let mut chat = ReloadChat::start(&house);
        chat.send_message("a", "first");
        chat.send_message("/plugin reload fixture-editions\nb", "second");
        let stderr = chat.end(&house);
        let anew = "plugin `fixture-editions` 0.1.0 restarts";
        assert_eq!(stderr.matches(anew).count(), 1, "{stderr}");
    }
}

#[test]
fn reload_in_a_conversation_reports_its_result() {
    let house = house!();
    let file = house.ship(&fixture("editions"));
    house.set_script(&json!({ "answers": [] }));
    let mut chat = ReloadChat::start(&house);
    chat.send_message("/plugin reload", "no plugin changed");
    place_file(&create_edition(&house, "two.so", &[OTHER_TOOL]), &file);
    chat.send_message("/plugin reload\n/plugin show fixture-editions", "tool_omega");
    chat.0.write(b"/plugin reload moon\n/plugin reload fixture-edition\n/plugin moon\n");
    // The worst exit code of its lines: the first names a missing plugin, the last is not
    // understood.
    let output = chat.0.finish().code(1);
    for line in [
        "plugin `fixture-editions` 0.1.0 was replaced",
        "new `tool_omega`; gone `tool_alpha`",
        "error: there is no plugin `moon`",
        "hint: did you mean `fixture-editions`?",
        "error: cannot parse `/plugin`",
    ] {
        assert!(output.stderr.contains(line), "{line:?}: {output}");
    }
}

#[test]
fn plugin_reload_outside_a_conversation_renews_descriptions() {
    let house = house!();
    let file = house.ship(&fixture("editions"));
    let reload = |code| house.run(&["plugin", "reload", NAME]).code(code);
    let output = reload(0);
    assert!(output.stdout.starts_with("fixture-editions 0.1.0: described\n"), "{output}");
    let output = reload(0);
    assert!(output.stdout.starts_with("fixture-editions 0.1.0: as before\n"), "{output}");
    assert!(output.stdout.contains("a running `jaato chat` reloads the plugin itself"));
    place_file(&create_edition(&house, "two.so", &[OTHER_TOOL]), &file);
    let output = reload(0);
    let changed = "fixture-editions 0.1.0: new tool `tool_omega`; removed tool `tool_alpha`\n";
    assert!(output.stdout.starts_with(changed), "{output}");
    let all = house.run(&["plugin", "reload"]).code(0);
    assert!(all.stdout.contains("tool-environment 0.1.0: "), "{all}");
    house.run(&["plugin", "disable", NAME]).code(0);
    let left_out = "fixture-editions 0.1.0: left out, it is disabled by `[plugins] disabled`\n";
    assert_eq!(reload(0).stdout, left_out);
    house.run(&["plugin", "enable", NAME]).code(0);
    fs::write(&file, b"\x7fELF and no more").unwrap();
    let output = reload(4);
    assert!(output.stderr.contains("it is truncated or damaged"), "{output}");
    let output = house.run(&["plugin", "reload", "moon"]).code(2);
    assert!(output.stderr.contains("there is no plugin `moon`"), "{output}");
}
