//! Services and hooks that a plugin may use only if the user grants them by name.
//!
//! A plugin lists what it wants in [`Description::services`]. Plugins that come with jaato get what
//! they list. Any other plugin gets those that the user granted with `jaato plugin grant`. Services
//! within the plugin's own scope (its settings, its store, the files of the session) need no grant.

use crate::operations::operation_named;
use crate::{Description, Error, ErrorKind, PluginName};

/// A permission that the user may grant to a plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Grant {
    /// The name in [`Description::services`] and on the command line.
    pub name: &'static str,
    /// What the plugin may do with it, for users: "ask you questions".
    pub allows: &'static str,
}

/// All grants, in the order in which users see them. A grant lets a plugin spend the user's money,
/// act in their name, interrupt them, or read the conversation.
pub const GRANTS: [Grant; 20] = [
    new_grant("model.complete", "ask a model, at your cost"),
    new_grant("tools.call", "call tools of other plugins, under your rules"),
    new_grant("session.open", "open sessions of its own: models, tools, your cost"),
    new_grant("session.history", "read the conversation"),
    new_grant("ask", "ask you questions"),
    new_grant("notify", "wake an idle session with a message"),
    new_grant("tasks", "run tools in the background, under your rules"),
    new_grant("secret", "keep secrets of its own in your system's key store"),
    new_grant("host_process", "run programs on this machine, outside of the session's environment"),
    new_grant(
        PROCESS,
        "run programs where the session works, without a call of yours or the model's",
    ),
    new_grant("workspace_file", "change the list of MCP servers of a workspace that you trust"),
    new_grant("session_start", "add text at the start of a session"),
    new_grant("before_prompt", "read each prompt, add text to it or refuse it"),
    new_grant(
        "before_request",
        "change the options of requests to the model, and add text to them",
    ),
    new_grant("before_tool", "see each tool call before it runs, change it or refuse it"),
    new_grant("after_tool", "see the result of each tool call and change it"),
    new_grant("turn_end", "read each answer, and make the model continue"),
    new_grant("before_gc", "act before messages are removed from the context"),
    new_grant("session_end", "act at the end of a session"),
    new_grant("event", "follow everything that happens in the session"),
];

const fn new_grant(name: &'static str, allows: &'static str) -> Grant {
    Grant { name, allows }
}

/// The name of the grant for programs that no tool call and no command runs.
const PROCESS: &str = "process";

/// Returns the grant with this name.
pub fn grant_named(name: &str) -> Option<&'static Grant> {
    GRANTS.iter().find(|grant| grant.name == name)
}

/// Returns the name of the grant that a service or a hook needs. `None` if it needs no grant. A
/// grant's own name needs that grant, because a description may name it instead of its operations.
pub fn required_grant(operation: &str) -> Option<&'static str> {
    let itself = || grant_named(operation).map(|grant| grant.name);
    operation_named(operation).and_then(|operation| operation.grant).or_else(itself)
}

/// Returns the name of the grant that an operation needs in a hook, and for an instance with hooks
/// that acts by itself. Its programs would otherwise be a way around the hook's limits.
pub fn required_grant_in_hook(operation: &str) -> Option<&'static str> {
    let runs = || operation.starts_with("process.") || operation.starts_with("terminal.");
    required_grant(operation).or_else(|| runs().then_some(PROCESS))
}

/// Lists the grants that a plugin requests for its services and hooks, sorted and without
/// duplicates. Names that need no grant are left out. An operation counts as the grant that it
/// needs, in a plugin with hooks also one that runs programs.
pub fn requested_grants(description: &Description) -> Vec<&'static str> {
    let services = description.services.iter().map(String::as_str);
    let asked = services.chain(description.hooks.iter().map(|hook| hook.name()));
    let of = if description.hooks.is_empty() { required_grant } else { required_grant_in_hook };
    let mut asked: Vec<_> = asked.filter_map(of).collect();
    asked.sort_unstable();
    asked.dedup();
    asked
}

/// Returns the error for a plugin that uses a grant that it does not list.
pub fn grant_not_requested_error(plugin: &PluginName, grant: &str) -> Error {
    let text = format!(
        "plugin `{plugin}` may not use `{grant}`: its description does not list it among `services`"
    );
    let hint =
        "the plugin's author must list it in `State::describe`, so that the user can grant it";
    Error::new(ErrorKind::PermissionDenied, text).with_hint(hint)
}

/// Returns the error for a plugin that lacks a grant that it lists.
pub fn grant_missing_error(plugin: &PluginName, grant: &str) -> Error {
    let allows =
        grant_named(grant).map_or_else(String::new, |grant| format!(" ({})", grant.allows));
    let text = format!("plugin `{plugin}` was not granted `{grant}`{allows}");
    Error::new(ErrorKind::PermissionDenied, text)
        .with_hint(format!("jaato plugin grant {plugin} {grant}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hooks::Hook;

    #[track_caller]
    fn check_required_grant(operation: &str, grant: Option<&str>) {
        assert_eq!(required_grant(operation), grant, "{operation}");
    }

    #[test]
    fn operations_need_the_grant_of_their_group() {
        check_required_grant("model.complete", Some("model.complete"));
        check_required_grant("session.open", Some("session.open"));
        check_required_grant("session.send", Some("session.open"));
        check_required_grant("session.history", Some("session.history"));
        check_required_grant("ask", Some("ask"));
        check_required_grant("tasks.cancel", Some("tasks"));
        check_required_grant("secret.get", Some("secret"));
        check_required_grant("host_process.spawn", Some("host_process"));
        check_required_grant("workspace_file.set", Some("workspace_file"));
        for hook in Hook::ALL {
            check_required_grant(hook.name(), Some(hook.name()));
        }
    }

    #[test]
    fn operations_on_the_plugins_own_data_need_no_grant() {
        for free in
            ["session", "config", "store.get", "count", "tools.set", "files.read", "preview"]
        {
            check_required_grant(free, None);
        }
        for unknown in ["", ".", "sessions.open", "secrets", "askew", "tools.call.all", "moon"] {
            check_required_grant(unknown, None);
        }
    }

    #[test]
    fn programs_need_a_grant_unless_a_call_runs_them() {
        let both = |operation| (required_grant(operation), required_grant_in_hook(operation));
        assert_eq!(both("process.spawn"), (None, Some("process")));
        assert_eq!(both("terminal.spawn"), (None, Some("process")));
        assert_eq!(both("host_process.spawn"), (Some("host_process"), Some("host_process")));
        assert_eq!(both("model.complete"), (Some("model.complete"), Some("model.complete")));
        assert_eq!(both("files.read"), (None, None));
    }

    #[test]
    fn grant_requested_under_several_names_is_listed_once() {
        let services =
            ["secret.get", "ask", "secret", "moon", "config"].map(str::to_owned).to_vec();
        let hooks = vec![Hook::BeforeTool, Hook::Unknown];
        let description = Description { services, hooks, ..Description::default() };
        assert_eq!(requested_grants(&description), ["ask", "before_tool", "secret"]);
    }

    #[test]
    fn programs_are_requested_only_by_plugins_with_hooks() {
        let services = vec!["process.spawn".to_owned()];
        let mut description = Description { services, ..Description::default() };
        assert!(requested_grants(&description).is_empty());
        description.hooks = vec![Hook::AfterTool];
        assert_eq!(requested_grants(&description), ["after_tool", "process"]);
    }

    #[test]
    fn operation_named_like_a_grant_needs_that_grant() {
        for grant in GRANTS {
            check_required_grant(grant.name, Some(grant.name));
        }
    }
}
