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
pub(super) struct HeldRequest(Mutex<RequestWork>);

/// The pending work of a request.
pub(super) enum RequestWork {
    Sleep(FfiFuture<bool>),
    Service(Answer),
    Next(Maybe),
    Over,
}

/// A status and its bytes.
pub(super) type RequestStatus = (i32, Vec<u8>);

impl HeldRequest {
    pub(super) fn into_request_pointer(work: RequestWork) -> *mut c1::Request {
        Box::into_raw(Box::new(Self(Mutex::new(work)))).cast()
    }

    /// Polls the request.
    pub(super) fn poll(&self, waker: Option<&Waker>) -> RequestStatus {
        // Polling one request from two threads is a mistake, but it must not block.
        let Some(mut work) = self.0.try_lock() else {
            return error_status(&Error::failed("the request is already being polled"));
        };
        let mut cx = Context::from_waker(waker.unwrap_or(Waker::noop()));
        let polled = match &mut *work {
            RequestWork::Sleep(future) => Pin::new(future).poll(&mut cx).map(sleep_status),
            RequestWork::Service(future) => Pin::new(future).poll(&mut cx).map(answer_status),
            RequestWork::Next(future) => Pin::new(future).poll(&mut cx).map(piece_status),
            RequestWork::Over => {
                return error_status(&Error::failed("the request is already done"));
            }
        };
        match polled {
            Poll::Pending => (c1::PENDING, Vec::new()),
            Poll::Ready(outcome) => {
                *work = RequestWork::Over;
                outcome
            }
        }
    }
}

pub(super) fn error_status(error: &Error) -> RequestStatus {
    (c1::FAILED, error_frame(error))
}

fn sleep_status(passed: bool) -> RequestStatus {
    if passed { (c1::READY, Vec::new()) } else { error_status(&Error::cancelled()) }
}

fn answer_status(answer: RResult<RVec<u8>, RVec<u8>>) -> RequestStatus {
    match answer {
        RResult::ROk(frame) => (c1::READY, frame.into()),
        RResult::RErr(error) => (c1::FAILED, error.into()),
    }
}

fn piece_status(piece: RResult<ROption<RVec<u8>>, RVec<u8>>) -> RequestStatus {
    match piece {
        RResult::ROk(ROption::RSome(frame)) => (c1::READY, frame.into()),
        RResult::ROk(ROption::RNone) => (c1::END, Vec::new()),
        RResult::RErr(error) => (c1::FAILED, error.into()),
    }
}
