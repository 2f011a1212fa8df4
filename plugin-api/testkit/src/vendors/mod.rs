//! Strict fakes of vendors' servers: what a plugin sends goes in, what the vendor would answer
//! comes out.
//!
//! Pure: no network, no clock. A test on a [`FakeHost`](crate::FakeHost) or a server on loopback
//! hands requests on. What a vendor refuses is refused, in its words; what it accepts is answered
//! by a script.

pub mod anthropic;
mod exchange;
pub mod github;
pub mod google;
pub mod ollama;
pub mod openai;
mod talk;

pub use exchange::{Answered, Asked};
pub use talk::{Talk, Vendor, look, results, said, strange_history};
