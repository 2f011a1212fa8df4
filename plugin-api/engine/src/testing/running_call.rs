//! Checks of a context while its call runs.

use std::future::{Future as _, poll_fn};
use std::pin::Pin;
use std::sync::mpsc;
use std::task::Poll;

use jaato_plugin_api::abi::abi_stable::sabi_trait::TD_Opaque;
use jaato_plugin_api::abi::async_ffi::FutureExt;
use jaato_plugin_api::abi::{JobAbi, JobBox};
use jaato_types::{Error, ErrorKind, FRAME_BYTES_MAX, Frame};
use serde_json::Value;

use super::body::{
    DEADLINE, call_service, encode_frame, next_piece_text, open_test_stream, read_answer,
    read_error, run_body,
};
use super::{CallResults, HostUnderTest};

pub(super) fn answers_and_errors_arrive(host: &dyn HostUnderTest) {
    let ended = run_body(host, |_| async { Ok(encode_frame(&"moon")) });
    assert_eq!(ended, CallResults { emitted: Vec::new(), answer: Ok(encode_frame(&"moon")) });
    let error = Error::failed("no moon").with_hint("look up").temporary();
    let sent = error.clone();
    let ended = run_body(host, |_| async { Err(sent) });
    assert_eq!(ended.answer.map_err(|frame| read_error(&frame)), Err(error));
}

pub(super) fn emissions_arrive_before_answer(host: &dyn HostUnderTest) {
    let ended = run_body(host, |context| {
        let taken = (0..1000).filter(|number| context.emit(encode_frame(number).into())).count();
        async move { Ok(encode_frame(&taken)) }
    });
    assert_eq!(ended.answer, Ok(encode_frame(&1000)));
    let numbers: Vec<usize> =
        ended.emitted.iter().filter_map(|frame| Frame::read(frame).ok()).collect();
    assert!(numbers.into_iter().eq(0..1000), "all 1,000 frames, in order");
}

/// Checks that a plugin that emits a malformed frame gets an error.
pub(super) fn malformed_emission_is_refused(host: &dyn HostUnderTest) {
    let bad = [Vec::new(), vec![9, 0, 0, 0], vec![0; FRAME_BYTES_MAX + 1]];
    for bad in bad {
        let (sender, receiver) = mpsc::channel();
        let ended = run_body(host, move |context| {
            // The check may have failed and ended by then.
            let _ = sender.send(context.emit(bad.into()));
            async { Ok(encode_frame(&())) }
        });
        assert_eq!(receiver.recv_timeout(DEADLINE), Ok(false), "a malformed frame is accepted");
        assert_eq!(ended.emitted, Vec::<Vec<u8>>::new());
        assert_refused(ended, ErrorKind::PluginMisbehaved);
    }
}

pub(super) fn services_answer_requests(host: &dyn HostUnderTest) {
    let ended =
        run_body(host, |context| async move { call_service(&context, "test.echo", &"moon").await });
    assert_eq!(ended.answer, Ok(encode_frame(&"moon")));
    let ended =
        run_body(host, |context| async move { call_service(&context, "test.novel", &()).await });
    assert_refused(ended, ErrorKind::UnknownOperation);
    let ended = run_body(host, |context| async move {
        read_answer(context.service("test.echo".into(), vec![9, 0, 0, 0].into()).await)
    });
    assert!(ended.answer.is_err(), "a service accepted a malformed frame");
}

pub(super) fn service_panic_is_blamed_on_the_host(host: &dyn HostUnderTest) {
    let ended =
        run_body(host, |context| async move { call_service(&context, "test.panic", &()).await });
    assert_refused(ended, ErrorKind::HostBug);
}

#[track_caller]
fn assert_refused(ended: CallResults, kind: ErrorKind) {
    let found = ended.answer.map_err(|frame| read_error(&frame).kind);
    assert_eq!(found, Err(kind));
}

