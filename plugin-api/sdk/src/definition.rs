//! Everything that one plugin offers, gathered by the export macro and checked once.

use std::collections::BTreeMap;

use jaato_plugin_api::abi::FactoryBox;
use jaato_plugin_api::abi::LogBox;
use jaato_plugin_api::abi::abi_stable::std_types::{RResult, RVec};
use jaato_types::{Description, Error, Result, ToolName};

use crate::environment::EnvironmentEntry;
use crate::gc::GcEntry;
use crate::provider::ProviderEntry;
use crate::state::State;
use crate::tool::ToolEntry;

/// What a plugin offers, typed by its state.
pub struct Definition<S: State> {
    /// Its tools as `inventory` found them: in link order.
    pub tools: Vec<&'static ToolEntry<S>>,
    /// Whether the manifest says that it has tools.
    pub wants_tools: bool,
    /// Its provider.
    pub provider: Option<ProviderEntry<S>>,
    /// Its gc.
    pub gc: Option<GcEntry<S>>,
    /// Its execution environment.
    pub environment: Option<EnvironmentEntry<S>>,
}

/// The two functions that a plugin exports. The export macro makes one of them public inside the crate,
/// so that a conformance suite can be run on the plugin without a dylib.
#[derive(Clone, Copy)]
pub struct Module {
    /// Describes the plugin.
    pub describe: extern "C" fn() -> RResult<RVec<u8>, RVec<u8>>,
    /// Gives out the factory.
    pub factory: extern "C" fn(LogBox) -> RResult<FactoryBox, RVec<u8>>,
    /// The embedded manifest.
    pub manifest: &'static [u8],
}

impl<S: State> Definition<S> {
    /// Sorts the tools by name.
    ///
    /// # Errors
    /// No tool at all where the manifest says there are some, two of one name, a name that providers refuse.
    pub(crate) fn tools_by_name(&self) -> Result<BTreeMap<ToolName, &'static ToolEntry<S>>> {
        let mut tools = BTreeMap::new();
        for entry in &self.tools {
            let name = (entry.spec)().name;
            if !name.is_valid() {
                let text =
                    format!("the tool name `{name}` is not 1 to 64 of a-z, A-Z, 0-9, `-`, `_`");
                return Err(Error::failed(text));
            }
            if tools.insert(name.clone(), *entry).is_some() {
                return Err(Error::failed(format!("the plugin has two tools named `{name}`")));
            }
        }
        if tools.is_empty() == self.wants_tools {
            let (text, hint) = if self.wants_tools {
                (
                    "the plugin exports tools but has none",
                    "add `tool!(…)` beside each tool's `impl`",
                )
            } else {
                ("the plugin has tools but does not export them", "add `tools` to `export_plugin!`")
            };
            return Err(Error::failed(text).with_hint(hint));
        }
        Ok(tools)
    }

    /// Puts the description together.
    pub(crate) fn describe(&self) -> Result<Description> {
        let mut description = Description { v: Description::VERSION, ..Description::default() };
        S::describe(&mut description);
        description.tools = self.tools_by_name()?.values().map(|entry| (entry.spec)()).collect();
        description.provider = self.provider.as_ref().map(|provider| (provider.spec)());
        description.environment = self.environment.as_ref().map(|it| (it.spec)());
        Ok(description)
    }
}
