//! Plugin `provider-local`.
