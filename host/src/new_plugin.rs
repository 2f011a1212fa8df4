//! `jaato plugin new`: the crate of a plugin of the person's own.

use std::path::PathBuf;

use jaato_runtime::types::API_VERSION;
use jaato_template::{Sdk, TemplateKind, next_steps, write_crate};

use crate::args::NewKind;
use crate::exit::{Exit, Failure, Outcome};
use crate::report;

/// Writes the crate, and says what comes next.
pub fn write(name: &str, kind: NewKind, path: Option<PathBuf>) -> Outcome {
    let kind = match kind {
        NewKind::Tool => TemplateKind::Tool,
        NewKind::Gc => TemplateKind::Gc,
        NewKind::Provider => TemplateKind::Provider,
    };
    let folder = path.unwrap_or_else(|| PathBuf::from(name));
    let executable = std::env::current_exe().map_err(|error| {
        Failure::new(Exit::Failed, format!("cannot find the executable: {error}"))
    })?;
    let sdk = Sdk::beside(&executable).unwrap_or_else(|| Sdk::Version(API_VERSION.to_string()));
    write_crate(&folder, name, kind, &sdk)
        .map_err(|error| Failure::new(Exit::Usage, &error).maybe_hint(error.hint()))?;
    let against = match &sdk {
        Sdk::Sources(sources) => format!("the sdk in `{}`", sources.display()),
        Sdk::Version(version) => format!("jaato-plugin-sdk {version} of a registry"),
    };
    report::line(&format!("written to `{}`, against {against}; next:\n", folder.display()))?;
    report::line(&next_steps(&folder, name, "jaato"))?;
    if let Sdk::Version(_) = sdk {
        let note = "this jaato has no sdk beside it, and a registry may have none: \
            `Cargo.toml` says how to name sources instead";
        report::problems(&[note.to_owned()]);
    }
    Ok(Exit::Done)
}
