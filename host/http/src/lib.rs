//! The HTTP client of the host.
