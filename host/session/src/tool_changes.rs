//! Takes tools that changed while the session runs. New tools join with the next step, and all
//! other changes wait for the next turn. A notice tells the user what changed.
//!
//! Invariant: tools that stay keep their position in the requests, and new ones follow them. A
//! removed tool stays listed until the next cut.

use std::fmt;
use std::sync::Arc;

use jaato_types::{Offer, ToolCall, ToolName, ToolSpec};

use crate::session::SessionShared;
use crate::{
    ArgumentChecks, Cancel, GET_TOOL_SCHEMAS, KnownTool, LIST_TOOLS, RenewalMoment, Session,
    ToolRenewal, ToolState, Toolbox, WantedTools, introspection,
};

/// The maximum number of tool names in a line about changes. The others are only counted.
const NAMES_TOLD_MAX: usize = 5;

/// Changes of the tools in requests, by name.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ToolChanges {
    added: Vec<ToolName>,
    changed: Vec<ToolName>,
    removed: Vec<ToolName>,
}

impl Session {
    /// Takes the tools that changed since the last turn, and tells the user. Each turn begins with
    /// this. Callers that let a user act between turns may call it too.
    pub async fn renew_tools(&mut self, cancel: &Cancel) {
        self.take_changed_tools(RenewalMoment::Turn, cancel).await;
    }

    /// Takes tools that are new since the last step.
    pub(crate) async fn take_new_tools(&mut self, cancel: &Cancel) {
        self.take_changed_tools(RenewalMoment::Step, cancel).await;
    }

    async fn take_changed_tools(&mut self, moment: RenewalMoment, cancel: &Cancel) {
        let changes = self.shared.take_changed_tools(moment, cancel).await;
        // A plugin's call may have taken tools as well, which are in no request yet.
        self.add_active_tools();
        // Tools that arrive before the first request are not a change that a user would look for.
        let has_begun = self.history.entries().len() > 1;
        if changes.has_more_than_new_tools() || (has_begun && !changes.added.is_empty()) {
            self.shared.emitter.emit_notice(changes.to_string());
        }
    }

    /// Waits for tools that plugins have not set yet, and takes those that arrived. A line tells
    /// the user which tools it waits for.
    pub async fn await_tools(&mut self, wanted: &WantedTools, cancel: &Cancel) {
        self.shared.await_tools(wanted, cancel).await;
        self.take_new_tools(cancel).await;
    }

    /// Waits for tools that these calls need and that plugins have not set yet.
    pub(crate) async fn await_called_tools(&mut self, calls: &[ToolCall], cancel: &Cancel) {
        if let Some(wanted) = self.shared.missing_tools(calls) {
            self.await_tools(&wanted, cancel).await;
        }
    }
}

impl SessionShared {
    async fn take_changed_tools(&self, moment: RenewalMoment, cancel: &Cancel) -> ToolChanges {
        let ToolRenewal { tools, notices } = tokio::select! {
            biased;
            () = cancel.cancelled() => return ToolChanges::default(),
            renewal = self.ports.tools.renew_tools(moment) => renewal,
        };
        for notice in notices {
            self.emitter.emit_notice(notice);
        }
        let renew = |tools| self.change_tools(|toolbox| toolbox.replace_tools(tools));
        tools.map(renew).unwrap_or_default()
    }

    /// Waits for tools, and remembers why the missing ones did not arrive.
    async fn await_tools(&self, wanted: &WantedTools, cancel: &Cancel) {
        let tell = |line: String| self.emitter.emit_notice(line);
        let failed = tokio::select! {
            biased;
            () = cancel.cancelled() => return,
            failed = self.ports.tools.await_tools(wanted, &tell) => failed,
        };
        if self.current_tools().missing_sources() != failed {
            self.change_tools(|toolbox| toolbox.missing = failed);
        }
    }

    /// Waits for a tool that a plugin or a user calls and that no plugin has set yet.
    pub(crate) async fn await_tool(&self, call: &ToolCall, cancel: &Cancel) {
        if let Some(wanted) = self.missing_tools(std::slice::from_ref(call)) {
            self.await_tools(&wanted, cancel).await;
            self.take_changed_tools(RenewalMoment::Step, cancel).await;
        }
    }

