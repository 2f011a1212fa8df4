//! Waits for a file descriptor in one direction.

use std::io;
use std::os::fd::OwnedFd;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Waits for a descriptor only in the directions of `interest`.
///
/// # Panics
/// Outside of a runtime with I/O enabled.
pub(crate) fn register_interest(
    socket: OwnedFd,
    interest: Interest,
) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` is open until it is dropped, is always the same descriptor, and lets no
    // other code close or exchange it.
    Ok(unsafe { AsyncFd::register_with_interest(socket, interest) }?)
}
