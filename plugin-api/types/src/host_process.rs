//! The services `host_process.*`: programs of the machine that the host runs on, outside of the
//! session's execution environment: a server of tools (MCP), say.
//!
//! They are asked as those of [`process`](crate::process), with the same requests and answers. The
//! grant `host_process` is needed: a session in a container keeps no such program in.

use crate::process;

/// Starts a program: [`Spawn`](process::Spawn), [`Spawned`](process::Spawned) with a stream of
/// [`ProcessEvent`](process::ProcessEvent)s. One that a call starts ends with the call, one that an
/// instance starts ends with the instance, and none outlives the host.
pub const SPAWN: &str = "host_process.spawn";
/// Writes to standard input: [`ProcessWrite`](process::ProcessWrite) with the bytes beside it.
pub const WRITE: &str = "host_process.write";
/// Sends a signal: [`ProcessSignal`](process::ProcessSignal).
pub const SIGNAL: &str = "host_process.signal";
/// Ends a program and all that it started: [`ProcessRef`](process::ProcessRef).
pub const END: &str = "host_process.end";

/// Returns the operation of [`process`](crate::process) that is meant; `None` for what is none of
/// these.
pub fn process_operation(operation: &str) -> Option<&'static str> {
    match operation {
        SPAWN => Some(process::SPAWN),
        WRITE => Some(process::WRITE),
        SIGNAL => Some(process::SIGNAL),
        END => Some(process::END),
        _ => None,
    }
}
