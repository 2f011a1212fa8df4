//! The C entry: tables of functions for plugins that are not written in Rust. The C header is
//! generated from this module.
//!
//! A plugin exports one static, [`EXPORT_NAME_C1`](crate::EXPORT_NAME_C1), a [`Plugin`]. The loader
//! adapts it to the same traits as any other plugin, so that the rest of the host sees no
//! difference. Manifest, description, frames, services and errors are the same JSON.
//!
//! Invariants:
//! - Tables begin with their size and grow only at the end. A reader checks the size before it
//!   reads a member.
//! - The creator of a buffer frees it: each buffer has its own release function.
//! - A call has a kind, a name and a frame. A new kind is a number, not a member.

#[cfg(test)]
mod header;

use std::ffi::{c_char, c_void};

/// The version of both tables.
pub const VERSION: u32 = 1;

/// Defines constants, and passes them to the header generator.
macro_rules! constants {
    ($list:ident: $type:ty { $($(#[doc = $doc:literal])* $name:ident = $value:literal,)* }) => {
        $($(#[doc = $doc])* pub const $name: $type = $value;)*
        #[cfg(test)]
        const $list: &[header::Constant] = &[$(header::Constant {
            docs: &[$($doc),*], name: stringify!($name), value: $value as u64,
        }),*];
    };
}

/// Defines a struct with C layout, and passes it to the header generator.
macro_rules! table {
    (
        $(#[doc = $doc:literal])* $name:ident {
            $($(#[doc = $field_doc:literal])* $field:ident: $type:ty,)*
        } {
            $($(#[doc = $call_doc:literal])*
            fn $call:ident($($argument:ident: $argument_type:ty),*) -> $answer:ty;)*
        }
    ) => {
        $(#[doc = $doc])*
        #[repr(C)]
        #[derive(Clone, Copy)]
        pub struct $name {
            $($(#[doc = $field_doc])* pub $field: $type,)*
            $($(#[doc = $call_doc])*
            pub $call: Option<unsafe extern "C" fn($($argument: $argument_type),*) -> $answer>,)*
        }

        #[cfg(test)]
        impl $name {
            const SHAPE: header::Shape = header::Shape {
                docs: &[$($doc),*],
                name: stringify!($name),
                fields: &[$(header::Field {
                    docs: &[$($field_doc),*], name: stringify!($field), type_name: stringify!($type),
                }),*],
                calls: &[$(header::Function {
                    docs: &[$($call_doc),*],
                    name: stringify!($call),
                    arguments: &[$((stringify!($argument), stringify!($argument_type))),*],
                    answer: stringify!($answer),
                }),*],
            };
        }
    };
}

constants!(STATUSES: i32 {
    /// It is not done. The waker will be woken.
    PENDING = 0,
    /// It is done. If there is an answer, the buffer contains its frame.
    READY = 1,
    /// It failed. The buffer contains a frame with an error.
    FAILED = 2,
    /// A stream has ended.
    END = 3,
});

constants!(KINDS: u32 {
    /// The first call of an instance. The frame is the data that an earlier one saved, or has no
    /// bytes at all.
    OPEN = 0,
    /// A tool, by name. The frame's JSON contains arguments that match its schema.
    TOOL = 1,
    /// The gc: `GcRequest` in, `GcPlan` out.
    GC = 2,
    /// The provider: `Request` in, `Delta` frames emitted, `Completion` out.
    COMPLETE = 3,
    /// The provider's models: a frame without JSON in, `[ModelInfo]` out.
    MODELS = 4,
    /// An operation, by name (`command`). An unknown one fails with `unknown_operation`.
    OPERATION = 5,
    /// Returns the data for the next instance. Ready without bytes if there is nothing to save.
    SAVE = 6,
    /// The last call of an instance. It ends all activity of the instance.
    CLOSE = 7,
    /// An operation of the execution environment, by name.
    ENVIRONMENT = 8,
});

/// The host's services for a call or an instance. Only the host creates and reads it.
#[repr(C)]
pub struct Context {
    _opaque: [u8; 0],
}

/// Requests another poll of a call. Only the host creates and reads it.
#[repr(C)]
pub struct Waker {
    _opaque: [u8; 0],
}

/// A pending request of a plugin to the host. Only the host creates and reads it.
#[repr(C)]
pub struct Request {
    _opaque: [u8; 0],
}

table! {
    /// A frame passed to the other side. The receiver calls `release` once, unless it is null.
    Buffer {
        /// The first byte. Null if there are none.
        bytes: *const u8,
        /// The number of bytes.
        length: usize,
        /// For use by the creator.
        owner: *mut c_void,
    } {
        /// Returns the buffer to its creator. Null for static bytes.
        fn release(buffer: *mut Buffer) -> ();
    }
}

table! {
    /// The functions of the host. Each may be called from any thread and never blocks for long.
    /// After the end of a call, its context refuses everything, and pending requests fail.
    Host {
        /// The size of this table in bytes. A newer host has a larger one.
        size: u32,
        /// The version of this table.
        version: u32,
    } {
        /// Returns a number that is unique to this call or instance within the process.
        fn context_id(context: *const Context) -> u64;
        /// Keeps a context after its call. It then refuses everything, but the pointer stays valid.
        fn context_keep(context: *const Context) -> ();
        /// Releases a context that was kept.
        fn context_drop(context: *const Context) -> ();
        /// Returns 1 if the call was cancelled or its context has ended, otherwise 0.
        fn is_cancelled(context: *const Context) -> i32;
        /// Writes one line to the host's log: 1 error, 2 warn, 3 info, 4 debug.
        fn log(context: *const Context, level: u8, text: *const c_char, length: usize) -> ();
        /// Passes a frame to the caller. Returns 0 if it is not accepted.
        fn emit(context: *const Context, frame: *const u8, length: usize) -> i32;
        /// Starts to sleep. Ready after the time has passed.
        fn sleep_ms(context: *const Context, milliseconds: u64) -> *mut Request;
        /// Calls a service by name. Ready with its frame.
        fn service(context: *const Context, name: *const c_char, name_length: usize, frame: *const u8, length: usize) -> *mut Request;
        /// Waits for the next piece of a stream. Ready with a frame, or at the end.
        fn next(context: *const Context, handle: u64) -> *mut Request;
        /// Closes a stream.
        fn close(context: *const Context, handle: u64) -> ();
        /// Checks whether a request is done. If the waker is null, nothing is woken. Do not call it
        /// again after the request is done.
        fn request_poll(request: *mut Request, waker: *const Waker, out: *mut Buffer) -> i32;
        /// Drops a request, done or not. Null is ignored.
        fn request_drop(request: *mut Request) -> ();
        /// Keeps a waker after the poll to which it was passed.
        fn waker_keep(waker: *const Waker) -> *mut Waker;
        /// Wakes the call, so that the host polls it again.
        fn waker_wake(waker: *const Waker) -> ();
        /// Releases a waker that was kept. Null is ignored.
        fn waker_drop(waker: *mut Waker) -> ();
    }
}

table! {
    /// The exports of a plugin. No function may block, and no exception may leave one. Several
    /// threads use an instance at the same time. A call is used by one thread at a time, but not
    /// always the same.
    Plugin {
        /// The size of this table in bytes: `sizeof(struct jaato_plugin_c1)`.
        size: u32,
        /// The version of this table: `JAATO_C1_VERSION`.
        version: u32,
    } {
        /// Describes the plugin, without an instance: a frame with a `Description`. Ready or
        /// failed.
        fn describe(out: *mut Buffer) -> i32;
        /// Initializes the plugin in a process, before all functions except `describe`. The host
        /// table stays valid until the process ends. Ready or failed.
        fn start(host: *const Host, out: *mut Buffer) -> i32;
        /// Creates an instance. Its context is valid until `destroy`. Returns null on failure.
        fn create(context: *const Context) -> *mut c_void;
        /// Begins a call. Name and frame are valid until this function returns, the context until
        /// `end`. Returns null on failure.
        fn begin(instance: *mut c_void, kind: u32, name: *const c_char, name_length: usize, context: *const Context, frame: *const u8, length: usize) -> *mut c_void;
        /// Continues a call until it is pending, ready or failed. The waker is valid until this
        /// function returns.
        fn poll(call: *mut c_void, waker: *const Waker, out: *mut Buffer) -> i32;
        /// Ends a call that is done or cancelled. Called once.
        fn end(call: *mut c_void) -> ();
        /// Destroys an instance, after its last call.
        fn destroy(instance: *mut c_void) -> ();
    }
}

impl Buffer {
    /// Returns a buffer without bytes.
    pub const fn empty() -> Self {
        Self { bytes: std::ptr::null(), length: 0, owner: std::ptr::null_mut(), release: None }
    }
}
