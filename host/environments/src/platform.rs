//! What differs between systems: reading what is in memory alone.

use std::os::fd::AsFd;

/// Reads what is in memory; none where nothing is known of it, or the disk would be asked.
#[cfg(target_os = "linux")]
pub(crate) fn read_at_once(file: impl AsFd, buffer: &mut [u8], offset: u64) -> Option<usize> {
    use rustix::io::{IoSliceMut, ReadWriteFlags, preadv2};
    preadv2(file, &mut [IoSliceMut::new(buffer)], offset, ReadWriteFlags::NOWAIT).ok()
}

/// There is no such call.
#[cfg(not(target_os = "linux"))]
pub(crate) fn read_at_once(_file: impl AsFd, _buffer: &mut [u8], _offset: u64) -> Option<usize> {
    None
}
