//! Runs plugins: polls, fences, contexts, cancellation, streams.
//!
//! A [`Plugin`] holds a factory and creates [`Instance`]s. An instance runs calls, each in its own
//! [`HostContext`]. The [`Executor`] polls and drops everything that a plugin created. A plugin
//! accesses the host's [`Services`] only through its context. A [`Runtime`] provides time, threads,
//! and the place where host futures are polled.
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
    STREAMS_PER_PLUGIN_MAX, check_json, values_of,
};
pub use bytes::Bytes;
pub use call::Outlet;
pub use context::{
    Crossed, Crossing, EMITTED_BYTES_MAX, HostContext, Lent, PIECE_BYTES_MAX, Refusable,
    STREAMS_MAX, TASKS_MAX, WAITING_MAX,
};
pub use executor::{
    ABLE_TO_RUN_MAX, Executor, Guest, HostCode, JOB_OVERDUE_MAX, JOBS_LOST_MAX,
    JOBS_PER_PLUGIN_MAX, JOBS_WAITING_MAX, PluginTask, REPOLLS_PER_SECOND_MAX, STRIKES_MAX,
    THREADS, WALL_CLOCK_MAX,
};
pub use facet::{Facet, Facets};
pub use fence::{host_code, plugin_code};
pub use instance::{CLOSE_STEP_MAX, Instance};
pub use live::Live;
pub use plugin::Plugin;
pub use running::{Culprit, culprit};
pub use runtime::{Activity, Runtime, Thread, Work};
pub use services::{ByteStream, Caller, CallerKind, Frames, NoServices, Served, Services};
pub use watch::{Misdeed, Report, Watch};
