//! Support for HTTP tests: a client, a scripted server, and a user who agrees.

pub mod login_user;
pub mod fixture_server;
pub mod hyper_client;

pub use login_user::Agrees;
pub use fixture_server::{FixtureServer, Given, Seen};
pub use hyper_client::HyperClient;
