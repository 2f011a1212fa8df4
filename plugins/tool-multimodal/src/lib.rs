//! `viewImage`: shows an image file to a model with vision.
//!
//! The file belongs to the session's execution environment. Its first bytes determine its type, not
//! its name. The image is not scaled or converted, because providers accept all four supported
//! formats.
#![forbid(unsafe_code)]

mod image;
mod tool;

jaato_plugin_sdk::export_plugin! { state: (), tools }
