//! A plugin without a dynamic library whose calls run bodies from checks. It is used to check a
//! real host.

use std::sync::{Arc, mpsc};

use jaato_plugin_api::abi::abi_stable::sabi_trait::TD_Opaque;
use jaato_plugin_api::abi::abi_stable::std_types::{RNone, ROption, RResult, RStr, RVec};
use jaato_plugin_api::abi::async_ffi::{FfiFuture, FutureExt};
use jaato_plugin_api::abi::{
    Answer, ContextBox, EnvironmentBox, FactoryAbi, FactoryBox, GcBox, InstanceAbi, InstanceBox,
    Maybe, ProviderBox, ToolAbi, ToolBox,
};
use parking_lot::Mutex;

use super::CallBody;
use super::body::DEADLINE;

/// The plugin's manifest.
pub const BODIES_MANIFEST: &[u8] =
    br#"{"v":1,"name":"bodies","version":"1","api":"1.0.0","kinds":["tool"]}"#;

/// The body of the next call. The plugin takes it when the call starts. Clones share it.
#[derive(Clone, Default)]
pub struct BodyPlugin(Arc<Mutex<Option<CallBody>>>);

impl BodyPlugin {
    /// Returns the plugin's factory.
    pub fn factory(&self) -> FactoryBox {
        FactoryBox::from_value(self.clone(), TD_Opaque)
    }

    /// Sets the body of the call that `start` starts, and waits until the call has taken it.
    pub fn run_next_body<T>(&self, body: CallBody, start: impl FnOnce() -> T) -> T {
        let (taken, wait) = mpsc::channel();
        let body: CallBody = Box::new(move |context| {
            // The check may have failed and ended.
            let _ = taken.send(());
            body(context)
        });
        *self.0.lock() = Some(body);
        let started = start();
        assert!(wait.recv_timeout(DEADLINE).is_ok(), "the call does not begin");
        started
    }
}

impl FactoryAbi for BodyPlugin {
    fn create(
        &self,
        _context: ContextBox,
        _saved: ROption<RVec<u8>>,
    ) -> FfiFuture<RResult<InstanceBox, RVec<u8>>> {
        let instance = InstanceBox::from_value(self.clone(), TD_Opaque);
        std::future::ready(RResult::ROk(instance)).into_ffi()
    }
}

impl InstanceAbi for BodyPlugin {
    fn tools(&self) -> ROption<ToolBox> {
        Some(ToolBox::from_value(self.clone(), TD_Opaque)).into()
    }

    fn gc(&self) -> ROption<GcBox> {
        RNone
    }

    fn provider(&self) -> ROption<ProviderBox> {
        RNone
    }

    fn environment(&self) -> ROption<EnvironmentBox> {
        RNone
    }

    fn operation(&self, _name: RStr<'_>, _context: ContextBox, _frame: RVec<u8>) -> Answer {
        std::future::ready(RResult::RErr(RVec::new())).into_ffi()
    }

    fn save(&self) -> Maybe {
        std::future::ready(RResult::ROk(RNone)).into_ffi()
    }

    fn close(&self) -> FfiFuture<()> {
        std::future::ready(()).into_ffi()
    }
}

impl ToolAbi for BodyPlugin {
    fn call(&self, _name: RStr<'_>, context: ContextBox, _frame: RVec<u8>) -> Answer {
        let body = self.0.lock().take();
        match body {
            Some(body) => body(context),
            None => std::future::ready(RResult::RErr(RVec::new())).into_ffi(),
        }
    }
}
