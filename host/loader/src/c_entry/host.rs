//! The host's function table for C plugins. Its functions check their arguments and let no panic
//! escape.

use std::ffi::c_char;
use std::task;

use abi_stable::std_types::{RStr, RVec};
use jaato_plugin_api::abi::ContextBox;
use jaato_plugin_api::c1::{self, Buffer, Context, Host, Request, VERSION, Waker};
use jaato_types::Error;

use super::buffer;
use super::context::{LentCContext, waker_at};
use super::request::{HeldRequest, RequestWork, error_status};
use jaato_plugin_engine::{HostCodeGuard, run_host_code};

/// The same table for every plugin. Only the contexts differ.
pub(super) static HOST: Host = Host {
    size: size_of::<Host>() as u32,
    version: VERSION,
    context_id: Some(context_id),
    context_keep: Some(keep_context),
    context_drop: Some(drop_context),
    is_cancelled: Some(is_cancelled),
    log: Some(log_text),
    emit: Some(emit_frame),
    sleep_ms: Some(begin_sleep),
    service: Some(request_service),
    next: Some(request_next_piece),
    close: Some(close_stream),
    request_poll: Some(poll_request),
    request_drop: Some(drop_request),
    waker_keep: Some(keep_waker),
    waker_wake: Some(wake_waker),
    waker_drop: Some(drop_waker),
};

/// Runs host code on behalf of a plugin. The context's own methods report their panics. This is the
/// last line of defence against unwinding into C.
fn catch_host_panic<T>(work: impl FnOnce() -> T, failed: impl FnOnce(Error) -> T) -> T {
    let _host = HostCodeGuard::enter();
    run_host_code(work).unwrap_or_else(failed)
}

/// Like [`catch_host_panic`], with the context at an address. Returns `otherwise` if there is none.
///
/// # Safety
/// As [`LentCContext::context_at`].
unsafe fn with_context<T: Copy>(
    context: *const Context,
    otherwise: T,
    work: impl FnOnce(&ContextBox) -> Option<T>,
) -> T {
    // SAFETY: the caller guarantees it.
    let Some(context) = (unsafe { LentCContext::context_at(context) }) else { return otherwise };
    catch_host_panic(|| work(context).unwrap_or(otherwise), |_| otherwise)
}

unsafe extern "C" fn context_id(context: *const Context) -> u64 {
    // SAFETY: the host lent this pointer to the plugin.
    unsafe { with_context(context, 0, |context| Some(context.id())) }
}

unsafe extern "C" fn keep_context(context: *const Context) {
    // SAFETY: the host lent this pointer to the plugin.
    unsafe { LentCContext::add_owner(context) };
}

unsafe extern "C" fn drop_context(context: *const Context) {
    // SAFETY: the plugin has kept it.
    catch_host_panic(|| unsafe { LentCContext::drop_owner(context) }, |_| ());
}

unsafe extern "C" fn is_cancelled(context: *const Context) -> i32 {
    // SAFETY: the host lent this pointer to the plugin.
    unsafe { with_context(context, 1, |context| Some(context.is_cancelled().into())) }
}

unsafe extern "C" fn log_text(
    context: *const Context,
    level: u8,
    text: *const c_char,
    length: usize,
) {
    // SAFETY: the host lent this pointer to the plugin, and the plugin lends a text for this call.
    unsafe {
        with_context(context, (), |context| {
            let text = String::from_utf8_lossy(buffer::borrow_text(text, length)?);
            context.log(level, RStr::from_str(&text));
            Some(())
        });
    }
}

unsafe extern "C" fn emit_frame(context: *const Context, frame: *const u8, length: usize) -> i32 {
    // SAFETY: the host lent this pointer to the plugin, and the plugin lends a frame for this call.
    unsafe {
        with_context(context, 0, |context| {
            let frame = RVec::from(buffer::borrow_bytes(frame, length)?);
            Some(context.emit(frame).into())
        })
    }
}

