//! Transports: connections as lines, the programs behind them, and HTTP.

pub mod http;
pub mod lines;
pub mod memory;
pub mod program;
pub mod repair;
pub mod stdio;
pub mod wire;
