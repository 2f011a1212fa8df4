//! Fakes for worker tests: a watch that reports nothing, and a worker that ends with its socket.

use futures_util::future::BoxFuture;
use jaato_loader::remote::WorkerProcess;
use jaato_loader::{EngineObserver, MisbehaviorReport};
use jaato_types::PluginName;

pub struct SilentObserver;

impl EngineObserver for SilentObserver {
    fn log(&self, _plugin: &PluginName, _level: u8, _text: &str) {}

    fn report_misbehavior(&self, _report: &MisbehaviorReport) {}

    fn log_trouble(&self, _text: &str) {}
}

/// A worker that ends with its socket.
pub struct SocketWorkerProcess;

impl WorkerProcess for SocketWorkerProcess {
    fn wait_for_end(&self) -> BoxFuture<'_, String> {
        Box::pin(std::future::pending())
    }

    fn end_process(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    fn resume(&self) -> BoxFuture<'_, bool> {
        Box::pin(std::future::ready(false))
    }

    fn last_output(&self) -> String {
        String::new()
    }
}
