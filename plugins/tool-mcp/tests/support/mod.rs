//! Support for HTTP tests: a client, a scripted server, and a user who agrees.

pub mod fixture_server;
pub mod hyper_client;
pub mod login_user;

pub use fixture_server::{FixtureResponse, FixtureServer, ReceivedRequest};
pub use hyper_client::HyperClient;
pub use login_user::AgreeingUser;
