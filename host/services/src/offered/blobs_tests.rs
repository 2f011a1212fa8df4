//! The services `blob.put` and `blob.get` under the testkit's checks, on the loader's contexts: the
//! fake host passes the very same.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use jaato_environments::Outputs;
use jaato_loader::{
    Caller, Executor, Instance, NoServices, Plugin, Report, RunningCall, Served, Services, Watch,
};
use jaato_plugin_testkit::host_conformance::{
    BODIES_MANIFEST, Bodies, Body, CallUnderTest, Ended, HostUnderTest, blob_conformance,
};
use jaato_types::{Error, Frame, Manifest, PluginName, SessionId};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use super::answer;
use crate::blobs::{Blobs, Uploads};

struct OnlyBlobs(Arc<Blobs>, Arc<Uploads>);

impl Services for OnlyBlobs {
    fn call(
        &self,
        _caller: Caller,
        operation: &str,
        frame: Vec<u8>,
    ) -> BoxFuture<'static, Result<Served, Error>> {
        let blobs = self.0.of(&SessionId::from("s1")).unwrap();
        answer(blobs, Arc::clone(&self.1), operation, frame)
    }
}

struct Silent;

impl Watch for Silent {
    fn log(&self, _plugin: &PluginName, _level: u8, _text: &str) {}

    fn misbehaved(&self, _report: &Report) {}

    fn trouble(&self, _text: &str) {}
}

struct RealHost {
    bodies: Bodies,
    instance: Instance,
    runtime: Arc<Runtime>,
    blobs: Arc<Blobs>,
    _folder: TempDir,
}

struct RealCall {
    call: RunningCall,
    runtime: Arc<Runtime>,
}

impl RealHost {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let executor = Executor::new(runtime.handle().clone(), Arc::new(Silent));
        let bodies = Bodies::default();
        let manifest = Manifest::parse(BODIES_MANIFEST).unwrap();
        let plugin = Plugin::of(&executor, bodies.factory(), manifest);
        let instance = runtime.block_on(plugin.create(Arc::new(NoServices), None)).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let blobs = Arc::new(Blobs::beside(Arc::new(Outputs::below(folder.path()))));
        Self { bodies, instance, runtime: Arc::new(runtime), blobs, _folder: folder }
    }
}

impl HostUnderTest for RealHost {
    fn start(&self, body: Body) -> Box<dyn CallUnderTest> {
        let services = Arc::new(OnlyBlobs(Arc::clone(&self.blobs), Arc::default()));
        let start = || self.instance.call_tool("body", Frame::empty(), services);
        let call = self.bodies.give(body, start).unwrap();
        Box::new(RealCall { call, runtime: Arc::clone(&self.runtime) })
    }
}

impl CallUnderTest for RealCall {
    fn cancel(self: Box<Self>) {
        self.call.cancel();
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
fn the_real_host_keeps_blobs_as_the_fake_one_does() {
    let host = RealHost::new();
    blob_conformance(&host);
    // `abc`, nothing, and a large one: what was not finished takes no room.
    let blobs = host.blobs.of(&SessionId::from("s1")).unwrap();
    assert_eq!(blobs.bytes(), 3 + jaato_types::service::BLOB_BYTES_MAX);
}
