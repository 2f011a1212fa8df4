//! What only some systems tell.

/// Returns the hard bound on file locks of this process; `None` where there is no bound or no such
/// thing.
#[cfg(target_os = "linux")]
pub fn bound_of_locks() -> Option<u64> {
    use rustix::process::{Resource, getrlimit};
    getrlimit(Resource::Locks).maximum
}

/// Returns `None`: only Linux has this bound.
#[cfg(not(target_os = "linux"))]
pub fn bound_of_locks() -> Option<u64> {
    None
}
