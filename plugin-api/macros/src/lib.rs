//! Derive macros of the sdk.
