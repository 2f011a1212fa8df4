//! A host in memory, for unit tests of plugins and for the conformance suites.

mod call;
mod clock;
mod context;
mod grants;
mod hook_calls;
mod host;
mod host_programs;
mod http;
mod instance;
mod log;
mod platform;
mod plugin_under_test;
mod program;
mod programs;
mod secrets;
mod services;
mod session_environment;
mod session_services;
mod stores;
mod stream;

pub use call::{FakeRunningCall, FinishedCall};
pub use clock::FakeClockMode;
pub use host::FakeHost;
pub use http::{FakeHttpAnswer, FakeHttpRequest};
pub use instance::FakeInstance;
pub use jaato_plugin_engine::LiveObjectCounts;
pub use jaato_plugin_engine::PIECE_BYTES_MAX;
pub use log::LogLine;
pub use plugin_under_test::PluginUnderTest;
pub use services::{FakeServiceReply, ServiceRequest};
pub use stream::FakeStream;

/// The name of the thread on which a fake host polls and drops everything of a plugin.
pub const EXECUTOR_THREAD: &str = "fake-executor";

/// The name of the threads on which a fake host runs blocking jobs.
pub const POOL_THREAD: &str = "fake-pool";
