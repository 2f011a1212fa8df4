//! `jaato bench`: compares the cost of different ways of working.

pub mod cli_vs_mcp;
