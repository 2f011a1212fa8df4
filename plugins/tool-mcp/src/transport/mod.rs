//! How bytes come and go: a connection as lines, and the programs that speak them.

pub mod lines;
pub mod memory;
pub mod program;
pub mod stdio;
pub mod wire;
