//! `jaato plugin reload`: describes plugin files again. Also `/plugin` in a conversation.

use jaato_runtime::registry::{PluginEntry, PluginStatus};
use jaato_runtime::session_loop::{Cancel, Session};
use jaato_runtime::types::{Description, ToolSpec};
use jaato_runtime::{RedescribedFile, Runtime, describe_again, problem_line};

use crate::args::GlobalArgs;
use crate::chat::slash;
use crate::exit::{CommandFailure, CommandResult, Exit};
use crate::view::View;
use crate::{plugin, report, start};

/// The note for a user who changed a file.
const RUNNING: &str = "a running `jaato chat` reloads the plugin itself: code with the plugin's next call, \
tools with the next message";

/// Describes plugins again, and reports what changed.
pub async fn reload_plugins(global: GlobalArgs, name: Option<&str>) -> CommandResult {
    let setup = start::read_setup(start::setup_arguments(global))?;
    let described = describe_again(&setup, name).await;
    if let Some(name) = name.filter(|_| described.is_empty()) {
        return Err(CommandFailure::new(Exit::Usage, format!("there is no plugin `{name}`"))
            .hint("`jaato plugin list` lists them"));
    }
    let (mut failures, mut useful) = (Vec::new(), 0);
    for file in described {
        match (&file.now, file.now.as_ref().ok().and_then(PluginEntry::unusable_reason)) {
            (Ok(entry), None) => {
                useful += 1;
                report::print_line(&describe_reload(&file, entry))?;
            }
            // The user knows that they disabled it, or have not trusted its workspace, so it is not
            // a failure.
            (Ok(entry), Some((why, _))) if is_left_out(entry) => {
                let manifest = &entry.candidate.manifest;
                report::print_line(&format!(
                    "{} {}: left out, {why}",
                    manifest.name, manifest.version
                ))?;
            }
            (Ok(entry), Some((why, hint))) => {
                let name = &entry.candidate.manifest.name;
                let path = file.path.display();
                let text = format!("plugin `{name}` (`{path}`) cannot be used: {why}");
                failures.push(problem_line(&text, hint.as_deref()));
            }
            (Err(problem), _) => failures.push(problem.clone()),
        }
    }
    report::print_problems(&failures);
    if useful > 0 {
        report::print_line(RUNNING)?;
    }
    Ok(if failures.is_empty() { Exit::Done } else { Exit::Plugin })
}

fn is_left_out(entry: &PluginEntry) -> bool {
    matches!(entry.status, PluginStatus::Disabled | PluginStatus::NotTrusted)
}

fn describe_reload(file: &RedescribedFile, entry: &PluginEntry) -> String {
    let manifest = &entry.candidate.manifest;
    let Some((before, old)) = &file.before else {
        return format!("{} {}: described", manifest.name, manifest.version);
    };
    let mut changes = Vec::new();
    if before.name != manifest.name {
        changes.push(format!("was plugin `{}`", before.name));
    }
    if before.version != manifest.version {
        changes.push(format!("was version {}", before.version));
    }
    let new = entry.description();
    changes.extend(changed_tools(described_tools(old.as_ref()), described_tools(new)));
    if changes.is_empty() && old.as_ref() != new {
        changes.push("has a new description".to_owned());
    }
    let changes = if changes.is_empty() { "as before".to_owned() } else { changes.join("; ") };
    format!("{} {}: {changes}", manifest.name, manifest.version)
}

fn described_tools(description: Option<&Description>) -> &[ToolSpec] {
    description.map_or(&[], |description| &description.tools)
}

fn changed_tools(before: &[ToolSpec], now: &[ToolSpec]) -> Vec<String> {
    let find = |tools: &[ToolSpec], spec: &ToolSpec| {
        tools.iter().find(|known| known.name == spec.name).cloned()
    };
    let mut changes = Vec::new();
    for spec in now {
        match find(before, spec) {
            None => changes.push(format!("new tool `{}`", spec.name)),
            Some(known) if known != *spec => changes.push(format!("changed tool `{}`", spec.name)),
            Some(_) => {}
        }
    }
    let gone = before.iter().filter(|spec| find(now, spec).is_none());
    changes.extend(gone.map(|spec| format!("removed tool `{}`", spec.name)));
    changes
}

/// Runs the words after `/plugin` in a conversation.
pub async fn run_plugin_words(
    runtime: &Runtime,
    session: &mut Session,
    view: &View,
    words: &str,
    cancel: &Cancel,
) -> CommandResult {
    let words: Vec<&str> = words.split_whitespace().collect();
    match words.as_slice() {
        [] | ["list"] => {
            session.renew_tools(cancel).await;
            view.settle().await;
            plugin::print_list(runtime)
        }
        ["show", name] => {
            session.renew_tools(cancel).await;
            view.settle().await;
            plugin::print_plugin(runtime, name)
        }
        ["reload"] => reload_in_chat(runtime, session, view, None, cancel).await,
        ["reload", name] => reload_in_chat(runtime, session, view, Some(name), cancel).await,
        _ => {
            Err(CommandFailure::new(Exit::Usage, "cannot parse `/plugin`")
                .hint(slash::hint("plugin")))
        }
    }
}

async fn reload_in_chat(
    runtime: &Runtime,
    session: &mut Session,
    view: &View,
    name: Option<&str>,
    cancel: &Cancel,
) -> CommandResult {
    let changes = tokio::select! {
        biased;
        () = cancel.cancelled() => return Ok(Exit::Cancelled),
        changes = runtime.reload_plugins(name) => changes?,
    };
    // Takes the changes, and reports them.
    session.renew_tools(cancel).await;
    view.settle().await;
    if changes.is_empty() {
        report::print_line("no plugin changed")?;
    }
    Ok(Exit::Done)
}
