//! `viewImage`: puts an image file before a model that looks at images.
//!
//! The file is one of the session's execution environment. What it is, its first bytes say and not
//! its name. Nothing is scaled or converted: providers take the four formats that it takes.
#![forbid(unsafe_code)]

mod image;
mod tool;

jaato_plugin_sdk::export_plugin! { state: (), tools }
