//! A C plugin's request to the host: a future of the host that the plugin polls.

use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use abi_stable::std_types::{ROption, RResult, RVec};
use async_ffi::FfiFuture;
use jaato_plugin_api::abi::{Answer, Maybe};
use jaato_plugin_api::c1;
use jaato_types::Error;
use parking_lot::Mutex;

use super::entry::error_frame;

/// A request held by a plugin.
pub(super) struct Held(Mutex<Work>);

/// The pending work of a request.
pub(super) enum Work {
    Sleep(FfiFuture<bool>),
    Service(Answer),
    Next(Maybe),
    Over,
}

/// A status and its bytes.
pub(super) type Outcome = (i32, Vec<u8>);

impl Held {
    pub(super) fn hand_out(work: Work) -> *mut c1::Request {
        Box::into_raw(Box::new(Self(Mutex::new(work)))).cast()
    }

    /// Polls the request.
    pub(super) fn poll(&self, waker: Option<&Waker>) -> Outcome {
        // Polling one request from two threads is a mistake, but it must not block.
        let Some(mut work) = self.0.try_lock() else {
            return failed(&Error::failed("the request is being polled already"));
        };
        let mut cx = Context::from_waker(waker.unwrap_or(Waker::noop()));
        let polled = match &mut *work {
            Work::Sleep(future) => Pin::new(future).poll(&mut cx).map(slept),
            Work::Service(future) => Pin::new(future).poll(&mut cx).map(answered),
            Work::Next(future) => Pin::new(future).poll(&mut cx).map(next),
            Work::Over => return failed(&Error::failed("the request is already done")),
        };
        match polled {
            Poll::Pending => (c1::PENDING, Vec::new()),
            Poll::Ready(outcome) => {
                *work = Work::Over;
                outcome
            }
        }
    }
}

pub(super) fn failed(error: &Error) -> Outcome {
    (c1::FAILED, error_frame(error))
}

fn slept(passed: bool) -> Outcome {
    if passed { (c1::READY, Vec::new()) } else { failed(&Error::cancelled()) }
}

fn answered(answer: RResult<RVec<u8>, RVec<u8>>) -> Outcome {
    match answer {
        RResult::ROk(frame) => (c1::READY, frame.into()),
        RResult::RErr(error) => (c1::FAILED, error.into()),
    }
}

fn next(piece: RResult<ROption<RVec<u8>>, RVec<u8>>) -> Outcome {
    match piece {
        RResult::ROk(ROption::RSome(frame)) => (c1::READY, frame.into()),
        RResult::ROk(ROption::RNone) => (c1::END, Vec::new()),
        RResult::RErr(error) => (c1::FAILED, error.into()),
    }
}
