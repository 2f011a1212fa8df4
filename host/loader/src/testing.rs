//! The engine on tokio as a host under its own checks, over services of a test's choice.
//!
//! Behind the feature `testing`, for tests of crates above.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use jaato_plugin_engine::testing::{Body, CallUnderTest, EngineHost, HostUnderTest, Silent};
use tokio::runtime::Runtime;

use crate::{Executor, Services};

/// The host: its calls do what a check gives them to do.
pub struct LoaderHost<S> {
    host: EngineHost<S>,
    runtime: Runtime,
}

impl<S: Fn() -> Arc<dyn Services>> LoaderHost<S> {
    /// Makes one; each call asks for its services.
    pub fn new(services: S) -> Self {
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = runtime.worker_threads(2).enable_all().build().unwrap();
        let executor = Executor::new(runtime.handle().clone(), Arc::new(Silent));
        Self { host: EngineHost::new(executor.0, services), runtime }
    }

    /// The runtime of its services.
    pub fn runtime(&self) -> &Runtime {
        &self.runtime
    }
}

impl<S: Fn() -> Arc<dyn Services>> HostUnderTest for LoaderHost<S> {
    fn start(&self, body: Body) -> Box<dyn CallUnderTest> {
        self.host.start(body)
    }
}
