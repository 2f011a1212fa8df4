//! Configuration layers, trust, and where each value came from.
