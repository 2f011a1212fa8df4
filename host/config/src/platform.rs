//! Information that only some systems have.

/// Returns the hard limit on file locks of this process. Returns `None` if locks are unlimited, or
/// the system does not have it.
#[cfg(target_os = "linux")]
pub fn file_lock_limit() -> Option<u64> {
    use rustix::process::{Resource, getrlimit};
    getrlimit(Resource::Locks).maximum
}

/// Returns `None`, because only Linux has this limit.
#[cfg(not(target_os = "linux"))]
pub fn file_lock_limit() -> Option<u64> {
    None
}
