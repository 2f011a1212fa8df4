//! Bounds of what the engine looks at.

/// Folders deep that a tree is gone through, deleted or copied; each holds a descriptor open
/// meanwhile.
pub const DEPTH_MAX: usize = 256;
/// Bytes of a path, as in Linux.
pub const PATH_BYTES_MAX: usize = 4096;
/// Entries of one folder that are looked at.
pub const FOLDER_ENTRIES_MAX: usize = 1_000_000;
