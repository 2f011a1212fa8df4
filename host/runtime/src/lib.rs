//! Wires the host's crates together; the binary, tests and embedders stand on it.
