//! The child process that describes one plugin in isolation.
