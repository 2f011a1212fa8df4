//! `jaato trust`: the person trusts the workspace as it is.

use std::io;
use std::sync::Arc;
use std::time::SystemTime;

use jaato_runtime::config::trust::{TrustError, TrustStore, WorkspaceState, refuse_inside_session};
use jaato_runtime::{Setup, visible};

use crate::args::Global;
use crate::exit::{Exit, Failure, Outcome};
use crate::terminal::{self, Before, Manner, Question, Reply, Value};
use crate::{report, start};

/// Names of files that a question lists. Strangers may have made thousands.
const NAMES_MAX: usize = 1000;

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
    let question = question_of(&setup.workspace.root().display().to_string(), found);
    let open = Arc::new(terminal::open_question());
    let read = |line: &str| read_answer(line).ok_or_else(String::new);
    let reply = terminal::ask(open, question, Before::Dropped, read);
    match reply.await.map_err(said)? {
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

/// What a person says to the question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    Trust,
    Decline,
}

fn read_answer(line: &str) -> Option<Answer> {
    match line.to_ascii_lowercase().as_str() {
        "y" | "yes" => Some(Answer::Trust),
        "n" | "no" => Some(Answer::Decline),
        _ => None,
    }
}

fn question_of(root: &str, found: &[String]) -> Question {
    let line = |text: String| Value::new(None, text);
    let mut values: Vec<Value> =
        found.iter().take(NAMES_MAX).map(|name| line(visible::name(name).into_owned())).collect();
    if found.len() > NAMES_MAX {
        values.push(line(format!("and {} more", found.len() - NAMES_MAX)));
    }
    Question {
        head: format!("workspace `{root}` has files that jaato reads only if you trust it:"),
        values,
        why: String::new(),
        choices: Vec::new(),
        prompt: "trust them as they are? [y]es, [n]o:".to_owned(),
        manner: Manner::Letters,
    }
}

/// Turns an error of the trust record into a failure.
pub fn failed(error: TrustError) -> Failure {
    Failure::new(Exit::Configuration, &error).maybe_hint(error.hint())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_one_line_each_and_not_endless() {
        let found: Vec<String> = (0..4096).map(|it| format!("{it}\nhint: run it")).collect();
        let values = question_of("/w", &found).values;
        assert_eq!(values.len(), NAMES_MAX + 1);
        assert_eq!(values[1].shown().1, "1<U+000A>hint: run it");
        assert_eq!(values[NAMES_MAX].shown().1, "and 3096 more");
        assert_eq!(question_of("/w", &found[..NAMES_MAX]).values.len(), NAMES_MAX);
    }

    #[test]
    fn only_a_word_of_its_own_trusts() {
        let answers = ["y", "YES", "n", "no", "", "sure"].map(read_answer);
        let (yes, no) = (Some(Answer::Trust), Some(Answer::Decline));
        assert_eq!(answers, [yes, yes, no, no, None, None]);
    }
}
