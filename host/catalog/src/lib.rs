//! Which plugins there are: what a host is set up with, the files that were found, described and
//! trusted, and what follows when they change.
//!
//! It opens no plugin: a file is described by a child, and called by whoever stands above.
//! [`Setup`] reads folders, trust and configuration; [`discover()`] finds the plugins once;
//! [`Plugins`] keeps what is known of them up to date, for each session by itself.
//!
//! Invariants:
//! - Of a workspace that is not trusted nothing but manifests is read.
//! - A file that cannot be used changes nothing but what a person is told.

mod describe;
mod discover;
mod errand;
mod exit;
mod grants;
mod plugins;
mod setup;
mod trusted;

pub use describe::{DESCRIBE_DEADLINE, describe};
pub use discover::{
    Again, Discovery, Search, Searched, SearchedFile, Seen, discover, places, problem_line, rules,
    search,
};
pub use errand::{Errand, folder_of_children};
pub use exit::exit_text;
pub use grants::{GrantHolder, GrantTable, Standing};
pub use plugins::{
    Catalog, DescribedAgain, Edition, Offer, Plugins, ScanInputs, Start, describe_again,
};
pub use setup::{Arguments, GUARDIAN_ARGUMENT, Setup, SetupError, supervisor};
pub use trusted::{CopyError, forget_copy, private_copy, sha256_of, trust_command, trust_line};
