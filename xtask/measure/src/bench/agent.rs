//! `jaato run` as a whole, before a scripted model on loopback: what it costs, and how it ends.
//!
//! Where there is a yardstick, it is the same conversation held by `xtask/yardsticks/rig-agent`.

mod agents;
mod cost;
mod flood;
mod interrupt;
mod mcp;
mod memory;
mod script;
pub mod server;
mod shell_calls;
pub mod tree;

pub use cost::cost;
pub use flood::flood;
pub use interrupt::interrupt;
pub use mcp::mcp;
pub use shell_calls::shell_calls;
