//! The JSON at the boundary: formats, events, and words from newer versions.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod c_page;
mod events;
mod future;
mod services_page;
mod shapes;
