//! The living instances of plugins, and the only way to call them.
//!
//! A plugin is opened when it is first called, in this process or in a worker. Its next edition
//! replaces it, it is created again when its worker dies, and it is closed with its session.
//! [`PluginCaller`] makes the calls: it checks whether the plugin's file changed, lends the
//! instance, creates the call's services, waits and saves. [`ServiceFactory`] provides the
//! services, whose content this crate does not know.
//!
//! Invariants:
//! - A plugin is opened once per process, and only to call it.
//! - An instance's saved state is passed to its successor.

mod call_site;
mod caller;
mod copies;
mod given_names;
mod instances;
mod workers;

pub use call_site::{
    CallAccess, CallAttachments, CallObjects, CallSite, DeltaCallback, EnvironmentAccess,
    EnvironmentRequest, NetworkActivityCallback, delta_callback,
};
pub use caller::{
    FacetRequest, PluginCaller, PluginInUse, PreparedCall, ServiceFactory, StateEffect,
};
pub use copies::PluginCopies;
pub use given_names::{clean_completion, clean_model};
pub use instances::{
    AskingInstance, CONTENTS_INSIDE_MAX, CallServices, InstanceLease, Instances, StateFollower,
    WeakLease, blame_plugin, drive_call, invalid_answer_error, isolation_reason, misbehaved_error,
};
pub use workers::{WORKER_MEMORY_BYTES, WORKER_OPEN_FILES, Workers, log_worker_output};
