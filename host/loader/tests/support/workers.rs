//! Fakes for worker tests: a watch that reports nothing, and a worker that ends with its socket.

use futures_util::future::BoxFuture;
use jaato_loader::remote::WorkerProcess;
use jaato_loader::{EngineObserver, MisdeedReport};
use jaato_types::PluginName;

pub struct Silent;

impl EngineObserver for Silent {
    fn log(&self, _plugin: &PluginName, _level: u8, _text: &str) {}

    fn misbehaved(&self, _report: &MisdeedReport) {}

    fn trouble(&self, _text: &str) {}
}

/// A worker that ends with its socket.
pub struct EndsWithItsSocket;

impl WorkerProcess for EndsWithItsSocket {
    fn ended(&self) -> BoxFuture<'_, String> {
        Box::pin(std::future::pending())
    }

    fn end(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    fn go_on(&self) -> BoxFuture<'_, bool> {
        Box::pin(std::future::ready(false))
    }

    fn printed(&self) -> String {
        String::new()
    }
}
