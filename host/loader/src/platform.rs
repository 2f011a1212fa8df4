//! How a descriptor is waited for in one direction.

use std::io;
use std::os::fd::OwnedFd;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Waits for a descriptor in the directions of `interest` alone.
///
/// # Panics
/// Outside of a runtime that waits for descriptors.
pub(crate) fn waited_for(socket: OwnedFd, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` is open until it is dropped, is always the same descriptor, and gives
    // nobody its number to close or exchange.
    Ok(unsafe { AsyncFd::register_with_interest(socket, interest) }?)
}
