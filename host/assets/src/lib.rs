//! Downloads, verifies and stores the big files that plugins declare, such as model weights.
//!
//! This is not a package manager: a file is pinned by its SHA-256, and the source of its bytes does
//! not matter. The crate knows no registry, starts no child itself ([`ProgramRunner`]) and displays
//! nothing ([`AssetEvent`]).
//!
//! Invariants:
//! - A returned path holds the pinned bytes. Each file is hashed once, then recognized by size,
//!   time and inode, and hashed again if it changed.
//! - A file under its own name is complete: bytes arrive in `….part`, which is renamed at the end.
//! - Received data is kept after any failure, and used next time.
//! - Each file has one writer across processes, because of a lock next to it.

mod blocking;
mod bytes;
mod check;
mod digest;
mod error;
mod error_text;
mod event;
mod fetch;
mod free_space;
mod gguf;
mod import;
mod list;
mod lock;
mod partial;
mod remembered;
mod run;
mod store;
mod url;
mod wheels;

pub use bytes::ByteSize;
pub use error::{AssetError, AssetErrorKind};
pub use event::{AssetEvent, AssetReporter};
pub use fetch::{DownloadPolicy, FetchSettings, Fetcher};
pub use jaato_types::{Asset, AssetSource};
pub use list::{AssetEntry, AssetEntryKind, AssetFileState};
pub use run::{ProgramCommand, ProgramExit, ProgramFuture, ProgramRunner};
pub use store::{AssetStore, VerifiedAsset};
