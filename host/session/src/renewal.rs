//! Takes tools that changed while the session goes on: between turns alone, and with a word to the
//! person.
//!
//! Invariant: what stays keeps its place in the requests and what is new stands behind it; what
//! goes stays listed until the next cut.

use std::fmt;

use jaato_types::{Offer, ToolName, ToolSpec};

use crate::{
    ArgumentChecks, Cancel, KnownTool, LIST_TOOLS, Renewal, Session, ToolState, Toolbox,
    introspection,
};

/// What became of the tools in requests, by name.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Changes {
    added: Vec<ToolName>,
    changed: Vec<ToolName>,
    removed: Vec<ToolName>,
}

impl Session {
    /// Takes the tools anew where they changed since the last turn, and tells the person. Each turn
    /// begins with it; whoever lets a person do something between turns may call it too.
    pub async fn renew_tools(&mut self, cancel: &Cancel) {
        let tools = self.shared.ports.tools.clone();
        let Renewal { tools, notices } = tokio::select! {
            biased;
            () = cancel.cancelled() => return,
            renewal = tools.renew() => renewal,
        };
        for notice in notices {
            self.shared.emitter.notice(notice);
        }
        let Some(tools) = tools else { return };
        let changes = self.shared.change_tools(|toolbox| toolbox.renew(tools));
        if changes != Changes::default() {
            self.send_tools();
            self.shared.emitter.notice(changes.to_string());
        }
    }
}

impl Toolbox {
    /// Takes other tools in place of those that it has.
    pub(crate) fn renew(&mut self, mut tools: Vec<KnownTool>) -> Changes {
        let before: Vec<ToolSpec> = self.active().cloned().collect();
        let own: Vec<KnownTool> =
            self.tools.iter().filter(|tool| introspection::is_own(tool)).cloned().collect();
        let finds_tools = own.iter().any(|tool| tool.spec.name.as_str() == LIST_TOOLS);
        tools.extend(own);
        if !finds_tools && tools.iter().any(|tool| tool.state == ToolState::Inactive) {
            tools.extend(introspection::tools());
        }
        self.gone.extend(self.tools.iter().map(|tool| tool.spec.name.clone()));
        self.gone.retain(|name| tools.iter().all(|tool| tool.spec.name != *name));
        self.tools = tools;
        // Schemas may be others under the same name.
        self.checks = ArgumentChecks::new();
        let stays = |spec: &ToolSpec| {
            let is_it = |tool: &KnownTool| {
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
        self.withhold_again(&before);
        Changes::between(&before, self.active())
    }
}

impl Toolbox {
    /// Goes on withholding what has a condition; what was offered stays so until that is looked at
    /// again.
    fn withhold_again(&mut self, before: &[ToolSpec]) {
        let withheld = std::mem::take(&mut self.withheld);
        for (name, Offer { reason, .. }) in self.offers() {
            if before.iter().all(|spec| spec.name != name) {
                self.withhold(&name, reason);
            }
        }
        for (name, was) in withheld {
            match self.withheld.get_mut(&name) {
                Some(withheld) => withheld.wanted |= was.wanted,
                // It has no condition any more; one that was activated is in requests as if it
                // never had.
                None => drop(was.wanted && self.activate(&name)),
            }
        }
    }
}

impl Changes {
    fn between<'a>(before: &[ToolSpec], after: impl Iterator<Item = &'a ToolSpec>) -> Self {
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

impl fmt::Display for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<String> =
            [("new", &self.added), ("changed", &self.changed), ("gone", &self.removed)]
                .into_iter()
                .filter(|(_, names)| !names.is_empty())
                .map(|(what, names)| {
                    let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
                    format!("{what} {}", names.join(", "))
                })
                .collect();
        write!(f, "the tools of this conversation changed: {}", parts.join("; "))
    }
}
