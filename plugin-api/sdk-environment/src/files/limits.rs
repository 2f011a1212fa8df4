//! Bounds of what is done with files of this machine.

/// Symbolic links that a path may lead through, as in Linux.
pub const LINKS_MAX: u32 = 40;
/// Files and folders that one copy takes with it.
pub const COPY_ENTRIES_MAX: u64 = 200_000;
/// How often something is looked up again that is exchanged while we look at it.
pub(crate) const RACES_MAX: u32 = 64;
/// Writes to different names go on beside each other; those to one name wait for each other. So
/// many locks are spread over the names.
pub(crate) const WRITE_LOCKS: usize = 16;
