//! Decides whether a tool call may run.
