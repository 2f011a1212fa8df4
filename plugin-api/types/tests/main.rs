//! What crosses the boundary as JSON: the shapes, the events, words from the future.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod c_page;
mod events;
mod future;
mod services_page;
mod shapes;
