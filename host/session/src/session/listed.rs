//! The tools that requests list as the session continues.
//!
//! Invariant: between cuts, each request begins with the same tools as the previous one. If the
//! provider supports that, later tools are in a part of the history. For any other provider they
//! join the list, which is a cut. A removed tool stays listed until the next cut, and a call of it
//! is answered with the reason.

use jaato_types::{Part, TOOLS_CHANGED, ToolName, ToolSpec, ToolsChanged};

use super::Session;

impl Session {
    /// Adds the active tools to requests: at once if none was sent yet, else in the way that the
    /// provider supports.
    pub(crate) fn add_active_tools(&mut self) {
        if self.sent_entries == 0 {
            self.list_active_tools();
            return;
        }
        let tools = self.shared.current_tools();
        let has_new = tools.active_tools().any(|spec| !self.prefix.tools.contains(spec));
        if has_new && !self.takes.honours_option(TOOLS_CHANGED) {
            self.make_cut();
        }
    }

    /// Makes a cut, after which the sent history may differ. Thoughts, signatures and opaque parts
    /// before it are removed, and the tools are listed again.
    pub(crate) fn make_cut(&mut self) {
        self.history.apply_cut();
        self.update_collection_tools();
        self.sent_entries = 0;
        self.list_active_tools();
    }

    /// Records that a request with the whole record is sent.
    pub(crate) fn mark_request_sent(&mut self) {
        self.sent_entries = self.history.entries().len();
    }

    /// Returns the changes of the tools since the model last got them, for a provider that takes
    /// changes in the history. Returns `None` if there are none.
    pub(crate) fn tool_changes_part(&mut self) -> Option<Part> {
        if self.sent_entries == 0 || !self.takes.honours_option(TOOLS_CHANGED) {
            return None;
        }
        let tools = self.shared.current_tools();
        let wanted: Vec<ToolSpec> = tools.active_tools().cloned().collect();
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

    fn list_active_tools(&mut self) {
        self.prefix.tools = self.shared.current_tools().active_tools().cloned().collect();
        self.told_tools.clone_from(&self.prefix.tools);
    }
}
