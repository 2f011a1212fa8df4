//! Runs the engine's checks on a host with its plugin in a worker. The worker is the real one, on
//! its own runtime in this process.

use std::os::unix::net::UnixStream;
use std::time::Duration;

use jaato_loader::remote::WorkerStart;
use jaato_loader::{NoServices, RunningCall};
use jaato_plugin_engine::testing::{
    BODIES_MANIFEST, BodyPlugin, CHECKS, CallBody, CallResults, CallUnderTest, HostUnderTest,
    TestServices, run_checks,
};
use jaato_types::Manifest;
use tokio::runtime::{Builder, Runtime};

use super::workers::{SilentObserver, SocketWorkerProcess};
use super::*;

/// How long a check may wait until the worker releases a call.
const PATIENCE: Duration = Duration::from_secs(60);

struct WorkerHost {
    bodies: BodyPlugin,
    instance: Arc<Instance>,
    runtime: Arc<Runtime>,
    _worker: Runtime,
}

struct WorkerCall {
    call: RunningCall,
    runtime: Arc<Runtime>,
    instance: Arc<Instance>,
}

impl WorkerHost {
    fn new() -> Self {
        let runtime =
            || Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let (host, worker) = (runtime(), runtime());
        let (ours, theirs) = UnixStream::pair().unwrap();
        let bodies = BodyPlugin::default();
        let manifest = Manifest::parse(BODIES_MANIFEST).unwrap();
        let executor = Executor::new(worker.handle().clone(), Arc::new(SilentObserver));
        let plugin = StartedPlugin::from_factory(&executor, bodies.factory(), manifest.clone());
        worker.spawn(async move {
            let link = Arc::new(WorkerLink::new(theirs).unwrap());
            let writing = Arc::clone(&link);
            tokio::spawn(async move { writing.write_queued_bytes().await });
            handle_messages(link, plugin).await.unwrap();
        });
        let instance = host.block_on(async {
            let start = WorkerStart {
                manifest,
                socket: ours,
                process: Arc::new(SocketWorkerProcess),
                services: Arc::new(NoServices),
                saved: None,
            };
            let executor =
                Executor::new(tokio::runtime::Handle::current(), Arc::new(SilentObserver));
            Instance::start_in_worker(&executor, start).await.unwrap()
        });
        let (instance, runtime) = (Arc::new(instance), Arc::new(host));
        Self { bodies, instance, runtime, _worker: worker }
    }
}

impl HostUnderTest for WorkerHost {
    fn start(&self, body: CallBody) -> Box<dyn CallUnderTest> {
        let start = || self.instance.call_tool("body", Frame::empty(), Arc::new(TestServices));
        let call = self.bodies.run_next_body(body, start).unwrap();
        let (runtime, instance) = (Arc::clone(&self.runtime), Arc::clone(&self.instance));
        Box::new(WorkerCall { call, runtime, instance })
    }
}

impl CallUnderTest for WorkerCall {
    fn cancel(self: Box<Self>) {
        self.call.cancel();
        let answer = self.runtime.block_on(self.call.answer());
        assert!(answer.is_err(), "a cancelled call has no answer");
        // The host has its answer immediately. The worker releases the call a moment later.
        let start = std::time::Instant::now();
        while self.instance.calls_in_flight() > 0 {
            assert!(start.elapsed() < PATIENCE, "the worker holds on to the call");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn wait(self: Box<Self>) -> CallResults {
        let Self { mut call, runtime, .. } = *self;
        runtime.block_on(async {
            let mut emitted = Vec::new();
            while let Some(frame) = call.next_emission().await {
                emitted.push(frame);
            }
            CallResults::new(emitted, call.answer().await)
        })
    }
}

#[test]
fn host_with_a_worker_passes_the_engine_checks() {
    run_checks(CHECKS, &WorkerHost::new());
}

#[test]
fn concurrent_saves_are_each_answered() {
    let host = WorkerHost::new();
    let (first, second) =
        host.runtime.block_on(async { tokio::join!(host.instance.save(), host.instance.save()) });
    assert_eq!((first, second), (Ok(None), Ok(None)));
}
