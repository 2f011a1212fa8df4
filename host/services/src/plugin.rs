//! The services of one plugin, for one call or one instance, as the loader uses them.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use jaato_instances::{CallServices, WeakLease};
use jaato_loader::{EngineServiceAnswer, EngineServices, ServiceCaller};
use jaato_types::{Delta, Error};

use crate::call::ServiceCall;
use crate::offered;

/// The services of one plugin.
pub struct PluginServices(pub ServiceCall);

impl EngineServices for PluginServices {
    fn call(
        &self,
        caller: ServiceCaller,
        operation: &str,
        request: Vec<u8>,
    ) -> BoxFuture<'static, Result<EngineServiceAnswer, Error>> {
        offered::answer_operation(&self.0, &caller, operation, request)
    }
}

impl CallServices for PluginServices {
    fn show_notice(&self, text: String) {
        (self.0.tell)(Delta::notice(text));
    }

    fn for_instance(&self) -> Arc<dyn EngineServices> {
        Arc::new(Self(self.0.for_instance()))
    }

    fn program_variables(&self) -> Arc<BTreeMap<OsString, OsString>> {
        self.0.shared.processes.variables()
    }

    fn bind_lease(&self, lease: WeakLease) {
        // It is set only once.
        let _ = self.0.asker.set(lease);
    }
}
