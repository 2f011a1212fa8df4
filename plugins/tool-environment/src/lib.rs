//! Plugin `tool-environment`.
