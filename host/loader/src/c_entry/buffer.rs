//! Bytes that cross the C boundary: borrowed for a call, or handed over with a release function.

use std::ffi::c_char;

use jaato_plugin_api::c1::Buffer;
use jaato_types::FRAME_BYTES_MAX;

/// Number of bytes that are read at most. One byte beyond the limit is enough for a check to reject
/// the frame as too large.
const LOOKED_AT_MAX: usize = FRAME_BYTES_MAX + 1;

/// Borrows bytes from a plugin. Returns `None` for a null pointer with a length.
///
/// # Safety
/// `bytes` is null or points to `length` bytes that live and do not change for `'a`.
pub(super) unsafe fn borrow_bytes<'a>(bytes: *const u8, length: usize) -> Option<&'a [u8]> {
    if length == 0 {
        return Some(&[]);
    }
    if bytes.is_null() {
        return None;
    }
    // SAFETY: not null, and as the caller says; no longer than what is there.
    Some(unsafe { std::slice::from_raw_parts(bytes, length.min(LOOKED_AT_MAX)) })
}

/// Borrows a text from a plugin.
///
/// # Safety
/// As [`borrow_bytes`].
pub(super) unsafe fn borrow_text<'a>(text: *const c_char, length: usize) -> Option<&'a [u8]> {
    // SAFETY: as the caller says; characters of C are bytes.
    unsafe { borrow_bytes(text.cast(), length) }
}

/// Copies a buffer that a plugin filled and releases it. Returns `None` for a null pointer with a
/// length.
///
/// # Safety
/// `buffer` is empty, or as a plugin filled it.
pub(super) unsafe fn take_buffer(buffer: &mut Buffer) -> Option<Vec<u8>> {
    // SAFETY: the plugin's bytes live until they are released, right below.
    let bytes = unsafe { borrow_bytes(buffer.bytes, buffer.length) }.map(<[u8]>::to_vec);
    if let Some(release) = buffer.release.take() {
        // SAFETY: the plugin's own function for this very buffer, called once.
        unsafe { release(buffer) };
    }
    bytes
}

/// Hands bytes over to a plugin.
pub(super) fn to_buffer(bytes: Vec<u8>) -> Buffer {
    let bytes = Box::leak(bytes.into_boxed_slice());
    Buffer {
        bytes: bytes.as_ptr(),
        length: bytes.len(),
        owner: bytes.as_mut_ptr().cast(),
        release: Some(release_buffer),
    }
}

unsafe extern "C" fn release_buffer(buffer: *mut Buffer) {
    // SAFETY: null, or a buffer that the plugin was given and may use until it is released.
    let Some(buffer) = (unsafe { buffer.as_mut() }) else { return };
    let owner: *mut u8 = buffer.owner.cast();
    let length = buffer.length;
    *buffer = Buffer::empty();
    if !owner.is_null() {
        // SAFETY: `to_buffer` leaked it with this address and length; emptied above, so that it
        // goes once.
        drop(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(owner, length)) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffer_released_twice_is_freed_once() {
        let mut buffer = to_buffer(vec![1, 2, 3]);
        let again = buffer.release.unwrap();
        // SAFETY: a buffer of `to_buffer`'s, and its own function.
        assert_eq!(unsafe { take_buffer(&mut buffer) }, Some(vec![1, 2, 3]));
        // SAFETY: as above; it is empty.
        unsafe { again(&mut buffer) };
        // SAFETY: null is allowed.
        unsafe { again(std::ptr::null_mut()) };
    }

    #[test]
    fn null_buffer_with_a_length_is_rejected() {
        let mut buffer = Buffer { length: 5, ..Buffer::empty() };
        // SAFETY: null is allowed.
        assert_eq!(unsafe { take_buffer(&mut buffer) }, None);
        // SAFETY: no bytes at all.
        assert_eq!(unsafe { take_buffer(&mut Buffer::empty()) }, Some(Vec::new()));
    }

    #[test]
    fn oversized_buffer_is_read_only_one_byte_past_the_limit() {
        let bytes = vec![0; LOOKED_AT_MAX + 1];
        // SAFETY: the bytes are there.
        let seen = unsafe { borrow_bytes(bytes.as_ptr(), bytes.len()) }.map(<[u8]>::len);
        assert_eq!(seen, Some(FRAME_BYTES_MAX + 1));
    }
}
