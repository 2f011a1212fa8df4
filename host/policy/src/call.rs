//! What the rules may know about a call.

use jaato_types::{Annotations, PluginName, ToolName};

use crate::ArgumentsDigest;

/// The facts of one call. The model's arguments count only as a digest: rules that would read them
/// could be talked round.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    /// The tool.
    pub tool: &'a ToolName,
    /// The plugin that offers it.
    pub plugin: &'a PluginName,
    /// Where that plugin comes from.
    pub source: PluginSource,
    /// What the tool promises of its effects.
    pub annotations: Annotations,
    /// The tool asks to be run without a question.
    pub auto_approval: bool,
    /// Who wants the call.
    pub caller: Caller,
    /// The arguments.
    pub arguments: ArgumentsDigest,
}

/// Where a plugin comes from, as far as its promises are concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PluginSource {
    /// Shipped with the host, or part of it: its promises are the host's.
    Shipped,
    /// From anywhere else, trusted or not. Trust in a file lets it run; it does not make what it
    /// says of itself true.
    Elsewhere,
}

/// Who wants a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caller {
    /// A model, or a plugin on its behalf.
    Model,
    /// A person, who typed the call.
    Person,
}

/// What "always" means for calls like one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AlwaysScope {
    /// Calls with exactly these arguments.
    ThisCall,
    /// Every call of the tool.
    EveryCall,
}

impl Call<'_> {
    /// Tells what "always" means: a tool that can destroy, or reaches beyond this machine, does
    /// something else with other arguments. What a stranger's plugin says of itself is no reason to
    /// take it for harmless.
    pub fn always_scope(&self) -> AlwaysScope {
        let promises = self.annotations;
        let is_harmless = promises.read_only || !(promises.destructive || promises.open_world);
        match self.source {
            PluginSource::Shipped if is_harmless => AlwaysScope::EveryCall,
            PluginSource::Shipped | PluginSource::Elsewhere => AlwaysScope::ThisCall,
        }
    }
}
