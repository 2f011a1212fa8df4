//! The plugin that a fake host runs: linked into its test, or loaded from a file.

use std::sync::Arc;

use jaato_plugin_api::abi::abi_stable::std_types::{RResult, RVec};
use jaato_plugin_api::abi::{FactoryBox, LogBox};
use jaato_types::{Description, Error, ErrorKind, Manifest, Result};

use super::call::{read_answer, read_error};
use crate::Module;

type DescribeFunction = dyn Fn() -> Result<Description> + Send + Sync;
type FactoryFunction = dyn Fn(LogBox) -> RResult<FactoryBox, RVec<u8>> + Send + Sync;

/// A plugin to run. A [`Module`] is one.
#[derive(Clone)]
pub struct PluginUnderTest {
    manifest: Result<Manifest>,
    describe: Arc<DescribeFunction>,
    factory: Arc<FactoryFunction>,
}

impl PluginUnderTest {
    /// Creates a subject from the three parts of a plugin. The host's executor calls both
    /// functions.
    pub fn new(
        manifest: Manifest,
        describe: impl Fn() -> Result<Description> + Send + Sync + 'static,
        factory: impl Fn(LogBox) -> RResult<FactoryBox, RVec<u8>> + Send + Sync + 'static,
    ) -> Self {
        Self { manifest: Ok(manifest), describe: Arc::new(describe), factory: Arc::new(factory) }
    }

    pub(crate) fn manifest(&self) -> Result<Manifest> {
        self.manifest.clone()
    }

    pub(crate) fn describe(&self) -> Result<Description> {
        (self.describe)()
    }

    pub(crate) fn factory(&self, log: LogBox) -> Result<FactoryBox> {
        match (self.factory)(log) {
            RResult::ROk(factory) => Ok(factory),
            RResult::RErr(error) => Err(read_error(&error)),
        }
    }
}

impl From<Module> for PluginUnderTest {
    fn from(module: Module) -> Self {
        let manifest = Manifest::parse(module.manifest)
            .map_err(|error| Error::new(ErrorKind::PluginMisbehaved, error.to_string()));
        let describe = move || match (module.describe)() {
            RResult::ROk(frame) => read_answer(&frame),
            RResult::RErr(error) => Err(read_error(&error)),
        };
        let factory = move |log| (module.factory)(log);
        Self { manifest, describe: Arc::new(describe), factory: Arc::new(factory) }
    }
}
