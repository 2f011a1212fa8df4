//! Fetches, verifies and keeps the big files that plugins declare, such as model weights.
//!
//! Not a package manager: a file is pinned by its SHA-256, and where its bytes came from does not
//! matter. Knows no registry; starts no child itself ([`Run`]) and draws nothing ([`Event`]).
//!
//! Invariants:
//! - A path that is handed out holds the pinned bytes: each file is hashed once, then remembered by
//!   size, time and inode; a changed one is hashed again.
//! - A file under its own name is complete: bytes arrive in `….part` and are renamed at the end.
//! - What has arrived is kept, whatever goes wrong, and used next time.
//! - One writer per file, across processes: a lock beside it.

mod blocking;
mod bytes;
mod check;
mod digest;
mod error;
mod error_text;
mod event;
mod fetch;
mod gguf;
mod import;
mod list;
mod lock;
mod partial;
mod remembered;
mod run;
mod space;
mod store;
mod url;
mod wheels;

pub use bytes::Size;
pub use error::{AssetError, AssetErrorKind};
pub use event::{Event, Report};
pub use fetch::{Download, FetchSettings, Fetcher};
pub use jaato_types::{Asset, AssetSource};
pub use list::{Entry, EntryKind, State};
pub use run::{Command, Ended, Run, Running};
pub use store::{Found, Store};
