//! `jaato plugin enable` and `disable`: changes `[plugins] disabled` in the user's own
//! configuration.

use jaato_install::placed_plugins;
use jaato_runtime::config::{ConfigError, ListChange, list_disabled_plugin};
use jaato_runtime::{Setup, list_search_folders};

use crate::args::GlobalArgs;
use crate::exit::{CommandFailure, CommandResult, Exit};
use crate::{install, report, start};

/// Adds a plugin to the disabled ones, or removes it from them.
pub fn switch_plugin(global: GlobalArgs, name: &str, listing: ListChange) -> CommandResult {
    let arguments = start::setup_arguments(global);
    let setup = start::read_setup(arguments.clone())?;
    let all = placed_plugins(&list_search_folders(&setup));
    let is_off = |setup: &Setup| setup.config.plugins_disabled.iter().any(|other| other == name);
    // A name without a plugin may still be on the list. It can be removed, but not added.
    let is_there = all.iter().any(|plugin| plugin.manifest.name.as_str() == name);
    if !is_there && (listing == ListChange::In || !is_off(&setup)) {
        return Err(install::unknown_plugin_failure(name, &all));
    }
    let file = match arguments.config_file.clone() {
        Some(file) => file,
        None => setup.folders.config_file()?,
    };
    let failed = |error: ConfigError| {
        CommandFailure::new(Exit::Configuration, &error).maybe_hint(error.hint())
    };
    let changed = list_disabled_plugin(&file, name, listing).map_err(failed)?;
    // The lists of several layers are joined, so another layer may contain it too.
    let stays_off = listing == ListChange::Out && is_off(&start::read_setup(arguments)?);
    if stays_off {
        let text = format!("plugin `{name}` is also disabled elsewhere, so it stays disabled");
        return Err(CommandFailure::new(Exit::Configuration, text)
            .hint("`jaato config show` shows the source of `plugins.disabled`"));
    }
    let state = if listing == ListChange::In { "disabled" } else { "enabled" };
    report::print_line(&match changed {
        true => format!("plugin `{name}` is {state}: {}", file.display()),
        false => format!("plugin `{name}` is already {state}"),
    })?;
    Ok(Exit::Done)
}
