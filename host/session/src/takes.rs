//! What the model's provider takes beside text, and the request's tools while the session goes on.
//!
//! Invariant: between cuts a request begins with the tools that the last one began with. Tools that
//! are new since stand in a part of the history where the provider takes that; for any other they
//! join the list, which is a cut. A tool that went stays listed until the next cut: a call of it is
//! answered with the reason.

use jaato_types::{Part, ProviderSpec, TOOLS_CHANGED, ToolName, ToolSpec, ToolsChanged};

use crate::Session;

/// What a provider takes, as it says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelTakes {
    /// The options of a request that it honours, by their names.
    pub options: Vec<String>,
    /// Media types beside text: `image/png`, or `image/*`.
    pub media_types: Vec<String>,
}

impl Default for ModelTakes {
    /// What a provider takes that says nothing of it.
    fn default() -> Self {
        Self { options: ProviderSpec::default().options, media_types: Vec::new() }
    }
}

impl ModelTakes {
    /// Tells whether the provider honours an option.
    pub fn honours(&self, option: &str) -> bool {
        self.options.iter().any(|known| known == option)
    }

    /// Tells whether the model can look at data of a media type.
    pub fn accepts(&self, media_type: &str) -> bool {
        let kind = media_type.split('/').next().unwrap_or_default();
        let is_it = |known: &String| {
            known == media_type || known.strip_suffix("/*").is_some_and(|known| known == kind)
        };
        self.media_types.iter().any(is_it)
    }
}

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

    /// Cuts: what was sent is other from here on. Thoughts, signatures and opaque parts before it go,
    /// and the tools are listed anew.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_media_type_is_taken_by_its_name_or_by_its_kind() {
        let media_types = vec!["image/*".to_owned(), "application/pdf".to_owned()];
        let takes = ModelTakes { media_types, ..ModelTakes::default() };
        let accepted = |media_type: &str| takes.accepts(media_type);
        assert!(accepted("image/png") && accepted("image/webp") && accepted("application/pdf"));
        assert!(!accepted("application/zip") && !accepted("imagery/png") && !accepted(""));
        assert!(takes.honours("temperature") && !takes.honours("effort"));
    }
}
