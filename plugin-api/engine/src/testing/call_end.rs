//! Checks of a context when its call is cancelled and after its end.

use std::pin::Pin;
use std::sync::{Arc, mpsc};
use std::task::{Context as TaskContext, Poll};

use jaato_plugin_api::abi::JobBox;
use jaato_plugin_api::abi::abi_stable::sabi_trait::TD_Opaque;
use jaato_plugin_api::abi::abi_stable::std_types::{RResult, RVec};
use jaato_plugin_api::abi::async_ffi::{FfiFuture, FutureExt};
use jaato_types::ErrorKind;
use parking_lot::Mutex;

use super::HostUnderTest;
use super::body::{
    DEADLINE, FOR_EVER_MS, ThreadReportJob, block_on, call_service, encode_frame, next_piece_text,
    open_test_stream, run_body, start_body, thread_name,
};

pub(super) fn kept_context_refuses_calls(host: &dyn HostUnderTest) {
    let (sender, receiver) = mpsc::channel();
    let ended = run_body(host, |context| async move {
        let handle = open_test_stream(&context, &[Some("a"), None]).await?;
        let _ = sender.send((Arc::clone(&context), handle));
        Ok(encode_frame(&()))
    });
    assert_eq!(ended.answer, Ok(encode_frame(&())));
    let Ok((context, handle)) = receiver.recv_timeout(DEADLINE) else { panic!("no context came") };
    assert!(context.is_cancelled(), "a context that has ended says so");
    assert!(!context.emit(encode_frame(&1).into()), "emit after the end");
    assert!(!context.spawn(std::future::ready(()).into_ffi()), "spawn after the end");
    assert!(!block_on(context.sleep_ms(0)), "sleep after the end");
    let (sender, receiver) = mpsc::channel();
    let job = context.spawn_blocking(JobBox::from_value(ThreadReportJob(sender), TD_Opaque));
    assert!(!block_on(job), "a job after the end");
    assert!(receiver.recv_timeout(DEADLINE).is_err(), "a job that is refused is dropped, not run");
    let answer = block_on(async { call_service(&context, "test.echo", &1).await });
    assert_eq!(
        answer.map_err(|error| error.kind),
        Err(ErrorKind::Cancelled),
        "service after the end"
    );
    assert!(block_on(next_piece_text(&context, handle)).is_err(), "next after the end");
    block_on(context.cancelled());
    context.close(handle);
}

/// The operation that the body waits for when it is cancelled.
#[derive(Clone, Copy, Debug)]
enum CancelledWait {
    Sleep,
    Service,
    Next,
}

/// The number of cancels for each kind of wait, because races fail only now and then.
const CANCELS: usize = 334;

pub(super) fn cancelled_call_is_dropped(host: &dyn HostUnderTest) {
    for wait in [CancelledWait::Sleep, CancelledWait::Service, CancelledWait::Next].repeat(CANCELS)
    {
        let went_on = Arc::new(Mutex::new(false));
        let (sender, receiver) = mpsc::channel();
        let marker = Arc::clone(&went_on);
        let call = start_body(host, move |context| async move {
            let handle = open_test_stream(&context, &[None]).await?;
            let mut waiting = std::pin::pin!(async {
                match wait {
                    CancelledWait::Sleep => drop(context.sleep_ms(FOR_EVER_MS).await),
                    CancelledWait::Service => drop(call_service(&context, "test.never", &()).await),
                    CancelledWait::Next => drop(next_piece_text(&context, handle).await),
                }
            });
            std::future::poll_fn(|cx| {
                let polled = waiting.as_mut().poll(cx);
                // The check continues when the body waits. It may have failed and ended before the
                // next poll.
                let _ = sender.send(polled.is_pending());
                polled
            })
            .await;
            *marker.lock() = true;
            Ok(encode_frame(&()))
        });
        assert_eq!(receiver.recv_timeout(DEADLINE), Ok(true), "the body waits");
        call.cancel();
        let went_on = *went_on.lock();
        assert!(!went_on, "a cancelled call continued after {wait:?}");
    }
}

