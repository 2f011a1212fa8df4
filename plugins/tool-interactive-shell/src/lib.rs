//! Terminal sessions for the model: what a program shows, as a person would see and read it.
//!
//! Pure so far: bytes in, text out. Who starts programs and who waits for them is not known here.
#![forbid(unsafe_code)]

pub mod marks;
pub mod screen;
