//! Starts, watches and ends every child process of the host, and leaves none behind.
//!
//! ```text
//! host ── socket ──> guardian            one, started with the first child
//!   │                  ├─ keeper ── command ── …     one for each child, a fork of the guardian
//!   └──── socket ──────┘  └─ …           (what left the command's session, parent and variables)
//! ```
//!
//! A [`Supervisor`] creates a socket pair and the pipes of a child and sends one end of each to the
//! guardian, which forks a **keeper** and passes them on. The keeper reads from its socket what to
//! start, starts it, and reports what happens to it. Guardian and keepers are *subreapers*: the
//! kernel gives them the orphans among their descendants. So every process that a command starts,
//! even by `setsid`, double fork or with an empty environment, stays below its keeper until it
//! ends. "No child is left" then means that no descendant is left, without reading a list that may
//! be out of date.
//!
//! Invariants:
//! - Nothing is started before the first child. A session without children has no cost.
//! - A [`ChildProcess`] that is dropped, ended or lost with its host soon has no living descendant,
//!   because the keeper sees the end of the child's socket, however the host died.
//! - The end of the guardian ends every keeper's tree, and the end of a keeper ends its own. The
//!   keepers hold a pipe that hangs up with the guardian, and a dead keeper's orphans become the
//!   guardian's children.
//! - Guardian and keepers block every signal and are outside the host's process group. Ctrl-C, a
//!   closed terminal or a signal to the group does not reach them.
//! - A child gets the variables and descriptors of its [`ChildCommand`] and nothing else.
//! - [`ChildProcess::wait`] follows the command, not its pipes. [`ChildProcess::leftovers`] lists
//!   what it left running, and [`ChildProcess::release`] keeps that until the host ends.
//! - A command on a terminal leads a session that the terminal controls. The terminal belongs to
//!   the caller.
//! - No call blocks its thread, except for starting the guardian (about a millisecond, once).
//!
//! - If a command ends its own keeper and the guardian, the host ends the command's processes,
//!   provided that it called [`prepare_host`].
//!
//! These processes can escape: a process that we may not signal (`sudo`), which is reported as
//! [`ProcessError::Survivors`]; those of a command that ends keeper, guardian and host; and one
//! that another service starts for the command (`systemd-run`, `docker run`, `at`), which is never
//! a descendant.
//!
//! The binary calls [`guardian_main`] for a hidden subcommand, before it starts any thread:
//!
//! ```no_run
//! use jaato_process::{ChildCommand, GuardianCommand, StandardOutput, Supervisor};
//!
//! fn main() -> std::process::ExitCode {
//!     if std::env::args().nth(1).as_deref() == Some("guardian") {
//!         return jaato_process::guardian_main();
//!     }
//!     // … later, on a tokio runtime with I/O and time:
//!     # std::process::ExitCode::SUCCESS
//! }
//!
//! async fn list() -> Result<(), Box<dyn std::error::Error>> {
//!     let supervisor = Supervisor::new(GuardianCommand::own_executable(["guardian"])?);
//!     let mut command = ChildCommand::new("/bin/ls", "/");
//!     command.stdout = StandardOutput::Piped;
//!     let child = supervisor.spawn(command).await?;
//!     println!("{:?}", child.wait().await?);
//!     Ok(())
//! }
//! ```

mod child;
mod command;
mod connection;
mod descendants;
mod error;
mod guardian;
mod keeper;
mod orphans;
mod platform;
mod stdio;
mod supervisor;
mod waiting;
mod wire;

pub use child::{ChildInput, ChildOutput, ChildProcess, Exit, GroupSignal, Leftover};
pub use command::{ChildCommand, ErrorOutput, ProcessLimits, StandardInput, StandardOutput};
pub use connection::GuardianCommand;
pub use error::ProcessError;
pub use guardian::guardian_main;
pub use keeper::END_GRACE;
pub use orphans::{Orphan, prepare_host};
pub use platform::SESSION_MARK;
pub use stdio::open_terminal;
pub use supervisor::{SPAWNS_IN_FLIGHT_MAX, Supervisor};
pub use wire::LEFTOVERS_MAX;
