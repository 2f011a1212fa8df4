//! A plugin's function table after a check that every member is set.

use std::ffi::c_void;
use std::mem::{MaybeUninit, offset_of};

use abi_stable::std_types::{RResult, RVec};
use jaato_plugin_api::c1::{self, Buffer, Context, Plugin, VERSION, Waker};
use jaato_types::{Frame, PluginName};

use super::{buffer, misbehaved_error};

/// Size of the shortest table in bytes. Members after this one were appended later and may be
/// missing.
const FIRST_BYTES: usize = offset_of!(Plugin, destroy) + size_of::<usize>();

/// A plugin's exported functions.
#[derive(Clone, Copy)]
pub(crate) struct CFunctionTable {
    describe: unsafe extern "C" fn(*mut Buffer) -> i32,
    pub(super) start: unsafe extern "C" fn(*const c1::Host, *mut Buffer) -> i32,
    pub(super) create: unsafe extern "C" fn(*const Context) -> *mut c_void,
    pub(super) begin: BeginFunction,
    pub(super) poll: unsafe extern "C" fn(*mut c_void, *const Waker, *mut Buffer) -> i32,
    pub(super) end: unsafe extern "C" fn(*mut c_void),
    pub(super) destroy: unsafe extern "C" fn(*mut c_void),
}

type BeginFunction = unsafe extern "C" fn(
    *mut c_void,
    u32,
    *const std::ffi::c_char,
    usize,
    *const Context,
    *const u8,
    usize,
) -> *mut c_void;

impl CFunctionTable {
    /// Reads a plugin's table. The error describes the fault.
    ///
    /// # Safety
    /// `table` is the address of what a plugin exports as its C entry: it begins with a size, as
    /// many bytes are there, and the file is never unloaded.
    pub(crate) unsafe fn read_table(table: *const Plugin) -> Result<Self, String> {
        if table.is_null() || !table.is_aligned() {
            return Err("its address is not that of a table".to_owned());
        }
        // SAFETY: as the caller says, the size is there.
        let size = unsafe { (&raw const (*table).size).read() } as usize;
        let needs = size_of::<Plugin>();
        let too_short =
            || Err(format!("its table has {size} bytes, version {VERSION} has {needs}"));
        if size < offset_of!(Plugin, version) + size_of::<u32>() {
            return too_short();
        }
        // SAFETY: within the size.
        let version = unsafe { (&raw const (*table).version).read() };
        if version != VERSION {
            return Err(format!("its table has version {version}, this host speaks {VERSION}"));
        }
        if size < FIRST_BYTES {
            return too_short();
        }
        let mut own = MaybeUninit::<Plugin>::zeroed();
        let bytes = size.min(size_of::<Plugin>());
        // SAFETY: within the size there and here; bytes have no alignment.
        unsafe { table.cast::<u8>().copy_to_nonoverlapping(own.as_mut_ptr().cast(), bytes) };
        // SAFETY: each member is a number, or a pointer to a function that may be null.
        Self::check_table(&unsafe { own.assume_init() })
    }

    fn check_table(table: &Plugin) -> Result<Self, String> {
        fn require_function<T>(function: Option<T>, name: &str) -> Result<T, String> {
            function.ok_or_else(|| format!("its function `{name}` is null"))
        }
        Ok(Self {
            describe: require_function(table.describe, "describe")?,
            start: require_function(table.start, "start")?,
            create: require_function(table.create, "create")?,
            begin: require_function(table.begin, "begin")?,
            poll: require_function(table.poll, "poll")?,
            end: require_function(table.end, "end")?,
            destroy: require_function(table.destroy, "destroy")?,
        })
    }

