//! A plugin behind the C entry that randomly does everything that a plugin may do, and many things
//! that it must not. It follows the header's memory rules but breaks all others.
//!
//! It counts its requests: everything that begins must end, once and in order.

// Everything here is the other side of the boundary.
#![allow(unsafe_op_in_unsafe_fn)]

use std::ffi::{c_char, c_void};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicPtr, AtomicU64, Ordering::SeqCst};

use jaato_plugin_api::c1::{self, Buffer, Context, Host, Plugin, Request, VERSION, Waker};
use jaato_types::{FRAME_BYTES_MAX, Frame};
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, json};

use crate::random::Random;

/// The number of living objects, all 0 when everything has ended.
#[derive(Default)]
pub struct CallTally {
    pub instances: AtomicI64,
    pub calls: AtomicI64,
    pub buffers: AtomicI64,
    /// Number of calls used after their end, and of instances that ended before their calls.
    pub wrong: AtomicI64,
}

/// The counts of all instances of this program.
pub static TALLY: CallTally = CallTally {
    instances: AtomicI64::new(0),
    calls: AtomicI64::new(0),
    buffers: AtomicI64::new(0),
    wrong: AtomicI64::new(0),
};

/// The seed for the next object's random numbers.
pub static SEED: AtomicU64 = AtomicU64::new(0);

static HOST: AtomicPtr<Host> = AtomicPtr::new(null_mut());

/// The table that the loader reads.
pub static TABLE: Plugin = Plugin {
    size: size_of::<Plugin>() as u32,
    version: VERSION,
    describe: Some(start_like),
    start: Some(start),
    create: Some(create),
    begin: Some(begin),
    poll: Some(poll),
    end: Some(end),
    destroy: Some(destroy),
};

/// An instance, and objects that its calls leave to it.
struct Instance {
    calls: AtomicI64,
    left: Mutex<LeakedObjects>,
}

/// Objects that outlive their call.
#[derive(Default)]
struct LeakedObjects {
    contexts: Vec<*const Context>,
    requests: Vec<*mut Request>,
    wakers: Vec<*mut Waker>,
}

struct Call {
    kind: u32,
    random: Random,
    instance: *const Instance,
    context: *const Context,
    polls: usize,
    requests: Vec<*mut Request>,
    handles: Vec<u64>,
    is_over: AtomicBool,
}

fn next_random() -> Random {
    Random(SEED.fetch_add(0x1234_5678_9abc_def1, SeqCst))
}

fn lock_left(instance: &Instance) -> MutexGuard<'_, LeakedObjects> {
    instance.left.lock()
}

unsafe fn plugin_host<'a>() -> &'a Host {
    &*HOST.load(SeqCst)
}

unsafe extern "C" fn start(host: *const Host, out: *mut Buffer) -> i32 {
    HOST.store(host.cast_mut(), SeqCst);
    start_like(out)
}

unsafe extern "C" fn start_like(out: *mut Buffer) -> i32 {
    let mut random = next_random();
    if random.below(8) > 0 { c1::READY } else { give_answer(&mut random, out) }
}

unsafe extern "C" fn create(_context: *const Context) -> *mut c_void {
    if next_random().below(12) == 0 {
        return null_mut();
    }
    TALLY.instances.fetch_add(1, SeqCst);
    let instance = Instance { calls: AtomicI64::new(0), left: Mutex::default() };
    Box::into_raw(Box::new(instance)).cast()
}

unsafe extern "C" fn destroy(instance: *mut c_void) {
    let instance = Box::from_raw(instance.cast::<Instance>());
    if instance.calls.load(SeqCst) != 0 {
        TALLY.wrong.fetch_add(1, SeqCst);
    }
    let left = std::mem::take(&mut *lock_left(&instance));
    for context in left.contexts {
        // The call is over, so its context is an empty shell.
        if (plugin_host().emit.unwrap())(context, null(), 0) != 0 {
            TALLY.wrong.fetch_add(1, SeqCst);
        }
        (plugin_host().context_drop.unwrap())(context);
    }
    for request in left.requests {
        (plugin_host().request_drop.unwrap())(request);
    }
    for waker in left.wakers {
        (plugin_host().waker_wake.unwrap())(waker);
        (plugin_host().waker_drop.unwrap())(waker);
    }
    TALLY.instances.fetch_sub(1, SeqCst);
}

