//! Runs a plugin: polls, fences, contexts, cancellation, streams.
//!
//! [`Plugin`] holds a factory and makes [`Instance`]s; an instance runs calls, each in a
//! [`HostContext`] of its own. Everything that a plugin made is polled and dropped by the
//! [`Executor`]; what a plugin may use of the host it reaches through its context, which lends the
//! host's [`Services`]. Time, threads and the place where futures of the host are polled come from
//! a [`Runtime`].
//!
//! The host and the fake host of the testkit stand on this one engine. Not here: files, processes,
//! workers, which plugins are trusted.
//!
//! Invariants:
//! - What a plugin made is polled and dropped by the executor alone, whoever let go of it.
//! - A panic costs the call; no panic of the host's own code crosses.
//! - After its end a context refuses everything.
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
