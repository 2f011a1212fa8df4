//! The session's side of a decision about one call.

use futures_util::future::BoxFuture;
use jaato_types::files::FileLimits;
use jaato_types::hooks::Preview;
use jaato_types::{Error, Event, PluginName, Result, ToolCall};
use serde_json::Value;

/// The session's side of a decision about one call.
pub trait CallContext: Send + Sync {
    /// Asks the guards about the call.
    fn ask_guards<'a>(&'a self, call: &'a ToolCall) -> BoxFuture<'a, GuardOutcome>;

    /// Asks the tool's plugin what the call would change. Returns `None` if the plugin does not
    /// say. It reads files with these limits.
    fn preview_call<'a>(
        &'a self,
        call: &'a ToolCall,
        limits: FileLimits,
    ) -> BoxFuture<'a, Option<Preview>>;

    /// Checks arguments against the tool's schema.
    ///
    /// # Errors
    /// Describes the mismatch.
    fn check_arguments(&self, arguments: &Value) -> Result<()>;

    /// Sends an event to the followers of the session.
    fn emit(&self, event: Event);

    /// Waits this many milliseconds.
    fn sleep(&self, ms: u64) -> BoxFuture<'static, ()>;

    /// Pauses the deadlines of calls that wait for this one, until the result is dropped.
    fn pause_deadlines(&self) -> Box<dyn Send>;
}

/// The guards' answer to a call.
#[derive(Debug, Default)]
pub struct GuardOutcome {
    /// The call with other arguments, if they changed them.
    pub changed: Option<ChangedCall>,
    /// The first guard that wants the user to decide, and its reason.
    pub asks: Option<(PluginName, String)>,
    /// The guard that denies the call, and its reason.
    pub denied: Option<(PluginName, Error)>,
}

/// A call whose arguments guards or the user changed.
#[derive(Debug)]
pub struct ChangedCall {
    /// The call as it runs.
    pub call: ToolCall,
    /// The plugins, and the user, that changed it, in order.
    pub by: Vec<String>,
}

impl ChangedCall {
    /// Adds a change after the earlier ones.
    pub(crate) fn add_change(before: &mut Option<Self>, mut change: Self) {
        if let Some(before) = before.take() {
            change.by = [before.by, change.by].concat();
        }
        *before = Some(change);
    }
}
