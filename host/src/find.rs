//! Finds things that the user names on the command line.

use jaato_runtime::Runtime;
use jaato_runtime::registry::{PluginEntry, Registry};

use crate::exit::CommandFailure;
use crate::report;

/// Finds a plugin by its name.
pub fn find_plugin<'a>(
    runtime: &Runtime,
    registry: &'a Registry,
    name: &str,
) -> Result<&'a PluginEntry, CommandFailure> {
    if let Some(entry) = registry.plugin(name) {
        return Ok(entry);
    }
    report::print_problems(runtime.problems());
    let known = registry.plugins().iter().map(|entry| entry.candidate.manifest.name.as_str());
    Err(CommandFailure::unknown("plugin", name, known))
}
