//! The loader's contexts as a host under the testkit's checks, over services of a test's choice.
//!
//! Behind the feature `testing`, for this crate's tests and those of crates above.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use jaato_plugin_testkit::host_conformance::{
    BODIES_MANIFEST, Bodies, Body, CallUnderTest, Ended, HostUnderTest,
};
use jaato_types::{Frame, Manifest, PluginName};
use tokio::runtime::Runtime;

use crate::executor::Executor;
use crate::plugin::Plugin;
use crate::{Instance, NoServices, Report, RunningCall, Services, Watch};

struct Silent;

impl Watch for Silent {
    fn log(&self, _plugin: &PluginName, _level: u8, _text: &str) {}

    fn misbehaved(&self, _report: &Report) {}

    fn trouble(&self, _text: &str) {}
}

/// The host: an instance whose calls do what a check gives them to do.
pub struct LoaderHost<S> {
    bodies: Bodies,
    instance: Instance,
    runtime: Arc<Runtime>,
    services: S,
}

impl<S: Fn() -> Arc<dyn Services>> LoaderHost<S> {
    /// Makes one; each call asks for its services.
    pub fn new(services: S) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let executor = Executor::new(runtime.handle().clone(), Arc::new(Silent));
        let bodies = Bodies::default();
        let manifest = Manifest::parse(BODIES_MANIFEST).unwrap();
        let plugin = Plugin::of(&executor, bodies.factory(), manifest);
        let instance = runtime.block_on(plugin.create(Arc::new(NoServices), None)).unwrap();
        Self { bodies, instance, runtime: Arc::new(runtime), services }
    }

    /// The runtime on which its calls are driven.
    pub fn runtime(&self) -> &Runtime {
        &self.runtime
    }
}

impl<S: Fn() -> Arc<dyn Services>> HostUnderTest for LoaderHost<S> {
    fn start(&self, body: Body) -> Box<dyn CallUnderTest> {
        let start = || self.instance.call_tool("body", Frame::empty(), (self.services)());
        let call = self.bodies.give(body, start).unwrap();
        Box::new(LoaderCall { call, runtime: Arc::clone(&self.runtime) })
    }
}

struct LoaderCall {
    call: RunningCall,
    runtime: Arc<Runtime>,
}

impl CallUnderTest for LoaderCall {
    fn cancel(self: Box<Self>) {
        self.call.cancel();
        // The answer is there when the executor has dropped the future and ended the context.
        let answer = self.runtime.block_on(self.call.answer());
        assert!(answer.is_err(), "a cancelled call has no answer");
    }

    fn wait(self: Box<Self>) -> Ended {
        let Self { mut call, runtime } = *self;
        runtime.block_on(async {
            let mut emitted = Vec::new();
            while let Some(frame) = call.next_emission().await {
                emitted.push(frame);
            }
            let answer = call.answer().await;
            Ended { emitted, answer: answer.map_err(|error| Frame::write(&error).unwrap()) }
        })
    }
}
