//! Instances in a worker: the host's side.
//!
//! A worker is a process that runs one instance of one plugin. Host and worker speak [`wire`] over
//! a socket pair ([`link`]). A call's context exists on both sides and has one number. A plugin's
//! request crosses to the host, where the same [`HostContext`](jaato_plugin_engine::HostContext)
//! serves it as in-process. Nothing here runs on the plugin executor, because no code of the plugin
//! runs in this process.

mod connection;
mod death;
pub mod link;
pub mod wire;
mod worker;

pub use worker::{CREATE_MAX, OVERDUE_MAX, WorkerProcess, WorkerStart};
pub(crate) use worker::{RemoteCall, RemoteCanceller, RemoteInstance};
