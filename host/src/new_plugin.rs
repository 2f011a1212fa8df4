//! `jaato plugin new`: creates the crate of the user's own plugin.

use std::path::PathBuf;

use clap::ValueEnum;
use jaato_template::{Sdk, TemplateError, TemplateKind, next_steps, write_crate};

use crate::exit::{Exit, Failure, Outcome};
use crate::report;

/// What a new plugin is to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum NewKind {
    /// Tools for models
    Tool,
    /// Decides what to drop when the context window is full
    Gc,
    /// A model provider
    Provider,
    /// An execution environment for files and commands
    Environment,
}

/// Writes the crate, and prints the next steps.
pub fn write(name: &str, kind: NewKind, path: Option<PathBuf>, sdk: Option<PathBuf>) -> Outcome {
    let kind = match kind {
        NewKind::Tool => TemplateKind::Tool,
        NewKind::Gc => TemplateKind::Gc,
        NewKind::Provider => TemplateKind::Provider,
        NewKind::Environment => TemplateKind::Environment,
    };
    let folder = path.unwrap_or_else(|| PathBuf::from(name));
    let refused = |error: TemplateError| Failure::new(Exit::Usage, &error).maybe_hint(error.hint());
    let sdk = match sdk {
        Some(named) => Sdk::at(&named),
        None => Sdk::beside(&std::env::current_exe().map_err(|error| {
            Failure::new(Exit::Failed, format!("cannot find the executable: {error}"))
        })?),
    };
    let sdk = sdk.map_err(refused)?;
    write_crate(&folder, name, kind, &sdk).map_err(refused)?;
    let (written, sources) = (folder.display(), sdk.folder().display());
    report::line(&format!("written to `{written}`, against the sdk in `{sources}`; next:\n"))?;
    report::line(&next_steps(&folder, name, "jaato"))?;
    Ok(Exit::Done)
}