/// A future that records on which threads it is polled and dropped.
struct TracedFuture {
    threads: mpsc::Sender<(&'static str, String)>,
    waits: Option<FfiFuture<bool>>,
}

impl Future for TracedFuture {
    type Output = RResult<RVec<u8>, RVec<u8>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Self::Output> {
        // The check may have failed and ended.
        let _ = self.threads.send(("poll", thread_name()));
        match &mut self.waits {
            Some(waits) => Pin::new(waits).poll(cx).map(|_| RResult::ROk(encode_frame(&()).into())),
            None => Poll::Ready(RResult::ROk(encode_frame(&()).into())),
        }
    }
}

impl Drop for TracedFuture {
    fn drop(&mut self) {
        let _ = self.threads.send(("drop", thread_name()));
    }
}

pub(super) fn polls_and_drops_run_on_host_threads(host: &dyn HostUnderTest) {
    for is_cancelled in [false, true] {
        let (threads, seen) = mpsc::channel();
        let call = host.start(Box::new(move |context| {
            let waits = is_cancelled.then(|| context.sleep_ms(FOR_EVER_MS));
            TracedFuture { threads, waits }.into_ffi()
        }));
        let first = seen.recv_timeout(DEADLINE);
        if is_cancelled {
            call.cancel();
        } else {
            call.wait();
        }
        let places: Vec<_> = first.into_iter().chain(seen).collect();
        let here = thread_name();
        let elsewhere = places.iter().all(|(_, thread)| *thread != here);
        assert!(elsewhere, "a plugin's future on the session's thread `{here}`: {places:?}");
        assert_eq!(places.first().map(|place| place.0), Some("poll"));
        assert_eq!(places.last().map(|place| place.0), Some("drop"));
    }
}

pub(super) fn cancelled_wait_is_refused(host: &dyn HostUnderTest) {
    let (sender, receiver) = mpsc::channel();
    let call = start_body(host, move |context| async move {
        let handle = open_test_stream(&context, &[None]).await?;
        let _ = sender.send((Arc::clone(&context), handle));
        context.sleep_ms(FOR_EVER_MS).await;
        Ok(encode_frame(&()))
    });
    let Ok((context, handle)) = receiver.recv_timeout(DEADLINE) else { panic!("no context came") };
    // Waits on threads of the plugin, started before the cancel.
    let waits: Vec<FfiFuture<bool>> = vec![
        context.sleep_ms(FOR_EVER_MS),
        {
            let context = Arc::clone(&context);
            async move { call_service(&context, "test.never", &()).await.is_ok() }.into_ffi()
        },
        {
            let context = Arc::clone(&context);
            async move { next_piece_text(&context, handle).await.is_ok() }.into_ffi()
        },
        {
            let context = Arc::clone(&context);
            async move {
                context.cancelled().await;
                !context.is_cancelled()
            }
            .into_ffi()
        },
    ];
    let threads: Vec<_> =
        waits.into_iter().map(|wait| std::thread::spawn(|| block_on(wait))).collect();
    call.cancel();
    let succeeded: Vec<bool> =
        threads.into_iter().map(|thread| thread.join().unwrap_or(true)).collect();
    assert_eq!(succeeded, [false; 4], "a sleep, a service, a next and a wait for the cancel");
}

pub(super) fn kept_stream_is_closed_with_call(host: &dyn HostUnderTest) {
    let (sender, receiver) = mpsc::channel();
    let ended = run_body(host, |context| async move {
        let handle = open_test_stream(&context, &[Some("a")]).await?;
        let _ = sender.send((Arc::clone(&context), handle));
        Ok(encode_frame(&()))
    });
    assert_eq!(ended.answer, Ok(encode_frame(&())));
    let Ok((_kept, handle)) = receiver.recv_timeout(DEADLINE) else { panic!("no context came") };
    let ended = run_body(host, move |context| async move {
        Ok(encode_frame(&next_piece_text(&context, handle).await.is_ok_and(|p| p.is_some())))
    });
    assert_eq!(
        ended.answer,
        Ok(encode_frame(&false)),
        "another call reads a stream that is not its own"
    );
}