unsafe extern "C" fn begin(
    instance: *mut c_void,
    kind: u32,
    name: *const c_char,
    name_length: usize,
    context: *const Context,
    frame: *const u8,
    length: usize,
) -> *mut c_void {
    let mut random = next_random();
    let mut read = std::slice::from_raw_parts(name.cast::<u8>(), name_length).to_vec();
    read.extend_from_slice(std::slice::from_raw_parts(frame, length));
    std::hint::black_box(read);
    // An instance that is not opened is not interesting.
    if random.below(if kind == c1::OPEN { 40 } else { 12 }) == 0 {
        return null_mut();
    }
    let instance = instance.cast::<Instance>().cast_const();
    (*instance).calls.fetch_add(1, SeqCst);
    TALLY.calls.fetch_add(1, SeqCst);
    let polls = if kind == c1::OPEN { random.below(2) } else { random.below(6) };
    let (requests, handles, is_over) = (Vec::new(), Vec::new(), AtomicBool::new(false));
    let call = Call { kind, random, instance, context, polls, requests, handles, is_over };
    Box::into_raw(Box::new(call)).cast()
}

unsafe extern "C" fn end(call: *mut c_void) {
    let mut call = Box::from_raw(call.cast::<Call>());
    let instance = &*call.instance;
    for request in std::mem::take(&mut call.requests) {
        match call.random.below(3) {
            0 => lock_left(instance).requests.push(request),
            _ => (plugin_host().request_drop.unwrap())(request),
        }
    }
    instance.calls.fetch_sub(1, SeqCst);
    TALLY.calls.fetch_sub(1, SeqCst);
}

unsafe extern "C" fn poll(call: *mut c_void, waker: *const Waker, out: *mut Buffer) -> i32 {
    let call = &mut *call.cast::<Call>();
    if call.is_over.load(SeqCst) {
        TALLY.wrong.fetch_add(1, SeqCst);
    }
    for _ in 0..call.random.below(5) {
        run_action(call, waker);
    }
    if call.polls == 0 {
        call.is_over.store(true, SeqCst);
        if call.kind == c1::OPEN && call.random.below(12) > 0 {
            return c1::READY;
        }
        return fill_answer(&mut call.random, out);
    }
    call.polls -= 1;
    wake(call, waker);
    if call.random.below(20) == 0 {
        // Bytes without an answer.
        give_answer(&mut call.random, out);
    }
    c1::PENDING
}

/// Wakes the call. Sometimes forgets to, but not if a host does not give up soon.
unsafe fn wake(call: &mut Call, waker: *const Waker) {
    match call.random.below(200) {
        0 if !matches!(call.kind, c1::OPEN | c1::SAVE | c1::CLOSE) => {}
        1..40 => {
            let kept = (plugin_host().waker_keep.unwrap())(waker) as usize;
            std::thread::spawn(move || {
                let kept = kept as *mut Waker;
                // SAFETY: it was kept, by whichever thread.
                unsafe {
                    (plugin_host().waker_wake.unwrap())(kept);
                    (plugin_host().waker_wake.unwrap())(kept);
                    (plugin_host().waker_drop.unwrap())(kept);
                }
            });
        }
        _ => (plugin_host().waker_wake.unwrap())(waker),
    }
}

/// Does something that the host must tolerate.
unsafe fn run_action(call: &mut Call, waker: *const Waker) {
    let (host, context) = (plugin_host(), call.context);
    let instance = &*call.instance;
    match call.random.below(14) {
        0 | 1 => {
            let frame = random_frame(&mut call.random);
            (host.emit.unwrap())(context, frame.as_ptr(), frame.len());
        }
        2..=4 => ask_service(call),
        5..=7 => poll_request(call, waker),
        8 => {
            let handle = call.handles.pop().unwrap_or(call.random.below(9) as u64);
            match call.random.below(3) {
                0 => (host.close.unwrap())(context, handle),
                _ => call.requests.push((host.next.unwrap())(context, handle)),
            }
        }
        9 => {
            call.requests.push((host.sleep_ms.unwrap())(context, call.random.below(3) as u64));
        }
        10 => {
            (host.context_keep.unwrap())(context);
            lock_left(instance).contexts.push(context);
        }
        11 => lock_left(instance).wakers.push((host.waker_keep.unwrap())(waker)),
        12 => {
            if let Some(request) = call.requests.pop() {
                (host.request_drop.unwrap())(request);
            }
        }
        _ => emit_nonsense(&mut call.random, context),
    }
}

