//! `jaato trust`: the person trusts the workspace as it is.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::time::SystemTime;

use jaato_runtime::Setup;
use jaato_runtime::config::trust::{TrustError, TrustStore, WorkspaceState, refuse_inside_session};

use crate::args::Global;
use crate::exit::{Exit, Failure, Outcome};
use crate::view::printable;
use crate::{report, start};

/// Trusts the workspace, or takes the trust back.
pub fn workspace(global: Global, remove: bool) -> Outcome {
    let setup = start::setup(start::arguments(global))?;
    refuse_inside_session(&setup.variables).map_err(failed)?;
    let store = TrustStore::in_folder(setup.folders.data()?);
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

/// Asks the person at the terminal, once, whether an untrusted workspace is trusted; tells whether it is by
/// then. Without a terminal, or after a no, nothing is asked.
pub fn ask_once(setup: &Setup) -> Result<bool, Failure> {
    let WorkspaceState::Untrusted { found } = &setup.workspace_state else { return Ok(false) };
    let Ok(data) = setup.folders.data() else { return Ok(false) };
    let store = TrustStore::in_folder(data);
    let can_ask = io::stdin().is_terminal() && io::stderr().is_terminal();
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
    let mut errors = io::stderr().lock();
    let said = |error: io::Error| Failure::new(Exit::Failed, format!("cannot ask: {error}"));
    writeln!(
        errors,
        "workspace `{}` has files that jaato reads only if you trust it:",
        setup.workspace.root().display()
    )
    .map_err(said)?;
    for name in found {
        writeln!(errors, "  {}", printable(name)).map_err(said)?;
    }
    loop {
        write!(errors, "trust them as they are? [y]es, [n]o: ")
            .and_then(|()| errors.flush())
            .map_err(said)?;
        let mut line = String::new();
        let read = io::stdin().lock().read_line(&mut line).map_err(said)?;
        match line.trim().to_ascii_lowercase().as_str() {
            "y" | "yes" => {
                store.trust_workspace(&setup.workspace, SystemTime::now()).map_err(failed)?;
                return Ok(true);
            }
            "n" | "no" => {
                store.decline_workspace(&setup.workspace, found).map_err(failed)?;
                return Ok(false);
            }
            _ if read == 0 => return Ok(false),
            _ => {}
        }
    }
}

/// Turns an error of the trust record into a failure.
pub fn failed(error: TrustError) -> Failure {
    Failure::new(Exit::Configuration, &error).maybe_hint(error.hint())
}
