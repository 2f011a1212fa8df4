//! The living instances of plugins, and the one way to ask one something.
//!
//! A plugin is opened when it is first called, in this process or in a worker; it is followed by
//! its next edition, made again when its worker dies, and closed with its session. [`PluginCaller`]
//! asks: it looks whether the plugin's file changed, lends the instance, makes the services of the
//! call, waits, saves. What the services are it does not know: [`ServiceFactory`] makes them.
//!
//! Invariants:
//! - A plugin is opened once a process, and only to call it.
//! - What an instance saved is given to the one that follows it.

mod caller;
mod copies;
mod given_names;
mod instances;
mod site;
mod workers;

pub use caller::{Effect, Facet, PluginCaller, PluginInUse, Reached, ServiceFactory};
pub use copies::Copies;
pub use given_names::{clean_completion, clean_model};
pub use instances::{
    AskingInstance, CONTENTS_INSIDE_MAX, CallServices, Instances, Lease, WeakLease, drive,
    misbehaved, why_in_worker,
};
pub use site::{
    Access, Alive, Attachments, CallObjects, CallSite, EnvironmentAccess, EnvironmentRequest, Tell,
    teller,
};
pub use workers::{WORKER_MEMORY_BYTES, WORKER_OPEN_FILES, Workers, log_printed};
