//! Guards: plugins that see each tool call before the user's rules decide about it.
//!
//! Invariant: a call reaches the permission check only after each guard has answered. A guard that
//! fails, gives an invalid answer, is too slow or is gone denies the call, and the denial names it.

use jaato_approval::{ChangedCall, GuardOutcome};
use jaato_types::hooks::{BeforeTool, GuardAnswer, Hook, ToolCallOrigin};
use jaato_types::{Annotations, Error, ErrorKind, Event, PluginName, Result, ToolCall};
use serde_json::{Map, Value};

use super::asker::misbehaviour_error;
use super::{HookAsker, HookPlugin};
use crate::Cancel;

/// Changed arguments are repeated in the result up to this many bytes of JSON.
pub const ARGUMENTS_SHOWN_BYTES_MAX: usize = 2 * 1024;

/// The longest reason of a guard, in bytes. The model gets it, and the user sees it in one line.
const REASON_BYTES_MAX: usize = 1_000;

/// The key in a result that names the plugins that changed the arguments.
const CHANGED_BY: &str = "arguments_changed_by";
/// The key in a result that holds the changed arguments.
const THAT_RAN: &str = "arguments_that_ran";

/// Notes in a result which arguments ran, because the history has the call as the model made it.
pub(crate) fn note_argument_change(changed: &ChangedCall, content: &mut Map<String, Value>) {
    let names = changed.by.iter().map(|name| name.as_str().into()).collect();
    content.insert(CHANGED_BY.to_owned(), Value::Array(names));
    let arguments = &changed.call.arguments;
    if arguments.to_string().len() <= ARGUMENTS_SHOWN_BYTES_MAX {
        content.insert(THAT_RAN.to_owned(), arguments.clone());
    }
}

/// The facts about a call that guards get besides the call itself.
pub(crate) struct GuardedCallFacts<'a> {
    /// The plugin that the tool comes from. Empty for the host's own tools.
    pub(crate) owner: PluginName,
    pub(crate) annotations: Annotations,
    pub(crate) called_by: ToolCallOrigin,
    /// The plugin that makes the call. Empty if no plugin does.
    pub(crate) caller: PluginName,
    /// Checks arguments against the tool's schema.
    pub(crate) check: &'a (dyn Fn(&Value) -> Result<()> + Sync),
}

/// One guard's answer.
enum GuardVerdict {
    GoOn,
    /// The arguments, and the reason why the user must be asked about them. Empty without one.
    Rewrite(Value, String),
    Deny(String),
    Ask(String),
}

impl HookAsker {
    /// Asks the guards one after the other. The first denial ends it.
    pub(crate) async fn ask_before_tool(
        &self,
        call: &ToolCall,
        about: GuardedCallFacts<'_>,
        cancel: &Cancel,
    ) -> GuardOutcome {
        let GuardedCallFacts { owner, annotations, called_by, caller, check } = about;
        let mut guarded = GuardOutcome::default();
        // Includes guards that no longer answer: a guard that is gone must not let calls pass.
        for plugin in self.port.plugins_with_hook(Hook::BeforeTool) {
            if let Some(error) = self.disabled_reason(&plugin, Hook::BeforeTool) {
                guarded.denied =
                    Some((plugin.name.clone(), guard_failure_error(call, &plugin, &error)));
                break;
            }
            let arguments =
                guarded.changed.as_ref().map_or(&call.arguments, |it| &it.call.arguments);
            let request = BeforeTool::new(call.name.clone(), arguments.clone())
                .with_call(call.id.clone(), owner.clone(), annotations)
                .called_by(called_by, caller.clone());
            let take = |answer| parse_guard_answer(answer, check);
            let answer = self.ask_hook(&plugin, Hook::BeforeTool, &request, cancel, take).await;
            match answer {
                Ok(GuardVerdict::GoOn) => {}
                Ok(GuardVerdict::Rewrite(changed, ask)) => {
                    if changed != *arguments {
                        self.rewrite_arguments(call, &plugin, changed, &mut guarded);
                    }
                    if !ask.is_empty() {
                        guarded.asks.get_or_insert((plugin.name, ask));
                    }
                }
                Ok(GuardVerdict::Ask(reason)) => {
                    guarded.asks.get_or_insert((plugin.name, reason));
                }
                Ok(GuardVerdict::Deny(reason)) => {
                    let error = denied_error(call, &plugin, &reason);
                    guarded.denied = Some((plugin.name, error));
                    break;
                }
                Err(error) => {
                    guarded.denied =
                        Some((plugin.name.clone(), guard_failure_error(call, &plugin, &error)));
                    break;
                }
            }
        }
        guarded
    }

    fn rewrite_arguments(
        &self,
        call: &ToolCall,
        plugin: &HookPlugin,
        arguments: Value,
        guarded: &mut GuardOutcome,
    ) {
        self.emitter.emit(Event::ToolCallChanged {
            call_id: call.id.clone(),
            name: call.name.clone(),
            source: plugin.source.clone(),
            arguments: arguments.clone(),
        });
        let new = || ChangedCall { call: call.clone(), by: Vec::new() };
        let changed = guarded.changed.get_or_insert_with(new);
        changed.call.arguments = arguments;
        changed.by.push(plugin.name.to_string());
    }
}

fn parse_guard_answer(
    answer: GuardAnswer,
    check: &dyn Fn(&Value) -> Result<()>,
) -> Result<GuardVerdict> {
    Ok(match answer {
        GuardAnswer::GoOn => GuardVerdict::GoOn,
        GuardAnswer::Rewrite { arguments, ask, .. } => {
            check(&arguments).map_err(|error| {
                misbehaviour_error(&format!("its arguments are invalid: {}", error.message))
            })?;
            let has_reason = !ask.trim().is_empty();
            let ask = if has_reason { truncate_reason(ask) } else { String::new() };
            GuardVerdict::Rewrite(arguments, ask)
        }
        GuardAnswer::Deny { reason, .. } => GuardVerdict::Deny(truncate_reason(reason)),
        GuardAnswer::Ask { reason, .. } => GuardVerdict::Ask(truncate_reason(reason)),
        GuardAnswer::Unknown => {
            return Err(misbehaviour_error("its answer has an unknown value"));
        }
    })
}

fn truncate_reason(mut reason: String) -> String {
    reason.truncate(reason.floor_char_boundary(REASON_BYTES_MAX));
    if reason.trim().is_empty() { "it gives no reason".to_owned() } else { reason }
}

fn denied_error(call: &ToolCall, plugin: &HookPlugin, reason: &str) -> Error {
    let text = format!("plugin `{}` denied the call to `{}`: {reason}", plugin.name, call.name);
    Error::new(ErrorKind::PermissionDenied, text)
}

fn guard_failure_error(call: &ToolCall, plugin: &HookPlugin, error: &Error) -> Error {
    if error.kind == ErrorKind::Cancelled {
        return error.clone();
    }
    let (name, tool) = (&plugin.name, &call.name);
    let text = format!(
        "the call to `{tool}` is denied because the guard plugin `{name}` failed: {}",
        error.message
    );
    Error::new(ErrorKind::PermissionDenied, text)
        .with_hint(format!("`jaato plugin disable {name}` disables the plugin"))
}
