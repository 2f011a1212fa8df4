//! What plugin authors use: plain Rust traits, an export macro, a panic fence.
