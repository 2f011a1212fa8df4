//! A fake host and conformance suites for plugins.
