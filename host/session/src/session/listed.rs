//! The tools that requests list, while the session goes on.
//!
//! Invariant: between cuts a request begins with the tools that the last one began with. Tools that
//! are new since stand in a part of the history where the provider takes that; for any other they
//! join the list, which is a cut. A tool that went stays listed until the next cut: a call of it is
//! answered with the reason.

use jaato_types::{Part, TOOLS_CHANGED, ToolName, ToolSpec, ToolsChanged};

use super::Session;

impl Session {
    /// Lets requests have the tools that are active: at once where none was sent yet, else as the
    /// provider takes it.
    pub(crate) fn send_tools(&mut self) {
        if self.sent_entries == 0 {
            self.list_tools();
            return;
        }
        let tools = self.shared.tools();
        let has_new = tools.active().any(|spec| !self.prefix.tools.contains(spec));
        if has_new && !self.takes.honours(TOOLS_CHANGED) {
            self.cut();
        }
    }

    /// Cuts: what was sent is other from here on. Thoughts, signatures and opaque parts before it
    /// go, and the tools are listed anew.
    pub(crate) fn cut(&mut self) {
        self.history.cut();
        self.sent_entries = 0;
        self.list_tools();
    }

    /// Notes that a request goes out with all that there is.
    pub(crate) fn note_sent(&mut self) {
        self.sent_entries = self.history.entries().len();
    }

    /// Returns how the tools are others than the model was told, for a provider that takes it in
    /// the history; nothing where they are the same.
    pub(crate) fn tools_news(&mut self) -> Option<Part> {
        if self.sent_entries == 0 || !self.takes.honours(TOOLS_CHANGED) {
            return None;
        }
        let tools = self.shared.tools();
        let wanted: Vec<ToolSpec> = tools.active().cloned().collect();
        let is_new = |spec: &&ToolSpec| !self.told_tools.contains(spec);
        let added: Vec<ToolSpec> = wanted.iter().filter(is_new).cloned().collect();
        let is_gone = |spec: &&ToolSpec| wanted.iter().all(|known| known.name != spec.name);
        let gone = self.told_tools.iter().filter(is_gone).map(|spec| spec.name.clone());
        let removed: Vec<ToolName> = gone.collect();
        if added.is_empty() && removed.is_empty() {
            return None;
        }
        self.told_tools = wanted;
        Some(Part::ToolsChanged(ToolsChanged { added, removed, ..ToolsChanged::default() }))
    }

    fn list_tools(&mut self) {
        self.prefix.tools = self.shared.tools().active().cloned().collect();
        self.told_tools.clone_from(&self.prefix.tools);
    }
}
