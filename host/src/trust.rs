//! `jaato trust`: the person trusts the workspace as it is.

use std::time::SystemTime;

use jaato_runtime::config::trust::{TrustError, TrustStore, WorkspaceState, refuse_inside_session};

use crate::args::Global;
use crate::exit::{Exit, Failure, Outcome};
use crate::{report, start};

/// Trusts the workspace, or takes the trust back.
pub fn workspace(global: Global, remove: bool) -> Outcome {
    let setup = start::setup(start::arguments(global))?;
    refuse_inside_session(&setup.variables).map_err(failed)?;
    let store = TrustStore::in_folder(
        setup
            .folders
            .data()
            .map_err(|error| Failure::new(Exit::Configuration, error).hint(error.hint()))?,
    );
    let root = setup.workspace.root().display();
    if remove {
        let was_trusted = store.untrust_workspace(&setup.workspace).map_err(failed)?;
        let said = if was_trusted { "is not trusted any more" } else { "was not trusted" };
        report::line(&format!("workspace `{root}` {said}"))?;
        return Ok(Exit::Done);
    }
    if setup.workspace_state == WorkspaceState::Nothing {
        report::line(&format!("workspace `{root}` has nothing that would need trust"))?;
        return Ok(Exit::Done);
    }
    let trusted = store.trust_workspace(&setup.workspace, SystemTime::now()).map_err(failed)?;
    let names: Vec<_> = trusted.names().collect();
    report::line(&format!("workspace `{root}` is trusted with these files as they are:"))?;
    for name in names {
        report::line(&format!("  {name}"))?;
    }
    report::line(
        "a change to one of them withdraws the trust; plugins among them are trusted one by one",
    )?;
    Ok(Exit::Done)
}

/// Turns an error of the trust record into a failure.
pub fn failed(error: TrustError) -> Failure {
    Failure::new(Exit::Configuration, &error).maybe_hint(error.hint())
}
