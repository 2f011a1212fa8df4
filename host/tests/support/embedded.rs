//! The runtime inside a test, with an installation's plugins.

use jaato_runtime::config::{EnvironmentVariables, UserFolders};
use jaato_runtime::{Setup, SetupArguments};

use super::House;

/// Reads an installation's setup, without variables of this process.
pub fn read_setup(house: &House) -> Setup {
    read_setup_with(house, &[])
}

/// The same, with more variables than the path.
pub fn read_setup_with(house: &House, variables: &[(&str, String)]) -> Setup {
    let arguments = SetupArguments {
        config_file: Some(house.home().join(".config/jaato/config.toml")),
        plugin_dirs: vec![house.given_folder()],
        ..SetupArguments::default()
    };
    let folders = UserFolders::under_root(&house.home());
    let path = ("PATH", "/usr/local/bin:/usr/bin:/bin");
    let given = variables.iter().map(|(name, value)| (*name, value.as_str()));
    let isolated = super::is_isolated().then_some(super::ISOLATED);
    let variables: EnvironmentVariables = given.chain([path]).chain(isolated).collect();
    Setup::from_arguments(arguments, house.binary(), folders, variables, &house.workspace())
        .unwrap()
}
