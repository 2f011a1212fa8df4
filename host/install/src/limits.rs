//! The size limits of an archive.

/// The maximum number of entries of an archive: one library per system, documents, perhaps sources.
pub const ARCHIVE_FILES_MAX: usize = 10_000;

/// The maximum number of bytes of an unpacked archive, because a small file can contain terabytes.
pub const UNPACKED_BYTES_MAX: u64 = 2 * 1024 * 1024 * 1024;
