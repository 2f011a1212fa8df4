//! The execution environments of sessions, and the programs that they are made of.
//!
//! What files, commands and terminals are like in an environment is its plugin's: this room makes
//! one ready, shares it, passes on what tools ask, knows what is whose, and takes it down. Programs
//! of this machine are run here, for environments alone ([`Processes`]).
//!
//! Invariants:
//! - What runs or is open has a number, which only its own session may name.
//! - Resources close before the environment, in reverse order.
//! - A program gets no variable that looks like a secret unless the person passes it.

mod environments;
mod outputs;
mod processes;

pub use environments::{
    EnvironmentListed, Environments, LimitsOfAll, SessionOutputs, SharedEnvironment, is_operation,
    is_resource_operation,
};
pub use outputs::{OUTPUT_FILE_BYTES_MAX, Outputs};
pub use processes::{CallProcesses, EndedProcess, Processes, declared_secrets};