    /// Asks for the description.
    pub(crate) fn describe_plugin(&self, plugin: &PluginName) -> RResult<RVec<u8>, RVec<u8>> {
        let mut out = Buffer::empty();
        // SAFETY: the plugin's function; the buffer lives until it returns.
        let status = unsafe { (self.describe)(&mut out) };
        // SAFETY: as the plugin filled it.
        let bytes = unsafe { buffer::take_buffer(&mut out) };
        match parse_answer(plugin, "describe", status, bytes) {
            Ok(bytes) => RResult::ROk(bytes.into()),
            Err(error) => RResult::RErr(error.into()),
        }
    }
}

/// Interprets the result of a plugin's function: a frame, or a frame with an error.
pub(super) fn parse_answer(
    plugin: &PluginName,
    function: &str,
    status: i32,
    bytes: Option<Vec<u8>>,
) -> Result<Vec<u8>, Vec<u8>> {
    let refused = |what: String| Err(error_frame(&misbehaved_error(plugin, what)));
    match (status, bytes) {
        (c1::READY | c1::FAILED, None) => {
            refused(format!("`{function}` gave a length without bytes"))
        }
        (c1::READY, Some(bytes)) => Ok(bytes),
        (c1::FAILED, Some(bytes)) if bytes.is_empty() => {
            refused(format!("`{function}` failed without an error"))
        }
        (c1::FAILED, Some(bytes)) => Err(bytes),
        (other, _) => {
            refused(format!("`{function}` returned {other}, which is not a valid status"))
        }
    }
}

/// Writes an error as a frame. An error is small, so it always fits.
pub(super) fn error_frame(error: &jaato_types::Error) -> Vec<u8> {
    Frame::write(error).unwrap_or_else(|_| Frame::empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a table of words that claims this size.
    fn read_entry_table(size: u32, version: u32, members: [usize; 7]) -> Result<(), String> {
        let mut words = vec![0_u64; size.div_ceil(8).max(1) as usize];
        let head = [size.to_ne_bytes(), version.to_ne_bytes()].concat();
        let members = members.iter().flat_map(|member| member.to_ne_bytes());
        let bytes: Vec<u8> = head.into_iter().chain(members).take(words.len() * 8).collect();
        for (word, bytes) in words.iter_mut().zip(bytes.chunks(8)) {
            let mut whole = [0; 8];
            whole[..bytes.len()].copy_from_slice(bytes);
            *word = u64::from_ne_bytes(whole);
        }
        // SAFETY: as many bytes are there as the size says, and at least the size.
        unsafe { CFunctionTable::read_table(words.as_ptr().cast()) }.map(|_| ())
    }

    const WHOLE: u32 = size_of::<Plugin>() as u32;

    #[test]
    fn truncated_function_table_is_refused_and_a_longer_one_is_accepted() {
        for size in 0..WHOLE {
            let refused = read_entry_table(size, VERSION, [1; 7]).unwrap_err();
            assert_eq!(
                refused,
                format!("its table has {size} bytes, version 1 has {WHOLE}"),
                "{size}"
            );
        }
        for size in [WHOLE, WHOLE + 8, WHOLE + 800] {
            assert_eq!(read_entry_table(size, VERSION, [1; 7]), Ok(()), "{size}");
        }
    }

    #[test]
    fn another_version_and_a_null_function_are_refused() {
        for version in [0, VERSION + 1, u32::MAX] {
            assert!(
                read_entry_table(WHOLE, version, [1; 7])
                    .unwrap_err()
                    .contains("this host speaks 1")
            );
        }
        let names = ["describe", "start", "create", "begin", "poll", "end", "destroy"];
        for (at, name) in names.into_iter().enumerate() {
            let mut members = [1; 7];
            members[at] = 0;
            let expected = format!("its function `{name}` is null");
            assert_eq!(read_entry_table(WHOLE, VERSION, members), Err(expected));
        }
    }

    #[test]
    fn null_or_misaligned_table_address_is_refused() {
        for address in [std::ptr::null(), std::ptr::without_provenance(3)] {
            // SAFETY: neither is read.
            assert!(unsafe { CFunctionTable::read_table(address) }.is_err());
        }
    }
}
