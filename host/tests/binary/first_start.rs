//! Tests the first start: jaato asks which model to use, and downloads nothing without consent.

use std::fs;

use crate::support::screen::{RecordedTerminal, ScreenSize};
use crate::support::{House, fixtures, library_name};

const SIZE: ScreenSize = ScreenSize { rows: 24, columns: 120 };

/// Returns an installation without a configuration, with the local model's provider and a vendor's.
fn fresh_house() -> Option<House> {
    let house = House::new()?;
    let plugins = fixtures::test_house()?.join("plugins");
    for plugin in ["provider_local", "provider_anthropic", "gc_truncate"] {
        house.ship(&plugins.join(library_name(plugin)));
    }
    Some(house)
}

#[test]
fn found_key_is_offered_at_first_start_and_the_answer_is_saved() {
    let Some(house) = fresh_house() else { return };
    // The test server does not exist, which is reported immediately.
    let config = "version = 1\n[plugins.provider-anthropic]\nbase_url = \"http://127.0.0.1:9\"\n";
    house.write("home/.config/jaato/config.toml", config);
    let key = ("ANTHROPIC_API_KEY", "not-a-key");
    let Some(mut scene) = RecordedTerminal::begin(&house, "run hi", SIZE, Some(key)) else {
        return;
    };
    scene.wait_until_shown("║ >");
    let asked = scene.current_screen();
    assert!(asked.contains("Which model should answer?"), "{asked}");
    assert!(asked.contains("anthropic/claude-sonnet-5, with the key of"), "{asked}");
    assert!(asked.contains("downloads 1.12 GB"), "{asked}");
    assert!(!asked.contains("not-a-key"), "{asked}");
    scene.write(b"1");
    let ended = scene.last_screen();
    assert!(ended.contains("✓ model:› anthropic/claude-sonnet-5"), "{ended}");
    assert!(ended.contains("the model is saved in"), "{ended}");
    let config = fs::read_to_string(house.home().join(".config/jaato/config.toml")).unwrap();
    assert!(config.contains("model = \"anthropic/claude-sonnet-5\"\n"), "{config}");
    // The question is not asked again.
    let Some(scene) = RecordedTerminal::begin(&house, "run hi", SIZE, Some(key)) else { return };
    let ended = scene.last_screen();
    assert!(!ended.contains("Which model"), "{ended}");
}

#[test]
fn nothing_is_downloaded_without_a_yes() {
    let Some(house) = fresh_house() else { return };
    let refused = house.command(&["run", "hi"]).run().code(5);
    assert!(refused.stderr.contains("is not downloaded"), "{refused}");
    assert!(refused.stderr.contains("jaato model pull"), "{refused}");
    // Running `jaato` without a command starts a chat.
    let Some(mut scene) = RecordedTerminal::begin(&house, "", SIZE, None) else { return };
    scene.wait_until_shown("║ >");
    scene.write(b"2");
    let ended = scene.last_screen();
    assert!(ended.contains("no model was chosen"), "{ended}");
    assert!(!house.home().join(".config/jaato/config.toml").exists());
}

#[test]
fn jaato_without_arguments_or_a_terminal_prints_the_help() {
    let Some(house) = fresh_house() else { return };
    let help = house.command(&[]).run().code(2);
    assert!(help.stderr.contains("Usage: jaato"), "{help}");
}
