//! Fetches, verifies and keeps the files that plugins declare, such as model weights.
