//! Runs the engine's checks on the services `store.*`. The fake host passes the same checks.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use jaato_config::UserFolders;
use jaato_loader::testing::LoaderHost;
use jaato_loader::{EngineServiceAnswer, EngineServices, ServiceCaller};
use jaato_plugin_engine::testing::STORE_CHECKS;
use jaato_types::{Error, PluginName};

use super::answer_store_operation;
use crate::store::PluginStores;

struct StoreOnlyServices(Arc<PluginStores>, PluginName);

impl EngineServices for StoreOnlyServices {
    fn call(
        &self,
        _caller: ServiceCaller,
        operation: &str,
        frame: Vec<u8>,
    ) -> BoxFuture<'static, Result<EngineServiceAnswer, Error>> {
        answer_store_operation(&self.0, &self.1, operation, frame)
    }
}

#[test]
fn the_real_host_keeps_values_as_the_fake_one_does() {
    for (_, check) in STORE_CHECKS {
        let folder = tempfile::tempdir().unwrap();
        let stores =
            Arc::new(PluginStores::new(&UserFolders::under_root(folder.path()), folder.path()));
        let name = PluginName::from("moon");
        let services = || {
            Arc::new(StoreOnlyServices(Arc::clone(&stores), name.clone()))
                as Arc<dyn EngineServices>
        };
        check(&LoaderHost::new(services));
    }
}
