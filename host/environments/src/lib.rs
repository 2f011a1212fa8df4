//! The execution environments of sessions, and the programs that run in them.
//!
//! An environment's plugin decides how its files, commands and terminals work. This crate sets the
//! environment up, shares it, passes on tools' requests, tracks ownership, and takes the
//! environment down. It also runs programs on this machine on behalf of environments
//! ([`ProgramRegistry`]).
//!
//! Invariants:
//! - Every running program and open file has a number that only its own session may use.
//! - Resources close before the environment, in reverse order.
//! - A program gets no variable that looks like a secret unless the user passes it.

mod environments;
mod outputs;
mod processes;

pub use environments::{
    EnvironmentListing, Environments, KeepOutput, KeptOutputs, SessionFileLimits, SessionOutputs,
    SharedEnvironment, is_operation, is_resource_operation, parse_settings,
};
pub use outputs::{OUTPUT_FILE_BYTES_MAX, OutputFolder};
pub use processes::{CallProcesses, EndedProcess, ProgramRegistry, declared_secrets};
