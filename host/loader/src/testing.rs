//! The engine on tokio as a host for its conformance checks, with services of the test's choice.
//!
//! Requires the feature `testing`. For tests of crates above.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use jaato_plugin_engine::testing::{
    CallBody, CallUnderTest, EngineHost, HostUnderTest, SilentObserver,
};
use tokio::runtime::Runtime;

use crate::{EngineServices, Executor};

/// The host. Its calls run what a check tells them to.
pub struct LoaderHost<S> {
    host: EngineHost<S>,
    runtime: Runtime,
}

impl<S: Fn() -> Arc<dyn EngineServices>> LoaderHost<S> {
    /// Creates a host. Each call asks `services` for its services.
    pub fn new(services: S) -> Self {
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = runtime.worker_threads(2).enable_all().build().unwrap();
        let executor = Executor::new(runtime.handle().clone(), Arc::new(SilentObserver));
        Self { host: EngineHost::new(executor.0, services), runtime }
    }

    /// Returns the runtime of its services.
    pub fn runtime(&self) -> &Runtime {
        &self.runtime
    }
}

impl<S: Fn() -> Arc<dyn EngineServices>> HostUnderTest for LoaderHost<S> {
    fn start(&self, body: CallBody) -> Box<dyn CallUnderTest> {
        self.host.start(body)
    }
}
