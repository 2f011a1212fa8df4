//! The loader's contexts under the testkit's checks of a host: the fake host passes the very same.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use jaato_plugin_testkit::host_conformance::{
    BODIES_MANIFEST, Bodies, Body, CallUnderTest, Ended, HostUnderTest, TestReply,
    host_conformance, test_service,
};
use jaato_types::{Error, ErrorKind, Frame, Manifest, PluginName, Result};
use tokio::runtime::Runtime;

use crate::executor::Executor;
use crate::plugin::Plugin;
use crate::{Caller, Instance, NoServices, Report, RunningCall, Served, Services, Watch};

/// The services that the checks ask for.
struct TestServices;

impl Services for TestServices {
    fn call(
        &self,
        _caller: Caller,
        operation: &str,
        frame: Vec<u8>,
    ) -> BoxFuture<'static, Result<Served>> {
        let served = match test_service(operation, &frame) {
            TestReply::Frame(frame) => Ok(Served::Frame(frame)),
            TestReply::Never => return Box::pin(std::future::pending()),
            TestReply::Stream { pieces, ends } => {
                let pieces = futures_util::stream::iter(pieces.into_iter().map(Ok));
                let open = futures_util::stream::poll_fn(move |_| match ends {
                    true => std::task::Poll::Ready(None),
                    false => std::task::Poll::Pending,
                });
                let stream = futures_util::StreamExt::chain(pieces, open);
                Ok(Served::Stream(Box::new(stream)))
            }
            TestReply::Head { head, piece } => {
                let pieces = futures_util::stream::iter([Ok(piece)]);
                Ok(Served::StreamWith(head, Box::new(pieces)))
            }
            TestReply::Panic => panic!("the service `{operation}` panics, as the check wants it"),
            TestReply::Unknown => {
                let text = format!("this host has no service `{operation}`");
                Err(Error::new(ErrorKind::UnknownOperation, text))
            }
        };
        Box::pin(std::future::ready(served))
    }
}

struct Silent;

impl Watch for Silent {
    fn log(&self, _plugin: &PluginName, _level: u8, _text: &str) {}

    fn misbehaved(&self, _report: &Report) {}

    fn trouble(&self, _text: &str) {}
}

struct LoaderHost {
    bodies: Bodies,
    instance: Instance,
    runtime: Arc<Runtime>,
}

struct LoaderCall {
    call: RunningCall,
    runtime: Arc<Runtime>,
}

impl LoaderHost {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_time()
            .build()
            .unwrap();
        let executor = Executor::new(runtime.handle().clone(), Arc::new(Silent));
        let bodies = Bodies::default();
        let manifest = Manifest::parse(BODIES_MANIFEST).unwrap();
        let plugin = Plugin::of(&executor, bodies.factory(), manifest);
        let instance = runtime.block_on(plugin.create(Arc::new(NoServices), None)).unwrap();
        Self { bodies, instance, runtime: Arc::new(runtime) }
    }
}

impl HostUnderTest for LoaderHost {
    fn start(&self, body: Body) -> Box<dyn CallUnderTest> {
        let start = || self.instance.call_tool("body", Frame::empty(), Arc::new(TestServices));
        let call = self.bodies.give(body, start).unwrap();
        Box::new(LoaderCall { call, runtime: Arc::clone(&self.runtime) })
    }
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

#[test]
fn the_real_host_passes_the_checks_that_the_fake_one_passes() {
    host_conformance(&LoaderHost::new());
}
