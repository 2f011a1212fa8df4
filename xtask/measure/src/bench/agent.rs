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

pub use children::measure_children;
pub use cost::measure_cost;
pub use flood::measure_flood;
pub use gc::measure_gc;
pub use interrupt::measure_interrupts;
pub use mcp::measure_mcp;
pub use sessions::measure_sessions;
pub use shell_calls::measure_shell_calls;
