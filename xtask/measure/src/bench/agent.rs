//! Measures `jaato run` as a whole with a scripted model on loopback: its cost, and its end.
//!
//! The yardstick, if there is one, holds the same conversation with `xtask/yardsticks/rig-agent`.

mod agents;
mod children;
mod cost;
mod flood;
mod gc;
mod interrupt;
mod mcp;
mod memory;
mod script;
pub mod server;
mod sessions;
mod shell_calls;
pub mod tree;

pub use children::children;
pub use cost::cost;
pub use flood::flood;
pub use gc::gc;
pub use interrupt::interrupt;
pub use mcp::mcp;
pub use sessions::sessions;
pub use shell_calls::shell_calls;
