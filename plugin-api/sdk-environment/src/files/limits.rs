//! Limits of operations on files of this machine.

/// The maximum number of symbolic links in one path, as in Linux.
pub const LINKS_MAX: u32 = 40;
/// The maximum number of files and folders that one copy includes.
pub const COPY_ENTRIES_MAX: u64 = 200_000;
/// The maximum number of retries if a name keeps changing during a look-up.
pub(crate) const RACES_MAX: u32 = 64;
/// The number of write locks. Names are distributed over the locks. Writes to one name wait for
/// each other, and writes to different names usually run in parallel.
pub(crate) const WRITE_LOCKS: usize = 16;
