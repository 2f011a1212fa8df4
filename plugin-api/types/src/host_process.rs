//! The services `host_process.*`, which run programs on the host's own machine, outside the
//! session's execution environment, such as an MCP server.
//!
//! They have the same requests and answers as those of [`process`](crate::process). They need the
//! grant `host_process`, because a session in a container does not confine these programs.

use crate::process;

crate::operations::service_operations! { $ host_process_operations, Some("host_process"), passed_on;
    /// Starts a program on the host's machine. It ends with the call or instance that starts it,
    /// and never outlives the host.
    [hooks] spawn SPAWN "host_process.spawn": Spawn => SpawnAnswer + stream;
    /// Writes the bytes to a program's standard input.
    [hooks] write WRITE "host_process.write": ProcessWrite + bytes => ();
    /// Sends a signal to a program.
    [hooks] signal SIGNAL "host_process.signal": ProcessSignal => ();
    /// Ends a program and all processes that it started.
    [hooks] end END "host_process.end": ProcessRef => ();
}

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