pub(super) fn stream_ends_after_its_pieces(host: &dyn HostUnderTest) {
    let ended = run_body(host, |context| async move {
        let handle = open_test_stream(&context, &[Some("a"), Some("b")]).await?;
        let mut all = String::new();
        while let Some(text) = next_piece_text(&context, handle).await? {
            all.push_str(&text);
        }
        let still_at_end = next_piece_text(&context, handle).await?.is_none();
        context.close(handle);
        // Unknown handles are ignored.
        context.close(handle);
        let after = next_piece_text(&context, handle).await;
        Ok(encode_frame(&(all, still_at_end, after.is_ok_and(|piece| piece.is_some()))))
    });
    assert_eq!(ended.answer, Ok(encode_frame(&("ab", true, false))));
}

pub(super) fn stream_answer_includes_its_head(host: &dyn HostUnderTest) {
    let ended = run_body(host, |context| async move {
        let known = serde_json::json!({ "status": 200, "headers": [["a", "b"]] });
        let answer = call_service(&context, "test.head", &known).await?;
        let bad = |error: jaato_types::FrameError| Error::failed(error.to_string());
        let mut head: serde_json::Map<String, Value> = Frame::read(&answer).map_err(bad)?;
        let handle = head.remove("handle").and_then(|handle| handle.as_u64()).unwrap_or_default();
        let first = next_piece_text(&context, handle).await?;
        let last = next_piece_text(&context, handle).await?;
        Ok(encode_frame(&(Value::Object(head) == known, first, last)))
    });
    assert_eq!(ended.answer, Ok(encode_frame(&(true, Some("a"), None::<&str>))));
}

pub(super) fn dropping_next_loses_no_bytes(host: &dyn HostUnderTest) {
    let ended = run_body(host, |context| async move {
        let handle = open_test_stream(&context, &[Some("a"), Some("b"), Some("c")]).await?;
        // Waits that are never polled, and one that is.
        drop(context.next(handle));
        let idle = open_test_stream(&context, &[None]).await?;
        let mut waiting = context.next(idle);
        let is_pending = poll_fn(|cx| {
            let polled = Pin::new(&mut waiting).poll(cx);
            Poll::Ready(polled.is_pending())
        });
        let is_pending = is_pending.await;
        drop(waiting);
        let mut all = String::new();
        while let Some(text) = next_piece_text(&context, handle).await? {
            drop(context.next(handle));
            all.push_str(&text);
        }
        Ok(encode_frame(&(is_pending, all)))
    });
    assert_eq!(ended.answer, Ok(encode_frame(&(true, "abc"))));
}

/// A job that runs until its call has continued, and reports whether that happened.
struct LongJob {
    until: mpsc::Receiver<()>,
    told: mpsc::Sender<bool>,
}

impl JobAbi for LongJob {
    fn run(&mut self) {
        let came = self.until.recv_timeout(DEADLINE).is_ok();
        // The check may have failed and ended by then.
        let _ = self.told.send(came);
    }
}

pub(super) fn jobs_run_in_parallel(host: &dyn HostUnderTest) {
    let (told, receiver) = mpsc::channel();
    let ended = run_body(host, |context| async move {
        let (sender, until) = mpsc::channel();
        let job = JobBox::from_value(LongJob { until, told }, TD_Opaque);
        let mut job = context.spawn_blocking(job);
        let mut has_polled = false;
        let done = poll_fn(move |cx| {
            let job = Pin::new(&mut job).poll(cx);
            if has_polled {
                let _ = sender.send(());
            } else {
                has_polled = true;
                cx.waker().wake_by_ref();
            }
            job
        });
        Ok(encode_frame(&done.await))
    });
    assert_eq!(ended.answer, Ok(encode_frame(&true)), "the job ran to its end");
    assert_eq!(receiver.recv_timeout(DEADLINE), Ok(true), "a job delayed the call next to it");
}

pub(super) fn call_contexts_cannot_spawn(host: &dyn HostUnderTest) {
    let ended = run_body(host, |context| async move {
        Ok(encode_frame(&context.spawn(std::future::ready(()).into_ffi())))
    });
    assert_eq!(ended.answer, Ok(encode_frame(&false)));
}
