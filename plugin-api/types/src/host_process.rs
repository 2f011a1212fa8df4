//! The services `host_process.*`, which run programs on the host's own machine, outside the
//! session's execution environment, such as an MCP server.
//!
//! They have the same requests and answers as those of [`process`](crate::process). They need the
//! grant `host_process`, because a session in a container does not confine these programs.

use crate::process;

/// Starts a program. Takes a [`Spawn`](process::Spawn), returns a [`Spawned`](process::Spawned)
/// with a stream of [`ProcessEvent`](process::ProcessEvent)s. The program ends with the call or
/// instance that starts it, and never outlives the host.
pub const SPAWN: &str = "host_process.spawn";
/// Writes to standard input. Takes a [`ProcessWrite`](process::ProcessWrite) with the bytes in the
/// same frame.
pub const WRITE: &str = "host_process.write";
/// Sends a signal. Takes a [`ProcessSignal`](process::ProcessSignal).
pub const SIGNAL: &str = "host_process.signal";
/// Ends a program and all processes that it started. Takes a [`ProcessRef`](process::ProcessRef).
pub const END: &str = "host_process.end";

/// Returns the corresponding operation of [`process`](crate::process). `None` for other operations.
pub fn process_operation(operation: &str) -> Option<&'static str> {
    match operation {
        SPAWN => Some(process::SPAWN),
        WRITE => Some(process::WRITE),
        SIGNAL => Some(process::SIGNAL),
        END => Some(process::END),
        _ => None,
    }
}