unsafe extern "C" fn begin_sleep(context: *const Context, milliseconds: u64) -> *mut Request {
    // SAFETY: the host lent this pointer to the plugin.
    unsafe {
        with_context(context, std::ptr::null_mut(), |context| {
            Some(HeldRequest::into_request_pointer(RequestWork::Sleep(
                context.sleep_ms(milliseconds),
            )))
        })
    }
}

unsafe extern "C" fn request_service(
    context: *const Context,
    name: *const c_char,
    name_length: usize,
    frame: *const u8,
    length: usize,
) -> *mut Request {
    // SAFETY: the host lent this pointer to the plugin, and the plugin lends name and frame for
    // this call.
    unsafe {
        with_context(context, std::ptr::null_mut(), |context| {
            let name = std::str::from_utf8(buffer::borrow_text(name, name_length)?).ok()?;
            let frame = RVec::from(buffer::borrow_bytes(frame, length)?);
            Some(HeldRequest::into_request_pointer(RequestWork::Service(
                context.service(RStr::from_str(name), frame),
            )))
        })
    }
}

unsafe extern "C" fn request_next_piece(context: *const Context, handle: u64) -> *mut Request {
    // SAFETY: the host lent this pointer to the plugin.
    unsafe {
        with_context(context, std::ptr::null_mut(), |context| {
            Some(HeldRequest::into_request_pointer(RequestWork::Next(context.next(handle))))
        })
    }
}

unsafe extern "C" fn close_stream(context: *const Context, handle: u64) {
    // SAFETY: the host lent this pointer to the plugin.
    unsafe {
        with_context(context, (), |context| {
            context.close(handle);
            Some(())
        });
    }
}

unsafe extern "C" fn poll_request(
    request: *mut Request,
    by: *const Waker,
    out: *mut Buffer,
) -> i32 {
    // SAFETY: null, or a request of this host's that was not dropped.
    let held = unsafe { request.cast::<HeldRequest>().as_ref() };
    // SAFETY: null, or a waker that the plugin was lent or keeps.
    let by = unsafe { waker_at(by) };
    let nothing = || error_status(&Error::failed("there is no request"));
    let poll = || held.map_or_else(nothing, |held| held.poll(by));
    let (status, bytes) = catch_host_panic(poll, |error| error_status(&error));
    if status == c1::PENDING || out.is_null() {
        return status;
    }
    let given = if bytes.is_empty() { Buffer::empty() } else { buffer::to_buffer(bytes) };
    // SAFETY: a buffer of the plugin's for one answer; what it held is the plugin's to have
    // released.
    unsafe { out.write(given) };
    status
}

unsafe extern "C" fn drop_request(request: *mut Request) {
    if !request.is_null() {
        // SAFETY: `HeldRequest::into_request_pointer` made it, and the plugin drops it once.
        catch_host_panic(|| drop(unsafe { Box::from_raw(request.cast::<HeldRequest>()) }), |_| ());
    }
}

unsafe extern "C" fn keep_waker(by: *const Waker) -> *mut Waker {
    // SAFETY: null, or a waker that the plugin was lent or keeps.
    let Some(by) = (unsafe { waker_at(by) }) else { return std::ptr::null_mut() };
    catch_host_panic(|| Box::into_raw(Box::new(by.clone())).cast(), |_| std::ptr::null_mut())
}

unsafe extern "C" fn wake_waker(by: *const Waker) {
    // SAFETY: null, or a waker that the plugin was lent or keeps.
    if let Some(by) = unsafe { waker_at(by) } {
        catch_host_panic(|| by.wake_by_ref(), |_| ());
    }
}

unsafe extern "C" fn drop_waker(by: *mut Waker) {
    if !by.is_null() {
        // SAFETY: `waker_keep` made it, and the plugin drops it once.
        catch_host_panic(|| drop(unsafe { Box::from_raw(by.cast::<task::Waker>()) }), |_| ());
    }
}
