//! The services `host_process.*`: programs of the machine that the host runs on, outside of the
//! session's execution environment: a server of tools (MCP), say.
//!
//! They are asked as those of [`process`](crate::process), with the same requests and answers. The
//! grant `host_process` is needed: a session in a container keeps no such program in.

use crate::process;

crate::operations::service_operations! { $ host_process_operations, Some("host_process"), passed_on;
    /// Starts a program on the host's machine. It ends with the call or the instance that starts
    /// it, and none outlives the host.
    spawn SPAWN "host_process.spawn": Spawn => Spawned + stream;
    /// Writes bytes to the standard input.
    write WRITE "host_process.write": ProcessWrite + bytes => ();
    /// Sends a signal.
    signal SIGNAL "host_process.signal": ProcessSignal => ();
    /// Ends a program and all that it started.
    end END "host_process.end": ProcessRef => ();
}

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
