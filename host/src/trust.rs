//! `jaato trust`: the user trusts the workspace in its current state.

use std::io;
use std::path::Path;
use std::time::SystemTime;

use jaato_runtime::config::trust::{
    AgreedVariables, TrustCandidate, TrustError, TrustStore, WorkspaceState, refuse_inside_session,
};
use jaato_runtime::{Setup, visible};
use jaato_template::shell_word;
use serde_json::Value;

use crate::args::GlobalArgs;
use crate::exit::{CommandFailure, CommandResult, Exit};
use crate::prompts::trust::{TrustAnswer, TrustedFeature};
use crate::terminal::{self, Reply};
use crate::{prompts, report, signals, start};

/// The label of the file names in the question.
const FILES: &str = "it contains";

/// Revokes the trust in the workspace.
pub fn remove_trust(global: GlobalArgs) -> CommandResult {
    let (setup, store) = open_trust_store(global)?;
    let was_trusted = store.untrust_workspace(&setup.workspace).map_err(trust_failure)?;
    let said = if was_trusted { "is no longer trusted" } else { "was not trusted" };
    report::print_line(&format!("workspace `{}` {said}", workspace_root(&setup)))?;
    Ok(Exit::Done)
}

/// Trusts the workspace in its current state, and lists what that enables.
pub fn trust_workspace(global: GlobalArgs, no_variables: bool) -> CommandResult {
    let (setup, store) = open_trust_store(global)?;
    let root = workspace_root(&setup);
    let seen = store.read_candidate(&setup.workspace).map_err(trust_failure)?;
    let listed = agreed_variables(&seen);
    let variables = if no_variables { Vec::new() } else { listed.clone() };
    let now = SystemTime::now();
    store.trust_as_seen(&setup.workspace, &seen, variables, now).map_err(trust_failure)?;
    if seen.file_names().next().is_none() {
        report::print_line(&format!(
            "workspace `{root}` is trusted: your rules may allow commands that run its code (git, cargo, make)\n\
             it has no files that jaato reads; if you add one, the trust ends"
        ))?;
        return Ok(Exit::Done);
    }
    report::print_line(&format!(
        "workspace `{root}` is trusted with the current state of these files:"
    ))?;
    for name in seen.file_names() {
        report::print_line(&format!("  {}", visible::visible_name(name)))?;
    }
    for part in trusted_features(&setup, &seen) {
        report::print_line(&format!("{}:", part.what))?;
        for line in part.item_lines() {
            report::print_line(&format!("  {line}"))?;
        }
    }
    if !listed.is_empty() {
        report::print_line(match no_variables {
            true => {
                "no variables are sent, so these servers do not start; `jaato trust` sends them"
            }
            false => "`jaato trust --no-variables` trusts the files but sends no variables",
        })?;
    }
    report::print_line(
        "if one of them changes, the trust ends; each plugin among them needs `jaato plugin trust`",
    )?;
    Ok(Exit::Done)
}

fn open_trust_store(global: GlobalArgs) -> Result<(Setup, TrustStore), CommandFailure> {
    let setup = start::read_setup(start::setup_arguments(global))?;
    refuse_inside_session(&setup.variables).map_err(trust_failure)?;
    let store = TrustStore::in_folder(setup.folders.data_folder()?);
    Ok((setup, store))
}

fn workspace_root(setup: &Setup) -> String {
    visible::visible_name(&setup.workspace.root().display().to_string()).into_owned()
}

/// Asks the user at the terminal whether to trust a workspace that never was trusted, or that has
/// changed. Returns true if it is trusted then. Asks nothing without a terminal, or after the user
/// declined the same files.
pub async fn ask_once(setup: &Setup) -> Result<bool, CommandFailure> {
    let Ok(data) = setup.folders.data_folder() else { return Ok(false) };
    let store = TrustStore::in_folder(data);
    let can_ask = terminal::nobody_types().is_none() && terminal::errors_are_terminal();
    if !can_ask || refuse_inside_session(&setup.variables).is_err() {
        return Ok(false);
    }
    let look = || store.read_candidate(&setup.workspace);
    // `declined` are the files that a remembered refusal covers.
    let (seen, declined, what, items) = match &setup.workspace_state {
        WorkspaceState::Nothing | WorkspaceState::Trusted(_) => return Ok(false),
        WorkspaceState::Untrusted { found } => (None, found.clone(), FILES, found.clone()),
        WorkspaceState::Changed { files } => {
            let seen = look();
            let changes: Vec<String> = files.iter().map(ToString::to_string).collect();
            let digest = seen.as_ref().ok().map(TrustCandidate::digest);
            let declined = changes.iter().cloned().chain(digest).collect();
            (Some(seen), declined, "changed since you trusted it", changes)
        }
    };
    match store.is_declined(&setup.workspace, &declined) {
        Ok(false) => {}
        Ok(true) => return Ok(false),
        // Trust could not be recorded. The problem is reported with the others.
        Err(error) if error.is_record_error() => return Ok(false),
        Err(error) => return Err(trust_failure(error)),
    }
    let seen = seen.unwrap_or_else(look);
    let mut brings = seen.as_ref().map(|seen| trusted_features(setup, seen)).unwrap_or_default();
    brings.push(TrustedFeature { what: what.to_owned(), items });
    let said = |error: io::Error| {
        CommandFailure::new(Exit::Failed, format!("cannot ask whether to trust this: {error}"))
            .hint("run `jaato trust` in a terminal")
    };
    let root = setup.workspace.root().display().to_string();
    // No work is running that a signal could cancel. If it were killed, jaato would leave the
    // terminal raw.
    let ending = signals::end_on_signals();
    let answer = prompts::trust::ask_trust(&root, &brings).await.map_err(said)?;
    drop(ending);
    match answer {
        Reply::Answer(TrustAnswer::Trust) => {
            let seen = seen.map_err(trust_failure)?;
            let (variables, now) = (agreed_variables(&seen), SystemTime::now());
            store.trust_as_seen(&setup.workspace, &seen, variables, now).map_err(trust_failure)?;
            Ok(true)
        }
        Reply::Answer(TrustAnswer::Decline) => {
            store.decline_workspace(&setup.workspace, &declined).map_err(trust_failure)?;
            Ok(false)
        }
        Reply::Nobody(_) => Ok(false),
    }
}

