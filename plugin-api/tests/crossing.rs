//! Objects, bytes, futures and wakers cross in both directions, and each is dropped once. Miri
//! checks these tests.
//!
//! Both sides are in one binary, so that no library has to be loaded. `cargo xtask test` runs this
//! under Miri if a nightly toolchain has it.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use jaato_plugin_api::abi::abi_stable::sabi_trait::TD_Opaque;
use jaato_plugin_api::abi::abi_stable::std_types::{ROption, RResult, RStr, RVec};
use jaato_plugin_api::abi::async_ffi::{FfiFuture, FutureExt};
use jaato_plugin_api::abi::*;
use parking_lot::Mutex;

/// Counts live objects.
#[derive(Clone, Default)]
struct Alive(Arc<AtomicUsize>);

/// Counts as one live object while it is held.
struct Held(Alive);

impl Alive {
    fn one(&self) -> Held {
        self.0.fetch_add(1, SeqCst);
        Held(self.clone())
    }

    #[track_caller]
    fn is_none(&self) {
        assert_eq!(self.0.load(SeqCst), 0, "something was not dropped, or dropped twice");
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, SeqCst);
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on_future<T>(future: impl Future<Output = T>) -> T {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

fn poll_once(future: &mut (impl Future + Unpin)) -> bool {
    std::pin::Pin::new(future).poll(&mut Context::from_waker(Waker::noop())).is_ready()
}

/// The data that a host's context shares with its test.
#[derive(Default)]
struct CallRecord {
    emitted: Mutex<Vec<Vec<u8>>>,
    logged: Mutex<Vec<String>>,
    pieces: Mutex<VecDeque<Vec<u8>>>,
    cancelled: AtomicBool,
    alive: Alive,
}

struct HostContext(Arc<CallRecord>, #[expect(dead_code, reason = "counts")] Held);

impl HostContext {
    fn lend_context(told: &Arc<CallRecord>) -> ContextBox {
        ContextBox::from_value(Self(Arc::clone(told), told.alive.one()), TD_Opaque)
    }
}

impl ContextAbi for HostContext {
    fn id(&self) -> u64 {
        7
    }

    fn is_cancelled(&self) -> bool {
        self.0.cancelled.load(SeqCst)
    }

    fn cancelled(&self) -> FfiFuture<()> {
        let (told, alive) = (Arc::clone(&self.0), self.0.alive.one());
        poll_fn(move |_| {
            let _ = &alive;
            if told.cancelled.load(SeqCst) { Poll::Ready(()) } else { Poll::Pending }
        })
        .into_ffi()
    }

    fn log(&self, level: u8, text: RStr<'_>) {
        self.0.logged.lock().push(format!("{level} {text}"));
    }

    fn emit(&self, frame: RVec<u8>) -> bool {
        self.0.emitted.lock().push(frame.into());
        !self.is_cancelled()
    }

    /// A thread of the host wakes it.
    fn sleep_ms(&self, _milliseconds: u64) -> FfiFuture<bool> {
        let (done, alive) = (Arc::new(AtomicBool::new(false)), self.0.alive.one());
        let mut thread = None;
        poll_fn(move |cx| {
            let _ = &alive;
            if done.load(SeqCst) {
                return Poll::Ready(true);
            }
            let (done, waker) = (Arc::clone(&done), cx.waker().clone());
            thread.get_or_insert_with(|| {
                thread::spawn(move || {
                    done.store(true, SeqCst);
                    waker.wake();
                })
            });
            Poll::Pending
        })
        .into_ffi()
    }

    fn spawn_blocking(&self, mut job: JobBox) -> FfiFuture<bool> {
        thread::spawn(move || job.run()).join().unwrap();
        std::future::ready(true).into_ffi()
    }

    fn spawn(&self, task: FfiFuture<()>) -> bool {
        block_on_future(task);
        true
    }

    fn service(&self, operation: RStr<'_>, frame: RVec<u8>) -> Answer {
        let answer = match operation.as_str() {
            "echo" => RResult::ROk(frame),
            _ => RResult::RErr(RVec::from(b"unknown".to_vec())),
        };
        std::future::ready(answer).into_ffi()
    }

    fn next(&self, _handle: u64) -> Maybe {
        let piece = self.0.pieces.lock().pop_front();
        std::future::ready(RResult::ROk(piece.map(RVec::from).into())).into_ffi()
    }

    fn close(&self, _handle: u64) {
        self.0.pieces.lock().clear();
    }
}

/// The plugin: its factory, its instance, and all its facets.
struct Plugin(Alive, #[expect(dead_code, reason = "counts")] Held);

impl Plugin {
    fn new(alive: &Alive) -> Self {
        Self(alive.clone(), alive.one())
    }
}

struct Job(Arc<AtomicBool>, #[expect(dead_code, reason = "counts")] Held);

impl JobAbi for Job {
    fn run(&mut self) {
        self.0.store(true, SeqCst);
    }
}

impl FactoryAbi for Plugin {
    fn create(
        &self,
        context: ContextBox,
        saved: ROption<RVec<u8>>,
    ) -> FfiFuture<RResult<InstanceBox, RVec<u8>>> {
        let instance = Self::new(&self.0);
        async move {
            let text = format!("made from {} bytes", saved.map_or(0, |saved| saved.len()));
            context.log(3, text.as_str().into());
            RResult::ROk(InstanceBox::from_value(instance, TD_Opaque))
        }
        .into_ffi()
    }
}

impl InstanceAbi for Plugin {
    fn tools(&self) -> ROption<ToolBox> {
        ROption::RSome(ToolBox::from_value(Self::new(&self.0), TD_Opaque))
    }

    fn gc(&self) -> ROption<GcBox> {
        ROption::RNone
    }

    fn provider(&self) -> ROption<ProviderBox> {
        ROption::RSome(ProviderBox::from_value(Self::new(&self.0), TD_Opaque))
    }

    fn environment(&self) -> ROption<EnvironmentBox> {
        ROption::RNone
    }

    fn operation(&self, name: RStr<'_>, context: ContextBox, frame: RVec<u8>) -> Answer {
        ToolAbi::call(self, name, context, frame)
    }

    fn save(&self) -> Maybe {
        std::future::ready(RResult::ROk(ROption::RSome(RVec::from(vec![1, 2, 3])))).into_ffi()
    }

    fn close(&self) -> FfiFuture<()> {
        std::future::ready(()).into_ffi()
    }
}

impl ToolAbi for Plugin {
    fn call(&self, name: RStr<'_>, context: ContextBox, frame: RVec<u8>) -> Answer {
        let (name, alive) = (name.as_str().to_owned(), self.0.clone());
        let held = alive.one();
        async move {
            let _held = held;
            match name.as_str() {
                "echo" => context.service("echo".into(), frame).await,
                "refused" => context.service("moon".into(), frame).await,
                "wait" => {
                    context.cancelled().await;
                    RResult::ROk(frame)
                }
                "sleep" => RResult::ROk(RVec::from(vec![u8::from(context.sleep_ms(1).await)])),
                "emit" => {
                    let taken = (0..3).all(|piece| context.emit(vec![piece; 3].into()));
                    RResult::ROk(RVec::from(vec![u8::from(taken)]))
                }
                "read" => {
                    let mut all = Vec::new();
                    while let RResult::ROk(ROption::RSome(piece)) = context.next(1).await {
                        all.extend_from_slice(&piece);
                    }
                    context.close(1);
                    RResult::ROk(all.into())
                }
                "work" => {
                    let ran = Arc::new(AtomicBool::new(false));
                    let job = Job(Arc::clone(&ran), alive.one());
                    let done = context.spawn_blocking(JobBox::from_value(job, TD_Opaque)).await;
                    let task = Arc::clone(&ran);
                    let taken = context.spawn(async move { assert!(task.load(SeqCst)) }.into_ffi());
                    RResult::ROk(RVec::from(vec![u8::from(done), u8::from(taken)]))
                }
                _ => RResult::RErr(RVec::new()),
            }
        }
        .into_ffi()
    }
}

impl ProviderAbi for Plugin {
    fn complete(&self, context: ContextBox, frame: RVec<u8>) -> Answer {
        ToolAbi::call(self, "echo".into(), context, frame)
    }

    fn models(&self, context: ContextBox, frame: RVec<u8>) -> Answer {
        ToolAbi::call(self, "refused".into(), context, frame)
    }
}

/// Returns an instance, with the data of its host and the counter of both sides' objects.
fn new_instance() -> (InstanceBox, Arc<CallRecord>) {
    let told = Arc::new(CallRecord::default());
    let factory = FactoryBox::from_value(Plugin::new(&told.alive), TD_Opaque);
    let saved = ROption::RSome(RVec::from(vec![0; 5]));
    let made = block_on_future(factory.create(HostContext::lend_context(&told), saved)).unwrap();
    assert_eq!(*told.logged.lock(), ["3 made from 5 bytes"]);
    (made, told)
}

fn call(
    tools: &ToolBox,
    told: &Arc<CallRecord>,
    name: &str,
    bytes: &[u8],
) -> Result<Vec<u8>, Vec<u8>> {
    let answer = block_on_future(tools.call(
        name.into(),
        HostContext::lend_context(told),
        RVec::from(bytes),
    ));
    answer.into_result().map(Into::into).map_err(Into::into)
}

#[test]
fn full_instance_lifecycle_crosses_the_boundary_without_leaks() {
    let (instance, told) = new_instance();
    let tools = instance.tools().unwrap();
    assert!(instance.gc().is_none());
    for bytes in [&[][..], &[0], &[7; 5000]] {
        assert_eq!(call(&tools, &told, "echo", bytes), Ok(bytes.to_vec()));
        assert_eq!(call(&tools, &told, "refused", bytes), Err(b"unknown".to_vec()));
    }
    assert_eq!(call(&tools, &told, "no such tool", b"x"), Err(Vec::new()));
    assert_eq!(call(&tools, &told, "emit", b""), Ok(vec![1]));
    assert_eq!(*told.emitted.lock(), [[0; 3], [1; 3], [2; 3]]);
    told.pieces.lock().extend([vec![1; 9], Vec::new(), vec![2; 3]]);
    assert_eq!(call(&tools, &told, "read", b""), Ok([vec![1; 9], vec![2; 3]].concat()));
    assert_eq!(call(&tools, &told, "work", b""), Ok(vec![1, 1]));
    assert_eq!(block_on_future(instance.save()).unwrap().unwrap().as_slice(), [1, 2, 3]);
    block_on_future(instance.close());
    drop((instance, tools));
    told.alive.is_none();
}

#[test]
fn provider_and_operation_calls_pass_frames_like_tool_calls() {
    let (instance, told) = new_instance();
    let provider = instance.provider().unwrap();
    let frame = || RVec::from(vec![4; 4]);
    let lend = || HostContext::lend_context(&told);
    assert_eq!(block_on_future(provider.complete(lend(), frame())).unwrap(), frame());
    assert!(block_on_future(provider.models(lend(), frame())).is_err());
    assert_eq!(
        block_on_future(instance.operation("echo".into(), lend(), frame())).unwrap(),
        frame()
    );
    drop((instance, provider));
    told.alive.is_none();
}

#[test]
fn dropping_a_pending_call_releases_what_it_holds() {
    let (instance, told) = new_instance();
    let tools = instance.tools().unwrap();
    let mut waiting = tools.call("wait".into(), HostContext::lend_context(&told), RVec::new());
    assert!(!poll_once(&mut waiting));
    drop(waiting);
    // The same for a future that was never polled.
    drop(tools.call("wait".into(), HostContext::lend_context(&told), RVec::new()));
    drop((instance, tools));
    told.alive.is_none();
}

#[test]
fn waker_crosses_the_boundary_and_wakes_from_another_thread() {
    let (instance, told) = new_instance();
    let tools = instance.tools().unwrap();
    assert_eq!(call(&tools, &told, "sleep", b""), Ok(vec![1]));
    let mut waiting =
        tools.call("wait".into(), HostContext::lend_context(&told), RVec::from(vec![9]));
    assert!(!poll_once(&mut waiting));
    told.cancelled.store(true, SeqCst);
    assert_eq!(block_on_future(waiting).unwrap().as_slice(), [9]);
    drop((instance, tools));
    told.alive.is_none();
}

#[test]
fn a_facet_outlives_its_instance_and_ends_on_another_thread() {
    let (instance, told) = new_instance();
    let tools = instance.tools().unwrap();
    drop(instance);
    let theirs = Arc::clone(&told);
    thread::spawn(move || {
        assert_eq!(call(&tools, &theirs, "echo", b"x"), Ok(b"x".to_vec()));
        drop(tools);
    })
    .join()
    .unwrap();
    told.alive.is_none();
}
