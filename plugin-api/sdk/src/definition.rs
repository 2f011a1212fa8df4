//! The parts of a plugin, collected by the export macro and checked once.

use std::collections::BTreeMap;

use jaato_plugin_api::abi::FactoryBox;
use jaato_plugin_api::abi::LogBox;
use jaato_plugin_api::abi::abi_stable::std_types::{RResult, RVec};
use jaato_types::{Description, Error, Result, ToolName};

use crate::environment::EnvironmentEntry;
use crate::gc::{Gc, GcEntry};
use crate::hook::{HookEntry, Hooks};
use crate::provider::{Provider, ProviderEntry};
use crate::state::State;
use crate::tool::ToolEntry;

/// The parts of a plugin, typed by its state.
pub struct Definition<S: State> {
    /// The tools as `inventory` found them: in link order.
    pub tools: Vec<&'static ToolEntry<S>>,
    /// Whether the manifest says that the plugin has tools.
    pub wants_tools: bool,
    /// Whether the plugin may set tools while it runs.
    pub is_dynamic: bool,
    /// The provider.
    pub provider: Option<ProviderEntry<S>>,
    /// The gc.
    pub gc: Option<GcEntry<S>>,
    /// The execution environment.
    pub environment: Option<EnvironmentEntry<S>>,
    /// The hooks.
    pub hook: Option<HookEntry<S>>,
}

/// The two functions that a plugin exports. The export macro makes them public inside the crate, so
/// that a conformance suite can test the plugin without a dylib.
#[derive(Clone, Copy)]
pub struct Module {
    /// Describes the plugin.
    pub describe: extern "C" fn() -> RResult<RVec<u8>, RVec<u8>>,
    /// Returns the factory.
    pub factory: extern "C" fn(LogBox) -> RResult<FactoryBox, RVec<u8>>,
    /// The embedded manifest.
    pub manifest: &'static [u8],
}

impl<S: State> Definition<S> {
    /// Creates a definition with the tools. The method with the name of a kind adds the kind.
    pub fn new(tools: Vec<&'static ToolEntry<S>>, wants_tools: bool) -> Self {
        Self {
            tools,
            wants_tools,
            is_dynamic: false,
            provider: None,
            gc: None,
            environment: None,
            hook: None,
        }
    }

    /// Sets whether the plugin may set tools while it runs. If so, it does not have to declare any.
    #[must_use]
    pub fn dynamic(self, is_dynamic: bool) -> Self {
        Self { is_dynamic, ..self }
    }

    /// Adds the provider.
    #[must_use]
    pub fn provider<P: Provider<State = S>>(self) -> Self {
        Self { provider: Some(ProviderEntry::for_provider::<P>()), ..self }
    }

    /// Adds the gc.
    #[must_use]
    pub fn gc<G: Gc<State = S>>(self) -> Self {
        Self { gc: Some(GcEntry::for_gc::<G>()), ..self }
    }

    /// Adds the execution environment.
    #[must_use]
    pub fn environment(self, entry: EnvironmentEntry<S>) -> Self {
        Self { environment: Some(entry), ..self }
    }

    /// Adds the hooks.
    #[must_use]
    pub fn hook<H: Hooks<State = S>>(self) -> Self {
        Self { hook: Some(HookEntry::for_hooks::<H>()), ..self }
    }

    /// Returns the tools sorted by name.
    ///
    /// # Errors
    /// If the plugin has no tools although its manifest declares some, if two have the same name,
    /// or if providers refuse a name.
    pub(crate) fn tools_by_name(&self) -> Result<BTreeMap<ToolName, &'static ToolEntry<S>>> {
        let mut tools = BTreeMap::new();
        for entry in &self.tools {
            let name = (entry.spec)().name;
            if !name.is_valid() {
                let text = format!(
                    "invalid tool name `{name}`: expected 1 to 64 of a-z, A-Z, 0-9, `-`, `_`"
                );
                return Err(Error::failed(text));
            }
            if tools.insert(name.clone(), *entry).is_some() {
                return Err(Error::failed(format!("the plugin has two tools named `{name}`")));
            }
        }
        if tools.is_empty() == self.wants_tools && !self.is_dynamic {
            let (text, hint) = if self.wants_tools {
                (
                    "the plugin exports tools but has none",
                    "add `tool!(…)` next to each tool's `impl`",
                )
            } else {
                ("the plugin has tools but does not export them", "add `tools` to `export_plugin!`")
            };
            return Err(Error::failed(text).with_hint(hint));
        }
        Ok(tools)
    }

    /// Builds the description.
    pub(crate) fn describe(&self) -> Result<Description> {
        let mut description = Description { v: Description::VERSION, ..Description::default() };
        S::describe(&mut description);
        if !description.tools.is_empty() {
            let text = "`State::describe` must not fill in `tools`, because `tool!` declares them";
            return Err(Error::failed(text)
                .with_hint("write `tool!(…)` next to each tool's `impl`, or set changing tools with `Reporter::set_tools`"));
        }
        description.tools = self.tools_by_name()?.values().map(|entry| (entry.spec)()).collect();
        description.provider = self.provider.as_ref().map(|provider| (provider.spec)());
        if let Some(environment) = &self.environment {
            description.environment = Some((environment.spec)());
            description.environment_lacks = (environment.lacks)();
        }
        if let Some(hook) = &self.hook {
            if hook.asked.is_empty() {
                let text = "the plugin exports a hook, but `Hooks::ASKED` is empty";
                return Err(Error::failed(text).with_hint("list the hooks in `Hooks::ASKED`"));
            }
            description.hooks = hook.asked.to_vec();
            description.hook_deadlines_ms = hook.deadlines_ms.iter().copied().collect();
        }
        Ok(description)
    }
}
