//! The child processes that run plugin code in isolation: one describes, one serves, one checks.
//!
//! `serve` runs an instance for the host, and `conform` a check of the conformance suite. This
//! module describes. The host starts it through the guardian as
//! `jaato plugin-worker --describe FILE`, with a deadline, memory limits, cleaned variables, and no
//! descriptor of the host's except the pipe for the answer. It opens the plugin and so runs
//! untrusted code, but it is not a sandbox.

mod conform;
mod platform;
mod serve;

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use jaato_loader::{LoadError, PluginLibrary};
use jaato_types::{Description, Error, ErrorKind};
use serde::{Deserialize, Serialize};

pub use conform::{CONFORM_ARGUMENTS, SETTINGS_ARGUMENT, conform_main, conformance_checks};
pub use serve::{SERVE_ARGUMENTS, serve_main};

/// The arguments before the file.
pub const DESCRIBE_ARGUMENTS: [&str; 2] = ["plugin-worker", "--describe"];

/// The child's answer, as JSON on descriptor 3.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChildAnswer<T> {
    /// The description, or a check's violation.
    Ok(T),
    /// The reason why answering failed.
    Error(Error),
}

/// Opens a plugin file, asks for its description and writes that to descriptor 3.
///
/// Called only by the binary's hidden subcommand, because it takes over descriptor 3.
pub fn describe_main(plugin: &Path) -> ExitCode {
    answer_main(|| match describe_file(plugin) {
        Ok(description) => ChildAnswer::Ok(description),
        Err(error) => ChildAnswer::Error(error),
    })
}

/// Does a child's work and writes the answer to descriptor 3.
fn answer_main<T: Serialize>(work: impl FnOnce() -> ChildAnswer<T>) -> ExitCode {
    let Some(mut pipe) = platform::take_descriptor3() else {
        eprintln!("`plugin-worker` is started by jaato itself: there is no descriptor 3");
        return ExitCode::from(2);
    };
    let written = serde_json::to_vec(&work()).map_err(std::io::Error::from);
    match written.and_then(|bytes| pipe.write_all(&bytes)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cannot answer the host: {error}");
            ExitCode::FAILURE
        }
    }
}

fn describe_file(plugin: &Path) -> Result<Description, Error> {
    let opened = PluginLibrary::open(plugin).map_err(|error| load_refusal(&error))?;
    jaato_loader::describe_plugin(&opened)
}

/// Returns why a file cannot be opened. The caller knows the file and names it.
fn load_refusal(error: &LoadError) -> Error {
    let described = Error::new(ErrorKind::PluginMisbehaved, error.problem.to_string());
    match error.problem.hint() {
        Some(hint) => described.with_hint(hint),
        None => described,
    }
}
