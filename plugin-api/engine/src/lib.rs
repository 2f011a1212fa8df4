//! Runs plugins: polls, fences, contexts, cancellation, streams.
//!
//! A [`EnginePlugin`] holds a factory and creates [`PluginInstance`]s. An instance runs calls, each
//! in its own [`HostContext`]. The [`Executor`] polls and drops everything that a plugin created. A
//! plugin accesses the host's [`EngineServices`] only through its context. A [`PluginRuntime`]
//! provides time, threads, and the place where host futures are polled.
//!
//! The host and the testkit's fake host share this engine. It does not handle files, processes,
//! workers, or trust.
//!
//! Invariants:
//! - Only the executor polls and drops the values that a plugin created.
//! - A panic fails the call. No panic of the host's own code crosses the boundary.
//! - After its end, a context refuses everything.
#![forbid(unsafe_code)]

mod bounds;
mod bytes;
mod call;
mod context;
mod executor;
mod facet;
mod fence;
mod instance;
mod live;
mod plugin;
mod running;
mod runtime;
mod services;
#[cfg(feature = "testing")]
pub mod testing;
mod waiters;
mod watch;

pub use bounds::{
    JSON_VALUES_MAX, QUESTION_BYTES_MAX, QUESTIONS_MAX, QUESTIONS_PER_PLUGIN_MAX,
    STREAMS_PER_PLUGIN_MAX, check_json, json_values_bound,
};
pub use bytes::FrameBytes;
pub use call::CallResultSink;
pub use context::{
    EMITTED_BYTES_MAX, HostContext, HostFuture, HostFutureOutput, PIECE_BYTES_MAX, STREAMS_MAX,
    ServiceReply, ServiceReplyResult, TASKS_MAX, WAITING_MAX,
};
pub use executor::{
    ABLE_TO_RUN_MAX, Executor, GuestPlugin, HostCodeGuard, JOB_OVERDUE_MAX, JOBS_LOST_MAX,
    JOBS_PER_PLUGIN_MAX, JOBS_WAITING_MAX, PluginTask, REPOLLS_PER_SECOND_MAX, STRIKES_MAX,
    THREADS, WALL_CLOCK_MAX,
};
pub use facet::{Facet, FacetSet};
pub use fence::{run_host_code, run_plugin_code};
pub use instance::{CLOSE_STEP_MAX, PluginInstance};
pub use live::LiveObjectCounts;
pub use plugin::EnginePlugin;
pub use running::{CrashSuspect, running_plugin};
pub use runtime::{BoxHostFuture, EngineActivity, EngineThread, PluginRuntime};
pub use services::{
    ByteStream, CallerKind, EngineServiceAnswer, EngineServices, FrameStream, NoServices,
    ServiceCaller,
};
pub use watch::{EngineObserver, LONG_BLOCK, Misbehavior, MisbehaviorReport};
