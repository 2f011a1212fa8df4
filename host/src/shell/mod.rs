//! `jaato shell`: lists the terminals of models, and shows one live, with or without typing.
//!
//! It connects to the hosts of the same user through their sockets, without searching for plugins
//! or running anything.

mod attach;
mod draw;
mod screen;
mod tty;

use jaato_runtime::config::UserFolders;
use jaato_runtime::config::trust::is_inside_session;
use jaato_runtime::{FoundTerminal, TerminalSearchResult, find_terminals};
use serde_json::json;

use crate::exit::{CommandFailure, CommandResult, Exit};
use crate::report;

pub use attach::AttachPurpose;

/// How many terminals are listed if a name fits several.
const NAMED_MAX: usize = 8;

/// Lists the terminals of all hosts of this user.
pub async fn list_terminals(as_json: bool) -> CommandResult {
    let TerminalSearchResult { terminals, problems } = find_own_terminals().await?;
    report::print_problems(&problems);
    if as_json {
        let listed = terminals.iter().map(|FoundTerminal { listed, .. }| {
            json!({
                "terminal": listed.full_name(),
                "session": listed.session,
                "name": listed.name,
                "plugin": listed.plugin,
                "command": listed.command,
                "rows": listed.rows,
                "columns": listed.columns,
                "age_ms": listed.age_ms,
                "is_alive": listed.is_alive,
                "watchers": listed.watchers,
            })
        });
        return report::print_exact_json(&listed.collect());
    }
    if terminals.is_empty() {
        report::print_line("no terminals")?;
        return Ok(Exit::Done);
    }
    let rows: Vec<_> = terminals
        .iter()
        .map(|FoundTerminal { listed, .. }| {
            vec![
                listed.full_name(),
                format!("{}x{}", listed.columns, listed.rows),
                format_age(listed.age_ms),
                if listed.is_alive { "runs" } else { "ended" }.to_owned(),
                listed.watchers.to_string(),
                listed.command.clone(),
            ]
        })
        .collect();
    report::print_table(&["terminal", "size", "age", "state", "watchers", "command"], &rows)?;
    Ok(Exit::Done)
}

/// Shows a terminal live, or once if the output is not live.
pub async fn attach_terminal(name: &str, purpose: AttachPurpose) -> CommandResult {
    let found = find_own_terminals().await?;
    let chosen = choose_terminal(name, &found.terminals);
    if chosen.is_err() {
        report::print_problems(&found.problems);
    }
    attach::attach_found_terminal(chosen?, purpose).await
}

async fn find_own_terminals() -> Result<TerminalSearchResult, CommandFailure> {
    if is_inside_session(&jaato_runtime::config::EnvironmentVariables::from_process()) {
        let text = "a session cannot join a terminal";
        return Err(CommandFailure::new(Exit::Limit, text)
            .hint("join it from a terminal that no model uses"));
    }
    Ok(find_terminals(&UserFolders::for_user()).await)
}

/// Finds the one terminal with this name, or else with a name that contains it.
fn choose_terminal<'a>(
    name: &str,
    all: &'a [FoundTerminal],
) -> Result<&'a FoundTerminal, CommandFailure> {
    let names: Vec<String> = all.iter().map(|it| it.listed.full_name()).collect();
    match matching_names(name, &names)[..] {
        [one] => Ok(&all[one]),
        [] => {
            let failure =
                CommandFailure::new(Exit::Usage, format!("there is no terminal `{name}`"));
            Err(if names.is_empty() {
                failure.hint("no model has a terminal at the moment; `jaato shell list` lists them")
            } else {
                failure.hint("`jaato shell list` lists them")
            })
        }
        ref several => {
            let mut named: Vec<_> = several.iter().map(|at| names[*at].clone()).collect();
            named.truncate(NAMED_MAX);
            if several.len() > NAMED_MAX {
                named.push(format!("{} more", several.len() - NAMED_MAX));
            }
            let text = format!("`{name}` matches {} terminals", several.len());
            Err(CommandFailure::new(Exit::Usage, text).hint(named.join(", ")))
        }
    }
}

/// Returns the names that are equal to this one, or else those that contain it.
fn matching_names(name: &str, names: &[String]) -> Vec<usize> {
    let those = |fits: &dyn Fn(&str) -> bool| -> Vec<usize> {
        (0..names.len()).filter(|at| fits(&names[*at])).collect()
    };
    let exact = those(&|it| it == name);
    if exact.is_empty() { those(&|it| it.contains(name)) } else { exact }
}

/// Formats an age for users.
fn format_age(ms: u64) -> String {
    let seconds = ms / 1000;
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        _ => format!("{} h", seconds / 3600),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_matching_names(name: &str, expected: &[usize]) {
        let names = ["s1/session_0", "s1/session_1", "s1/session_10", "s2/session_0"];
        assert_eq!(matching_names(name, &names.map(str::to_owned)), expected);
    }

    #[test]
    fn exact_terminal_name_wins_over_partial_matches() {
        check_matching_names("s1/session_1", &[1]);
        check_matching_names("s2", &[3]);
        check_matching_names("session_1", &[1, 2]);
        check_matching_names("n_0", &[0, 3]);
        check_matching_names("x", &[]);
    }

    #[test]
    fn age_is_shown_in_a_fitting_unit() {
        let ages = [0, 119_999, 120_000, 7_199_999, 7_200_000].map(format_age);
        assert_eq!(ages, ["0 s", "119 s", "2 min", "119 min", "2 h"]);
    }
}
