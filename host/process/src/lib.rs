//! Starts, watches and ends every child process of the host.
