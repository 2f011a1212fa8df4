//! The C entry: tables of functions for plugins that are not written in Rust. The header is made of
//! it.
//!
//! A plugin exports one static, [`EXPORT_NAME_C1`](crate::EXPORT_NAME_C1), a [`Plugin`]. The loader
//! fits it to the same traits as every other plugin, so that the rest of the host sees no
//! difference; manifest, description, frames, services and errors are the same JSON.
//!
//! Invariants:
//! - Tables begin with their size and grow at the end alone; who reads a member looks at the size
//!   first.
//! - Who makes a buffer frees it: it carries its own release function.
//! - What a plugin is asked is a kind, a name and a frame: a new kind is a number, not a member.

#[cfg(test)]
mod header;

use std::ffi::{c_char, c_void};

/// The version of both tables.
pub const VERSION: u32 = 1;

/// Defines constants, and tells the header of them.
macro_rules! constants {
    ($list:ident: $type:ty { $($(#[doc = $doc:literal])* $name:ident = $value:literal,)* }) => {
        $($(#[doc = $doc])* pub const $name: $type = $value;)*
        #[cfg(test)]
        const $list: &[header::Constant] = &[$(header::Constant {
            docs: &[$($doc),*], name: stringify!($name), value: $value as u64,
        }),*];
    };
}

/// Defines a struct as C lays it out, and tells the header of it.
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
    /// It is not done; the waker will be woken.
    PENDING = 0,
    /// It is done; where there is an answer, the buffer holds its frame.
    READY = 1,
    /// It failed; the buffer holds a frame with an error.
    FAILED = 2,
    /// A stream has ended.
    END = 3,
});

constants!(KINDS: u32 {
    /// The first call of an instance. The frame is what an earlier one saved, or has no bytes at
    /// all.
    OPEN = 0,
    /// A tool, by name. The frame's JSON are arguments that match its schema.
    TOOL = 1,
    /// The gc: `GcRequest` in, `GcPlan` out.
    GC = 2,
    /// The provider: `Request` in, `Delta` frames emitted, `Completion` out.
    COMPLETE = 3,
    /// The provider's models: a frame without JSON in, `[ModelInfo]` out.
    MODELS = 4,
    /// An operation, by name (`command`). One that is not known fails with `unknown_operation`.
    OPERATION = 5,
    /// What the next instance is to be given; ready without bytes when there is nothing to keep.
    SAVE = 6,
    /// The last call of an instance: it ends what it has going on.
    CLOSE = 7,
    /// The execution environment: an operation, by name.
    ENVIRONMENT = 8,
});

/// What a call or an instance may use of the host. Made and read by the host alone.
#[repr(C)]
pub struct Context {
    _opaque: [u8; 0],
}

/// Wakes whoever polls. Made and read by the host alone.
#[repr(C)]
pub struct Waker {
    _opaque: [u8; 0],
}

/// Something that a plugin has asked of the host. Made and read by the host alone.
#[repr(C)]
pub struct Request {
    _opaque: [u8; 0],
}

table! {
    /// A frame on its way out. Whoever takes it calls `release` where there is one, once.
    Buffer {
        /// The first byte; null when there is none.
        bytes: *const u8,
        /// How many.
        length: usize,
        /// For the maker's own use.
        owner: *mut c_void,
    } {
        /// Gives the buffer back to its maker; null for bytes that live for ever.
        fn release(buffer: *mut Buffer) -> ();
    }
}

table! {
    /// What the host lends. Every function may be called from any thread and never blocks for long.
    /// After the end of a call its context refuses everything; what waited fails.
    Host {
        /// Bytes of this table. A newer host has more.
        size: u32,
        /// The version of this table.
        version: u32,
    } {
        /// Returns a number that is unique to this call or instance within the process.
        fn context_id(context: *const Context) -> u64;
        /// Keeps a context beyond its call: it becomes an empty shell rather than a dangling
        /// pointer.
        fn context_keep(context: *const Context) -> ();
        /// Lets go of a context that was kept.
        fn context_drop(context: *const Context) -> ();
        /// Tells whether the call was cancelled or its context has ended.
        fn is_cancelled(context: *const Context) -> i32;
        /// Writes one line to the host's log: 1 error, 2 warn, 3 info, 4 debug.
        fn log(context: *const Context, level: u8, text: *const c_char, length: usize) -> ();
        /// Hands a frame to whoever waits for the call; 0 when it is not taken.
        fn emit(context: *const Context, frame: *const u8, length: usize) -> i32;
        /// Begins to sleep; ready when the time has passed.
        fn sleep_ms(context: *const Context, milliseconds: u64) -> *mut Request;
        /// Asks a service by name; ready with its frame.
        fn service(context: *const Context, name: *const c_char, name_length: usize, frame: *const u8, length: usize) -> *mut Request;
        /// Waits for the next piece of a stream; ready with a frame, or at the end.
        fn next(context: *const Context, handle: u64) -> *mut Request;
        /// Ends a stream.
        fn close(context: *const Context, handle: u64) -> ();
        /// Looks whether a request is done. Without a waker nobody is woken. Not after it was done.
        fn request_poll(request: *mut Request, waker: *const Waker, out: *mut Buffer) -> i32;
        /// Gives a request up, done or not. Null is ignored.
        fn request_drop(request: *mut Request) -> ();
        /// Keeps a waker beyond the poll that lent it.
        fn waker_keep(waker: *const Waker) -> *mut Waker;
        /// Wakes: the call will be polled again.
        fn waker_wake(waker: *const Waker) -> ();
        /// Lets go of a waker that was kept. Null is ignored.
        fn waker_drop(waker: *mut Waker) -> ();
    }
}

table! {
    /// What a plugin exports. No function may block, and no exception may leave one. Instances are
    /// used from several threads at once; a call by one thread at a time, but not always the same.
    Plugin {
        /// Bytes of this table: `sizeof(struct jaato_plugin_c1)`.
        size: u32,
        /// The version of this table: `JAATO_C1_VERSION`.
        version: u32,
    } {
        /// Describes the plugin: a frame with a `Description`. Makes no instance. Ready or failed.
        fn describe(out: *mut Buffer) -> i32;
        /// Begins the plugin's life in a process, before all but `describe`; the host lives as
        /// long. Ready or failed.
        fn start(host: *const Host, out: *mut Buffer) -> i32;
        /// Makes an instance; its context is lent until `destroy`. Null when that is not possible.
        fn create(context: *const Context) -> *mut c_void;
        /// Begins a call. Name and frame are lent until this returns, the context until `end`. Null
        /// when that is not possible.
        fn begin(instance: *mut c_void, kind: u32, name: *const c_char, name_length: usize, context: *const Context, frame: *const u8, length: usize) -> *mut c_void;
        /// Goes on with a call until it is pending, ready or failed. The waker is lent until this
        /// returns.
        fn poll(call: *mut c_void, waker: *const Waker, out: *mut Buffer) -> i32;
        /// Ends a call, once: done, or cancelled.
        fn end(call: *mut c_void) -> ();
        /// Ends an instance, after its last call.
        fn destroy(instance: *mut c_void) -> ();
    }
}

impl Buffer {
    /// Returns a buffer without bytes.
    pub const fn empty() -> Self {
        Self { bytes: std::ptr::null(), length: 0, owner: std::ptr::null_mut(), release: None }
    }
}
