//! Files read, changed and taken back.
#![forbid(unsafe_code)]
