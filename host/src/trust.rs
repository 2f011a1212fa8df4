//! `jaato trust`: the person trusts the workspace as it is.

use std::io;
use std::time::SystemTime;

use jaato_runtime::config::trust::{TrustError, TrustStore, WorkspaceState, refuse_inside_session};
use jaato_runtime::{Setup, visible};

use crate::args::Global;
use crate::exit::{Exit, Failure, Outcome};
use crate::prompts::trust::{Answer, Brings};
use crate::terminal::{self, Reply};
use crate::{prompts, report, start};

/// Trusts the workspace, or takes the trust back.
pub fn workspace(global: Global, remove: bool) -> Outcome {
    let setup = start::setup(start::arguments(global))?;
    refuse_inside_session(&setup.variables).map_err(failed)?;
    let store = TrustStore::in_folder(setup.folders.data()?);
    let root = setup.workspace.root().display().to_string();
    let root = visible::name(&root);
    if remove {
        let was_trusted = store.untrust_workspace(&setup.workspace).map_err(failed)?;
        let said = if was_trusted { "is not trusted any more" } else { "was not trusted" };
        report::line(&format!("workspace `{root}` {said}"))?;
        return Ok(Exit::Done);
    }
    let trusted = store.trust_workspace(&setup.workspace, SystemTime::now()).map_err(failed)?;
    let names: Vec<_> = trusted.names().collect();
    if names.is_empty() {
        report::line(&format!(
            "workspace `{root}` is trusted: your rules may allow what runs its code (git, cargo, make)\n\
             it has no file that jaato itself reads; one that comes withdraws the trust"
        ))?;
        return Ok(Exit::Done);
    }
    report::line(&format!("workspace `{root}` is trusted with these files as they are:"))?;
    for name in names {
        report::line(&format!("  {}", visible::name(name)))?;
    }
    report::line(
        "a change to one of them withdraws the trust; plugins among them are trusted one by one",
    )?;
    Ok(Exit::Done)
}

/// Asks the person at the terminal, once, whether an untrusted workspace is trusted; tells whether
/// it is by then. Without a terminal, or after a no, nothing is asked.
pub async fn ask_once(setup: &Setup) -> Result<bool, Failure> {
    let WorkspaceState::Untrusted { found } = &setup.workspace_state else { return Ok(false) };
    let Ok(data) = setup.folders.data() else { return Ok(false) };
    let store = TrustStore::in_folder(data);
    let can_ask = terminal::nobody_types().is_none() && terminal::errors_are_terminal();
    if !can_ask || refuse_inside_session(&setup.variables).is_err() {
        return Ok(false);
    }
    match store.is_declined(&setup.workspace, found) {
        Ok(false) => {}
        Ok(true) => return Ok(false),
        // A yes could not be recorded; what is wrong is told with what else cannot be used.
        Err(error) if error.is_of_record() => return Ok(false),
        Err(error) => return Err(failed(error)),
    }
    let said = |error: io::Error| Failure::new(Exit::Failed, format!("cannot ask: {error}"));
    let root = setup.workspace.root().display().to_string();
    match prompts::trust::ask(&root, &brings(found)).await.map_err(said)? {
        Reply::Answer(Answer::Trust) => {
            store.trust_workspace(&setup.workspace, SystemTime::now()).map_err(failed)?;
            Ok(true)
        }
        Reply::Answer(Answer::Decline) => {
            store.decline_workspace(&setup.workspace, found).map_err(failed)?;
            Ok(false)
        }
        Reply::Nobody(_) => Ok(false),
    }
}

/// Tells what the files of a workspace enable.
fn brings(found: &[String]) -> Vec<Brings> {
    vec![Brings { what: "it brings".to_owned(), items: found.to_vec() }]
}

/// Turns an error of the trust record into a failure.
pub fn failed(error: TrustError) -> Failure {
    Failure::new(Exit::Configuration, &error).maybe_hint(error.hint())
}
