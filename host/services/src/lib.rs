//! The services that the host offers to plugins by name: session facts, configuration, assets,
//! folders, output files, blobs, the network with the user's keys, and the session's objects and
//! environment.
//!
//! A service is a file in [`offered`] and a row in its table. Larger services have their own
//! module. This crate decides nothing about tools and permissions, and calls no plugin.
//!
//! Invariants:
//! - A key goes only to the origin that its owner configured, and nothing displays it.
//! - An untrusted plugin gets no key, and can access only the objects of its own tools.

mod assets;
mod blobs;
mod call;
mod children;
mod counts;
mod credentials;
mod detached;
mod factory;
mod facts;
mod http;
mod key_commands;
mod objects;
mod offered;
mod plugin;
mod rate;
mod request_bodies;
mod scrub;
mod secret_place;
mod secrets;
mod section;
mod sessions;
mod setting_paths;
mod setting_variables;
mod settings;
mod shared;
mod store;
mod stored_keys;
mod unfinished_work;
mod web;
mod workspace_trust;
mod wrong_type;

pub use assets::{Assets, asset_progress_delta};
pub use blobs::{BlobStore, SessionBlobs, StoredBlob};
pub use credentials::{CredentialAccess, KeyInfo};
pub use factory::HostServices;
pub use key_commands::KeyCommands;
pub use secret_place::SecretStorageKind;
pub use sessions::{OpenSessions, SessionEntry, SessionMaker, TokenCountRequest};
pub use settings::{SettingProblem, list_setting_problems, named_plugin, variable_entries};
pub use shared::SharedServices;
pub use stored_keys::KeyStore;
