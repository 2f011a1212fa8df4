//! Measures what the boundary costs, each figure in turns with what it is compared with.
//!
//! `boundary_bench call PLUGIN` wants a plugin with the tool `count_bytes_echo` and prints
//! nanoseconds; `boundary_bench hop` prints microseconds. `cargo xtask bench call hop` builds and
//! runs both.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::error::Error as AnyError;
use std::fmt::Display;
use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use futures_util::future::BoxFuture;
use jaato_loader::{Executor, Library, NoServices, Plugin, Report, Services, THREADS, Watch};
use jaato_types::{Error, Frame, PluginName};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::runtime::{Builder, Handle, Runtime};

const TOOL: &str = "count_bytes_echo";

/// Makes arguments of [`ARGUMENT_BYTES`]; the yardstick behind MCP sends the same.
const TEXT: &str =
    "the quick brown fox jumps over the lazy dog and runs away into the deeply dark wood";

const ARGUMENT_BYTES: usize = 94;

/// Loops of a measurement; the figure is their median.
const LOOPS: usize = 151;

/// Calls of one loop: long against the clock, short against a time slice, so that on a busy machine
/// most loops run through.
const CALLS: usize = 200;

/// Hops of one loop; each is timed by itself.
const HOPS: usize = 50;

fn main() -> Result<(), Box<dyn AnyError>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let figures = match words[..] {
        ["call", plugin] => runtime.block_on(calls(Path::new(plugin)))?,
        ["hop"] => hops(&runtime)?,
        _ => return Err("usage: boundary_bench call PLUGIN | hop".into()),
    };
    println!("{figures}");
    Ok(())
}

/// Calls a loaded tool in place, with a fresh context each time, and a native one in the same way.
async fn calls(plugin: &Path) -> Result<Value, Box<dyn AnyError>> {
    let opened = Library::open(plugin)?;
    let executor = Executor::new(Handle::current(), Arc::new(Aloud));
    let plugin = Plugin::start(&executor, &opened).await?;
    let services: Arc<dyn Services> = Arc::new(NoServices);
    let instance = plugin.create(Arc::clone(&services), None).await?;
    let native: Box<dyn NativeTool> = Box::new(ByteCounter);
    let frame = Frame::write(&json!({ "text": TEXT }))?;
    assert_eq!(Frame::parse(&frame)?.json.len(), ARGUMENT_BYTES);

    let (mut native_ns, mut in_place_ns) = (Vec::new(), Vec::new());
    // The first loop of each warms up.
    for _ in 0..=LOOPS {
        let start = Instant::now();
        for _ in 0..CALLS {
            check(native.call(TOOL, frame.clone()).await)?;
        }
        native_ns.push(nanoseconds_a_call(start));
        let start = Instant::now();
        for _ in 0..CALLS {
            let call = instance.call_tool_in_place(TOOL, frame.clone(), Arc::clone(&services));
            let call = call.ok_or("the instance lives in a worker")??;
            check(call.await)?;
        }
        in_place_ns.push(nanoseconds_a_call(start));
    }
    let (native_ns, in_place_ns) = (median(&mut native_ns[1..]), median(&mut in_place_ns[1..]));
    Ok(json!({ "native_ns": native_ns, "in_place_ns": in_place_ns }))
}

/// Awaits an empty future from `block_on` of a current-thread runtime: run by the plugin executor,
/// and spawned on a tokio runtime with as many threads. That is the same way there and back; a
/// future spawned on the current thread would never leave it.
fn hops(runtime: &Runtime) -> Result<Value, Box<dyn AnyError>> {
    let executor = Executor::new(runtime.handle().clone(), Arc::new(Aloud));
    let pool = Builder::new_multi_thread().worker_threads(THREADS).enable_all().build()?;
    runtime.block_on(async {
        let (mut hop_us, mut spawn_us) = (Vec::new(), Vec::new());
        for at in 0..=LOOPS {
            for _ in 0..HOPS {
                let start = Instant::now();
                executor.hop().await;
                hop_us.push(microseconds(start));
            }
            for _ in 0..HOPS {
                let start = Instant::now();
                pool.spawn(async {}).await?;
                spawn_us.push(microseconds(start));
            }
            if at == 0 {
                // The first loop of each warms up.
                hop_us.clear();
                spawn_us.clear();
            }
        }
        Ok(json!({ "hop_us": median(&mut hop_us), "spawn_us": median(&mut spawn_us) }))
    })
}

/// What a host without plugins would have: a trait object with a boxed future.
trait NativeTool: Send + Sync {
    fn call(&self, name: &str, frame: Vec<u8>) -> BoxFuture<'_, Result<Vec<u8>, Error>>;
}

/// Does what the plugin's tool does.
struct ByteCounter;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ByteCount {
    text: String,
}

impl NativeTool for ByteCounter {
    fn call(&self, name: &str, frame: Vec<u8>) -> BoxFuture<'_, Result<Vec<u8>, Error>> {
        black_box(name);
        Box::pin(async move {
            let ByteCount { text } = Frame::read(&frame).map_err(failed)?;
            let answer = json!({ "bytes": text.len() });
            Frame::write(&answer).map_err(failed)
        })
    }
}

fn failed(error: impl Display) -> Error {
    Error::failed(error.to_string())
}

/// A figure of calls that fail would be no figure.
fn check(answer: Result<Vec<u8>, Error>) -> Result<(), Error> {
    let frame = black_box(answer)?;
    if frame.is_empty() { Err(Error::failed("the tool answered nothing")) } else { Ok(()) }
}

fn nanoseconds_a_call(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1e9 / CALLS as f64
}

fn microseconds(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1e6
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Says at once what would spoil the figures.
struct Aloud;

impl Watch for Aloud {
    fn log(&self, plugin: &PluginName, _level: u8, text: &str) {
        eprintln!("{plugin}: {text}");
    }

    fn misbehaved(&self, report: &Report) {
        eprintln!("{report}");
    }

    fn trouble(&self, text: &str) {
        eprintln!("{text}");
    }
}
