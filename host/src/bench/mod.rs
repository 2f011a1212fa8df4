//! `jaato bench`: what ways of working cost a model.

pub mod cli_vs_mcp;
