//! A call of a C plugin as a future that the executor polls and drops.

use std::ffi::c_void;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use abi_stable::std_types::{ROption, RResult, RVec};
use jaato_plugin_api::abi::ContextBox;
use jaato_plugin_api::c1::{self, Buffer};
use jaato_types::PluginName;

use super::context::{LentCContext, waker_address};
use super::entry::{CFunctionTable, error_frame, parse_answer};
use super::{buffer, misbehaved_error};

/// An instance of a C plugin. Calls hold it, so that it outlives the last of them.
pub(super) struct CInstanceHandle {
    pub(super) entry: CFunctionTable,
    pub(super) plugin: PluginName,
    /// The instance's own context, borrowed by the plugin until the instance ends.
    context: Arc<LentCContext>,
    instance: *mut c_void,
}

// SAFETY: the header tells authors that an instance is used from several threads at the same time.
unsafe impl Send for CInstanceHandle {}
// SAFETY: as above.
unsafe impl Sync for CInstanceHandle {}

impl CInstanceHandle {
    /// Creates an instance. The error is a frame.
    pub(super) fn create_instance(
        entry: CFunctionTable,
        plugin: PluginName,
        context: ContextBox,
    ) -> Result<Arc<Self>, Vec<u8>> {
        let context = LentCContext::new(context);
        // SAFETY: the plugin's function; the context lives as long as what is made.
        let instance = unsafe { (entry.create)(context.address()) };
        if instance.is_null() {
            return Err(error_frame(&misbehaved_error(&plugin, "`create` returned no instance")));
        }
        Ok(Arc::new(Self { entry, plugin, context, instance }))
    }

    /// Begins a call in the instance's own context.
    pub(super) fn begin_instance_call(self: &Arc<Self>, kind: u32, frame: &[u8]) -> CPluginCall {
        CPluginCall::begin_call(Arc::clone(self), kind, "", Arc::clone(&self.context), frame)
    }

    /// Begins a call.
    pub(super) fn begin_call(
        self: &Arc<Self>,
        kind: u32,
        name: &str,
        context: ContextBox,
        frame: &[u8],
    ) -> CPluginCall {
        CPluginCall::begin_call(Arc::clone(self), kind, name, LentCContext::new(context), frame)
    }
}

impl Drop for CInstanceHandle {
    fn drop(&mut self) {
        // SAFETY: `destroy` belongs to the plugin whose `create` made the instance. It is called
        // once, and no call still holds the instance.
        unsafe { (self.entry.destroy)(self.instance) };
    }
}

/// A running call. Dropping it ends the call first, then releases its context and finally the
/// instance.
pub(super) struct CPluginCall {
    call: *mut c_void,
    is_over: bool,
    _context: Arc<LentCContext>,
    made: Arc<CInstanceHandle>,
}

// SAFETY: the header tells authors that a call continues on one thread at a time, which is not
// always the same.
unsafe impl Send for CPluginCall {}

impl CPluginCall {
    fn begin_call(
        made: Arc<CInstanceHandle>,
        kind: u32,
        name: &str,
        context: Arc<LentCContext>,
        frame: &[u8],
    ) -> Self {
        let (begin, instance) = (made.entry.begin, made.instance);
        let (text, length) = (name.as_ptr().cast(), name.len());
        // SAFETY: the plugin's function; name and frame live until it returns, the context until
        // the call's end.
        let call = unsafe {
            begin(instance, kind, text, length, context.address(), frame.as_ptr(), frame.len())
        };
        Self { call, is_over: false, _context: context, made }
    }

    fn end_call(&mut self) {
        self.is_over = true;
        if !self.call.is_null() {
            let call = std::mem::replace(&mut self.call, std::ptr::null_mut());
            // SAFETY: the plugin's function for what its `begin` made; gone from here, so called
            // once.
            unsafe { (self.made.entry.end)(call) };
        }
    }

    fn refused_answer(&self, what: &str) -> Vec<u8> {
        error_frame(&misbehaved_error(&self.made.plugin, what))
    }
}

impl Future for CPluginCall {
    /// A frame, zero bytes, or a frame with an error.
    type Output = Result<Vec<u8>, Vec<u8>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if self.call.is_null() {
            let what = if self.is_over { "it was over" } else { "`begin` returned no call" };
            return Poll::Ready(Err(self.refused_answer(what)));
        }
        let mut out = Buffer::empty();
        // SAFETY: the plugin's function for a call of its that was not ended; waker and buffer live
        // until it returns.
        let status =
            unsafe { (self.made.entry.poll)(self.call, waker_address(cx.waker()), &mut out) };
        // SAFETY: as the plugin filled it.
        let bytes = unsafe { buffer::take_buffer(&mut out) };
        if status == c1::PENDING {
            return Poll::Pending;
        }
        let answer = parse_answer(&self.made.plugin, "poll", status, bytes);
        self.end_call();
        Poll::Ready(answer)
    }
}

impl Drop for CPluginCall {
    fn drop(&mut self) {
        self.end_call();
    }
}

/// Converts a result whose success must be a frame.
pub(super) fn to_frame_result(answer: Result<Vec<u8>, Vec<u8>>) -> RResult<RVec<u8>, RVec<u8>> {
    match answer {
        Ok(frame) => RResult::ROk(frame.into()),
        Err(error) => RResult::RErr(error.into()),
    }
}

/// Converts a result whose success may be empty. Zero bytes mean nothing.
pub(super) fn to_optional_result(
    answer: Result<Vec<u8>, Vec<u8>>,
) -> RResult<ROption<RVec<u8>>, RVec<u8>> {
    match answer {
        Ok(frame) if frame.is_empty() => RResult::ROk(ROption::RNone),
        Ok(frame) => RResult::ROk(ROption::RSome(frame.into())),
        Err(error) => RResult::RErr(error.into()),
    }
}
