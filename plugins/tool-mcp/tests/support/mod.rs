//! What tests over HTTP share: a client, a server that a test scripts, a person who agrees; and how
//! a test says that it is left out.

pub mod agrees;
pub mod fixture_server;
pub mod hyper_client;

pub use agrees::Agrees;
pub use fixture_server::{FixtureServer, Given, Seen};
pub use hyper_client::HyperClient;
