//! How bytes come and go: a connection as lines, the programs that speak them, and HTTP.

pub mod http;
pub mod lines;
pub mod memory;
pub mod program;
pub mod repair;
pub mod stdio;
pub mod wire;