    /// Returns the tools that calls need and that do not exist yet.
    fn missing_tools(&self, calls: &[ToolCall]) -> Option<WantedTools> {
        if calls.iter().any(|call| call.name.as_str() == LIST_TOOLS) {
            return Some(WantedTools::all());
        }
        let toolbox = self.current_tools();
        let named = calls.iter().flat_map(|call| match call.name.as_str() {
            GET_TOOL_SCHEMAS => introspection::requested_tool_names(call),
            _ => vec![call.name.clone()],
        });
        let missing = named.filter(|name| toolbox.tools.iter().all(|it| it.spec.name != *name));
        let names: Vec<String> = missing.map(|name| name.to_string()).collect();
        (!names.is_empty()).then(|| WantedTools::only_named(names))
    }
}

impl Toolbox {
    /// Replaces the tools.
    pub(crate) fn replace_tools(&mut self, tools: Vec<KnownTool>) -> ToolChanges {
        let before: Vec<ToolSpec> = self.active_tools().cloned().collect();
        let mut tools: Vec<Arc<KnownTool>> = tools.into_iter().map(Arc::new).collect();
        let own: Vec<Arc<KnownTool>> =
            self.tools.iter().filter(|tool| introspection::is_host_tool(tool)).cloned().collect();
        let finds_tools = own.iter().any(|tool| tool.spec.name.as_str() == LIST_TOOLS);
        tools.extend(own);
        if !finds_tools && tools.iter().any(|tool| tool.state == ToolState::Inactive) {
            tools.extend(introspection::introspection_tools().map(Arc::new));
        }
        self.gone.extend(self.tools.iter().map(|tool| tool.spec.name.clone()));
        self.gone.retain(|name| tools.iter().all(|tool| tool.spec.name != *name));
        self.tools = tools;
        // A schema may have changed under the same name.
        self.checks = ArgumentChecks::new();
        let stays = |spec: &ToolSpec| {
            let is_it = |tool: &Arc<KnownTool>| {
                tool.spec.name == spec.name && !matches!(tool.state, ToolState::Disabled { .. })
            };
            self.tools.iter().position(is_it)
        };
        let mut active: Vec<usize> = before.iter().filter_map(stays).collect();
        for (index, tool) in self.tools.iter().enumerate() {
            if tool.state == ToolState::Active && !active.contains(&index) {
                active.push(index);
            }
        }
        self.active = active;
        self.withhold_conditional_tools(&before);
        ToolChanges::from_specs(&before, self.active_tools())
    }
}

impl Toolbox {
    /// Withholds tools that have a condition again. Offered tools stay offered until their
    /// condition is checked again.
    fn withhold_conditional_tools(&mut self, before: &[ToolSpec]) {
        let withheld = std::mem::take(&mut self.withheld);
        for (name, Offer { reason, .. }) in self.conditional_tools() {
            if before.iter().all(|spec| spec.name != name) {
                self.withhold_tool(&name, reason);
            }
        }
        for (name, was) in withheld {
            match self.withheld.get_mut(&name) {
                Some(withheld) => withheld.wanted |= was.wanted,
                // It no longer has a condition. If it was activated, it is in requests as if it
                // never had one.
                None => drop(was.wanted && self.activate_tool(&name)),
            }
        }
    }
}

impl ToolChanges {
    fn has_more_than_new_tools(&self) -> bool {
        !self.changed.is_empty() || !self.removed.is_empty()
    }

    fn from_specs<'a>(before: &[ToolSpec], after: impl Iterator<Item = &'a ToolSpec>) -> Self {
        let mut changes = Self::default();
        let mut stayed = Vec::new();
        for spec in after {
            match before.iter().find(|known| known.name == spec.name) {
                None => changes.added.push(spec.name.clone()),
                Some(known) if known != spec => changes.changed.push(spec.name.clone()),
                Some(_) => {}
            }
            stayed.push(&spec.name);
        }
        let gone = before.iter().map(|spec| &spec.name).filter(|name| !stayed.contains(name));
        changes.removed = gone.cloned().collect();
        changes
    }
}

impl fmt::Display for ToolChanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<String> =
            [("new", &self.added), ("changed", &self.changed), ("gone", &self.removed)]
                .into_iter()
                .filter(|(_, names)| !names.is_empty())
                .map(|(what, names)| {
                    let shown = names.iter().take(NAMES_TOLD_MAX);
                    let shown: Vec<_> = shown.map(|name| format!("`{name}`")).collect();
                    let more = match names.len() - shown.len() {
                        0 => String::new(),
                        more => format!(" and {more} more"),
                    };
                    format!("{what} {}{more}", shown.join(", "))
                })
                .collect();
        write!(f, "the tools of this conversation changed: {}", parts.join("; "))
    }
}