/// Passes null pointers and invalid texts.
unsafe fn emit_nonsense(random: &mut Random, context: *const Context) {
    let host = plugin_host();
    let text = random.bytes(30);
    (host.log.unwrap())(context, random.byte(), text.as_ptr().cast(), text.len());
    (host.log.unwrap())(null(), 1, null(), 9);
    (host.context_id.unwrap())(null());
    (host.is_cancelled.unwrap())(context);
    (host.emit.unwrap())(context, null(), 7);
    (host.request_drop.unwrap())((host.service.unwrap())(null(), null(), 1, null(), 0));
    (host.request_drop.unwrap())((host.service.unwrap())(context, null(), 1, null(), 1));
    (host.waker_wake.unwrap())(null());
    (host.waker_drop.unwrap())(null_mut());
    (host.context_keep.unwrap())(null());
    (host.context_drop.unwrap())(null());
    let mut out = Buffer::empty();
    (host.request_poll.unwrap())(null_mut(), null(), &mut out);
    release(&mut out);
}

unsafe fn ask_service(call: &mut Call) {
    const NAMES: [&[u8]; 8] =
        [b"echo", b"stream", b"pieces", b"wait", b"sleep", b"panic", b"bad_frame", b"\xff"];
    let name = NAMES[call.random.below(NAMES.len())];
    let frame = random_frame(&mut call.random);
    let (text, length) = (name.as_ptr().cast(), name.len());
    let service = plugin_host().service.unwrap();
    call.requests.push(service(call.context, text, length, frame.as_ptr(), frame.len()));
}

/// Polls a request, possibly a finished one, and takes or leaves the answer.
unsafe fn poll_request(call: &mut Call, waker: *const Waker) {
    if call.requests.is_empty() {
        return;
    }
    let request = call.requests[call.random.below(call.requests.len())];
    let by = if call.random.below(2) == 0 { waker } else { null() };
    let poll = plugin_host().request_poll.unwrap();
    if call.random.below(8) == 0 {
        poll(request, by, null_mut());
        return;
    }
    let mut out = Buffer::empty();
    if poll(request, by, &mut out) == c1::READY && !out.bytes.is_null() {
        let bytes = std::slice::from_raw_parts(out.bytes, out.length);
        let answer = Frame::read::<Value>(bytes).unwrap_or_default();
        call.handles.extend(answer["handle"].as_u64());
    }
    release(&mut out);
}

/// Releases a buffer of the host, sometimes twice.
unsafe fn release(out: &mut Buffer) {
    if let Some(release) = out.release {
        release(out);
        release(out);
    }
}

fn random_frame(random: &mut Random) -> Vec<u8> {
    let good = json!({ "delta": "text", "text": "x", "moon": 1 });
    let mut frame = Frame::write_with_bytes(&good, &random.bytes(20)).unwrap();
    match random.below(4) {
        0 => random.damage(&mut frame),
        1 => frame = random.bytes(12),
        _ => {}
    }
    frame
}

unsafe fn fill_answer(random: &mut Random, out: *mut Buffer) -> i32 {
    if random.below(3) > 0 {
        fill_buffer(random_frame(random), out);
        return if random.below(3) > 0 { c1::READY } else { c1::FAILED };
    }
    give_answer(random, out)
}

/// Returns an answer of any kind.
unsafe fn give_answer(random: &mut Random, out: *mut Buffer) -> i32 {
    match random.below(40) {
        0 => fill_buffer(vec![0; FRAME_BYTES_MAX + 1], out),
        1..10 => {
            // A length without bytes. Its owner must still be released.
            fill_buffer(Vec::new(), out);
            (*out).bytes = null();
            (*out).length = 5;
        }
        10..20 => out.write(Buffer { length: 7, ..Buffer::empty() }),
        20..30 => {}
        _ => fill_buffer(random.bytes(9), out),
    }
    match random.below(5) {
        0 => c1::READY,
        1 => c1::FAILED,
        2 => c1::END,
        3 => -1,
        _ => i32::from_le_bytes((random.next() as u32 | 4).to_le_bytes()),
    }
}

unsafe fn fill_buffer(bytes: Vec<u8>, out: *mut Buffer) {
    unsafe extern "C" fn release(buffer: *mut Buffer) {
        drop(Box::from_raw((*buffer).owner.cast::<Vec<u8>>()));
        TALLY.buffers.fetch_sub(1, SeqCst);
    }
    // The plugin must release the previous content itself.
    if let Some(release) = (*out).release.take() {
        release(out);
    }
    TALLY.buffers.fetch_add(1, SeqCst);
    let owner = Box::into_raw(Box::new(bytes));
    let (bytes, length) = ((*owner).as_ptr(), (*owner).len());
    out.write(Buffer { bytes, length, owner: owner.cast(), release: Some(release) });
}
