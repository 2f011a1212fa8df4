//! An installation whose model runs commands.

use serde_json::{Value, json};

use super::{House, fixtures, library_name};

/// Returns an installation with the tool.
pub fn house_with_cli() -> Option<House> {
    let house = House::new()?;
    let plugins = fixtures::test_house()?.join("plugins");
    house.ship(&plugins.join(library_name("tool_cli")));
    house.ship(&plugins.join(library_name("environment_local")));
    Some(house)
}

/// Returns the same installation, but with prompts for read-only commands.
pub fn house_with_asking_cli() -> Option<House> {
    let house = house_with_cli()?;
    disable_shipped_rules(&house);
    Some(house)
}

/// Disables the shipped rules, so that `echo` and `date` need a prompt.
pub fn disable_shipped_rules(house: &House) {
    house.write("home/.config/jaato/permissions.toml", "version = 1\nshipped_rules = false\n");
}

/// Returns that installation, or skips the test.
macro_rules! cli_house {
    () => {
        match $crate::support::cli::house_with_cli() {
            Some(house) => house,
            None => return,
        }
    };
}
pub(crate) use cli_house;

pub fn script_of_one_call(command: &str) -> Value {
    let call = json!({ "name": "cli_based_tool", "arguments": { "command": command } });
    json!({ "answers": [{ "steps": [{ "call": call }] }, { "steps": [{ "text": "done" }] }] })
}
