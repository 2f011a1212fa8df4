//! The plugin executor on tokio: its timers, and the reactor for services.

use std::sync::Arc;
use std::time::Duration;

use jaato_plugin_engine::{
    BoxHostFuture, EngineObserver, LiveObjectCounts, PluginRuntime, THREADS,
};
use tokio::runtime::Handle;

/// The plugin executor. Clones are handles to the same executor. Its threads end with the last
/// handle and the last task.
#[derive(Clone)]
pub struct Executor(pub(crate) jaato_plugin_engine::Executor);

impl Executor {
    /// Creates an executor of [`THREADS`] threads. Starts none yet.
    ///
    /// The host's own futures (services, timers) use the reactor of `runtime`. `watch` receives the
    /// plugins' log lines and reports of their misbehaviour.
    pub fn new(runtime: Handle, watch: Arc<dyn EngineObserver>) -> Self {
        let runtime = Arc::new(TokioSpawner(runtime));
        Self(jaato_plugin_engine::Executor::new(THREADS, runtime, watch))
    }

    /// Runs an empty future on the executor and waits for it, to measure the cost of a hop. For
    /// benchmarks.
    #[doc(hidden)]
    pub async fn run_empty_future(&self) {
        self.0.run_empty_future().await;
    }

    /// Returns how many objects held by contexts are alive. For leak tests.
    #[doc(hidden)]
    pub fn live_objects(&self) -> LiveObjectCounts {
        self.0.live()
    }
}

struct TokioSpawner(Handle);

impl PluginRuntime for TokioSpawner {
    fn sleep(&self, time: Duration) -> BoxHostFuture<()> {
        let _entered = self.0.enter();
        Box::pin(tokio::time::sleep(time))
    }

    fn run_later(&self, time: Duration, work: Box<dyn FnOnce() + Send>) {
        self.0.spawn(async move {
            tokio::time::sleep(time).await;
            work();
        });
    }

    fn enter(&self, work: &mut dyn FnMut()) {
        let _entered = self.0.enter();
        work();
    }
}
