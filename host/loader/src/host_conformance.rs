//! The loader's contexts under the testkit's checks of a host: the fake host passes the very same.

use std::sync::{Arc, Mutex};

use abi_stable::sabi_trait::TD_Opaque;
use abi_stable::std_types::{RNone, ROption, RResult, RStr, RVec};
use async_ffi::{FfiFuture, FutureExt as _};
use futures_util::future::BoxFuture;
use jaato_plugin_api::abi::{
    Answer, ContextBox, FactoryAbi, FactoryBox, GcBox, InstanceAbi, InstanceBox, Maybe,
    ProviderBox, ToolAbi, ToolBox,
};
use jaato_plugin_testkit::host_conformance::{
    Body, CallUnderTest, Ended, HostUnderTest, TestReply, host_conformance, test_service,
};
use jaato_types::{Error, ErrorKind, Frame, Manifest, PluginName, Result};
use tokio::runtime::Runtime;

use crate::executor::Executor;
use crate::plugin::Plugin;
use crate::{Caller, Instance, NoServices, Report, RunningCall, Served, Services, Watch, lock};

/// The body of the next call, taken by the plugin's side when it begins.
type Next = Arc<Mutex<Option<Body>>>;

/// A plugin without a dylib: each of its calls is a body that a check gave.
struct Bodies(Next);

impl FactoryAbi for Bodies {
    fn create(
        &self,
        _context: ContextBox,
        _saved: ROption<RVec<u8>>,
    ) -> FfiFuture<RResult<InstanceBox, RVec<u8>>> {
        let instance = InstanceBox::from_value(Bodies(Arc::clone(&self.0)), TD_Opaque);
        std::future::ready(RResult::ROk(instance)).into_ffi()
    }
}

impl InstanceAbi for Bodies {
    fn tools(&self) -> ROption<ToolBox> {
        Some(ToolBox::from_value(Bodies(Arc::clone(&self.0)), TD_Opaque)).into()
    }

    fn gc(&self) -> ROption<GcBox> {
        RNone
    }

    fn provider(&self) -> ROption<ProviderBox> {
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

impl ToolAbi for Bodies {
    fn call(&self, _name: RStr<'_>, context: ContextBox, _frame: RVec<u8>) -> Answer {
        let body = lock(&self.0).take().unwrap();
        body(context)
    }
}

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
    next: Next,
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
        let next = Next::default();
        let factory = FactoryBox::from_value(Bodies(Arc::clone(&next)), TD_Opaque);
        let manifest = br#"{"v":1,"name":"bodies","version":"1","api":"1.0.0","kinds":["tool"]}"#;
        let plugin = Plugin::of(&executor, factory, Manifest::parse(manifest).unwrap());
        let instance = runtime.block_on(plugin.create(Arc::new(NoServices), None)).unwrap();
        Self { next, instance, runtime: Arc::new(runtime) }
    }
}

impl HostUnderTest for LoaderHost {
    fn start(&self, body: Body) -> Box<dyn CallUnderTest> {
        // The call takes its body on the executor; the slot must be free by the next one.
        let (taken, wait) = std::sync::mpsc::channel();
        let body: Body = Box::new(move |context| {
            taken.send(()).unwrap();
            body(context)
        });
        *lock(&self.next) = Some(body);
        let call = self.instance.call_tool("body", Frame::empty(), Arc::new(TestServices)).unwrap();
        wait.recv().unwrap();
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
