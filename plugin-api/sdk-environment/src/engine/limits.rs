//! Limits of the engine.

/// The deepest folder level of a walk, a deletion or a copy. Each level keeps a descriptor open.
pub const DEPTH_MAX: usize = 256;
/// The maximum number of bytes in a path, as in Linux.
pub const PATH_BYTES_MAX: usize = 4096;
/// The maximum number of entries that are read from one folder.
pub const FOLDER_ENTRIES_MAX: usize = 1_000_000;