/// Lists what trust in the files of a workspace enables, besides instructions for the model.
fn trusted_features(setup: &Setup, seen: &TrustCandidate) -> Vec<TrustedFeature> {
    let entries = seen.mcp_entries();
    let named = |text: fn(&Value) -> Option<String>| -> Vec<String> {
        let all = entries
            .iter()
            .filter_map(|it| Some(format!("{}: {}", it.server, text(&it.standard_entry())?)));
        all.collect()
    };
    let home = setup.variables.get("HOME").map(Path::new).filter(|home| home.is_absolute());
    let variables = agreed_variables(seen).into_iter().map(|agreed| {
        let names: Vec<String> = agreed.variables.into_iter().collect();
        format!("{}: {}", agreed.server, names.join(", "))
    });
    let parts = [
        ("MCP servers that it starts", named(entry_command)),
        ("MCP servers that it connects to", named(entry_address)),
        ("your variables that it sends to MCP servers", variables.collect()),
        ("commands that its hooks run, without asking you", seen.hook_commands()),
        ("calls that its rules allow", seen.allow_rules(home)),
    ];
    let parts = parts.into_iter().filter(|(_, items)| !items.is_empty());
    parts.map(|(what, items)| TrustedFeature { what: what.to_owned(), items }).collect()
}

/// Returns the variables that would be sent to MCP servers of the workspace.
fn agreed_variables(seen: &TrustCandidate) -> Vec<AgreedVariables> {
    let all = seen.mcp_entries().into_iter().map(|entry| entry.referenced_variables());
    all.filter(|agreed| !agreed.variables.is_empty()).collect()
}

/// Returns the command line of an entry, with the variables that it sets.
fn entry_command(entry: &Value) -> Option<String> {
    let command = entry["command"].as_str()?;
    let set = entry["env"].as_object().into_iter().flatten();
    let set = set.map(|(name, value)| format!("{name}={}", value_as_word(value)));
    let args = entry["args"].as_array().into_iter().flatten().map(value_as_word);
    let mut words: Vec<String> = set.collect();
    words.push(shell_word(command));
    words.extend(args);
    words.extend(entry["envFile"].as_str().map(|file| format!("(variables of {file})")));
    words.extend(entry["cwd"].as_str().map(|folder| format!("(in {folder})")));
    Some(words.join(" "))
}

fn entry_address(entry: &Value) -> Option<String> {
    entry["url"].as_str().map(str::to_owned)
}

/// Returns a value as one word of a command line.
fn value_as_word(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), shell_word)
}

/// Turns an error of the trust record into a failure.
pub fn trust_failure(error: TrustError) -> CommandFailure {
    CommandFailure::new(Exit::Configuration, &error).maybe_hint(error.hint())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn command_line_shows_variables_arguments_and_folder_of_an_entry() {
        let entry = json!({
            "command": "/bin/sh", "args": ["-c", "it's; x", "", "${KEY}", 1],
            "env": { "LD_PRELOAD": "./x.so" }, "cwd": "sub",
        });
        let line = r"LD_PRELOAD=./x.so /bin/sh -c 'it'\''s; x' '' '${KEY}' 1 (in sub)";
        assert_eq!(entry_command(&entry).as_deref(), Some(line));
        let entry = json!({ "command": "a", "envFile": ".env" });
        assert_eq!(entry_command(&entry).as_deref(), Some("a (variables of .env)"));
        assert_eq!(entry_command(&json!({ "command": 1 })), None);
        assert_eq!(entry_command(&json!("x")), None);
    }
}
