//! `jaato plugin new`: creates the sources of the user's own plugin.

use std::path::PathBuf;

use clap::ValueEnum;
use jaato_template::{SdkSources, TemplateError, TemplateKind, next_steps, write_crate};

use crate::exit::{CommandFailure, CommandResult, Exit};
use crate::report;

/// The kind of a new plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum NewPluginKind {
    /// Tools for models
    Tool,
    /// Decides what to drop when the context window is full
    Gc,
    /// A model provider
    Provider,
    /// An execution environment for files and commands
    Environment,
    /// Sees, denies or changes tool calls and prompts
    Hook,
    /// Tools for models, written in C
    C,
}

/// Writes the crate, and prints the next steps.
pub fn write_new_plugin(
    name: &str,
    kind: NewPluginKind,
    path: Option<PathBuf>,
    sdk: Option<PathBuf>,
) -> CommandResult {
    let kind = match kind {
        NewPluginKind::Tool => TemplateKind::Tool,
        NewPluginKind::Gc => TemplateKind::Gc,
        NewPluginKind::Provider => TemplateKind::Provider,
        NewPluginKind::Environment => TemplateKind::Environment,
        NewPluginKind::Hook => TemplateKind::Hook,
        NewPluginKind::C => TemplateKind::C,
    };
    let folder = path.unwrap_or_else(|| PathBuf::from(name));
    let refused =
        |error: TemplateError| CommandFailure::new(Exit::Usage, &error).maybe_hint(error.hint());
    let sdk = match sdk {
        Some(named) => SdkSources::in_folder(&named),
        None => SdkSources::for_executable(&std::env::current_exe().map_err(|error| {
            CommandFailure::new(Exit::Failed, format!("cannot find the executable: {error}"))
        })?),
    };
    let sdk = sdk.map_err(refused)?;
    write_crate(&folder, name, kind, &sdk).map_err(refused)?;
    let (written, sources) = (folder.display(), sdk.folder().display());
    report::print_line(&format!(
        "written to `{written}`, against the sdk in `{sources}`; next:\n"
    ))?;
    report::print_line(&next_steps(&folder, name, kind, "jaato"))?;
    Ok(Exit::Done)
}
