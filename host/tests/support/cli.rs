//! A house whose model runs commands.

use serde_json::{Value, json};

use super::{House, fixtures, library_name};

/// A house with the tool in it.
pub fn with_cli() -> Option<House> {
    let house = House::new()?;
    let plugins = fixtures::house()?.join("plugins");
    house.ship(&plugins.join(library_name("tool_cli")));
    house.ship(&plugins.join(library_name("environment_local")));
    Some(house)
}

/// The same house, which asks about commands that only read.
pub fn with_cli_that_asks() -> Option<House> {
    let house = with_cli()?;
    ask_about_reading(&house);
    Some(house)
}

/// Switches the shipped rules off: `echo` and `date` are asked about.
pub fn ask_about_reading(house: &House) {
    house.write("home/.config/jaato/permissions.toml", "version = 1\nshipped_rules = false\n");
}

/// Makes that house, or leaves the test out.
macro_rules! cli_house {
    () => {
        match $crate::support::cli::with_cli() {
            Some(house) => house,
            None => return,
        }
    };
}
pub(crate) use cli_house;

pub fn one_call(command: &str) -> Value {
    let call = json!({ "name": "cli_based_tool", "arguments": { "command": command } });
    json!({ "answers": [{ "steps": [{ "call": call }] }, { "steps": [{ "text": "done" }] }] })
}
