//! Contexts without a call or instance, for an execution environment outside of a plugin. Jobs run
//! immediately on the caller's thread, and the host offers no services.

use std::future::{pending, ready};
use std::sync::Arc;

use jaato_plugin_api::abi::abi_stable::sabi_trait::TD_Opaque;
use jaato_plugin_api::abi::abi_stable::std_types::{RStr, RVec};
use jaato_plugin_api::abi::async_ffi::{FfiFuture, FutureExt};
use jaato_plugin_api::abi::{Answer, ContextAbi, ContextBox, JobBox, Maybe};

use super::{Cx, Home};

/// Creates the context of a call.
pub fn detached_call<S>(state: S) -> Cx<S> {
    Cx::new(ContextBox::from_value(DetachedContext, TD_Opaque), Arc::new(state))
}

/// Creates the context of an instance.
pub fn detached_home() -> Home {
    Home::new(ContextBox::from_value(DetachedContext, TD_Opaque))
}

struct DetachedContext;

impl ContextAbi for DetachedContext {
    fn id(&self) -> u64 {
        0
    }

    fn is_cancelled(&self) -> bool {
        false
    }

    fn cancelled(&self) -> FfiFuture<()> {
        pending().into_ffi()
    }

    fn log(&self, _level: u8, _text: RStr<'_>) {}

    fn emit(&self, _frame: RVec<u8>) -> bool {
        false
    }

    fn sleep_ms(&self, _milliseconds: u64) -> FfiFuture<bool> {
        ready(false).into_ffi()
    }

    fn spawn_blocking(&self, mut job: JobBox) -> FfiFuture<bool> {
        job.run();
        ready(true).into_ffi()
    }

    fn spawn(&self, _task: FfiFuture<()>) -> bool {
        false
    }

    fn service(&self, _operation: RStr<'_>, _frame: RVec<u8>) -> Answer {
        pending().into_ffi()
    }

    fn next(&self, _handle: u64) -> Maybe {
        pending().into_ffi()
    }

    fn close(&self, _handle: u64) {}
}
