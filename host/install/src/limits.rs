//! How large an archive may be.

/// Most entries of an archive: one library a system, papers, maybe sources.
pub const ARCHIVE_FILES_MAX: usize = 10_000;

/// Most bytes that an archive may hold: a small file can promise terabytes.
pub const UNPACKED_BYTES_MAX: u64 = 2 * 1024 * 1024 * 1024;
