//! Measures what a worker costs, each figure in turns with what it is compared with.
//!
//! `worker_bench calls JAATO ECHO` prints microseconds: a call in a worker of the tool
//! `count_bytes_echo`, and a bare ping-pong of the same bytes over a socket pair; milliseconds
//! until an instance is there; MiB of an idle worker beside its plugin. `worker_bench deltas JAATO
//! PROBE` prints microseconds a streamed piece, in this process and from a worker. `worker_bench
//! open FOLDER` prints the milliseconds of opening all plugins there. `cargo xtask bench worker`
//! builds and runs all. `worker_bench pong` is the other end of the ping-pong.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::error::Error as AnyError;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use futures_util::future::BoxFuture;
use jaato_loader::remote::{self, WorkerProcess};
use jaato_loader::{
    Executor, Instance, Library, NoServices, Plugin, Report, RunningCall, Services, Watch,
    read_manifest,
};
use jaato_types::{Frame, PluginName};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::runtime::{Builder, Handle};

type Outcome<T> = Result<T, Box<dyn AnyError>>;

/// The same as those of the bench of calls: 94 bytes of arguments.
const TEXT: &str =
    "the quick brown fox jumps over the lazy dog and runs away into the deeply dark wood";
/// Bytes of a ping and of a pong: about those of a call and of its answer, headers included.
const PING_BYTES: usize = 16 + 20 + 98;
const PONG_BYTES: usize = 16 + 16;
/// Calls of a measurement; the figure is their median.
const CALLS: usize = 3_000;
const WARM_UP: usize = 300;
/// Pieces of a stream.
const PIECES: u32 = 20_000;
/// Workers that are started for the time of a start; the median counts.
const STARTS: usize = 11;

fn main() -> Outcome<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    if let ["pong"] = words[..] {
        return pong();
    }
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let figures = match words[..] {
        ["calls", jaato, echo] => runtime.block_on(calls(Path::new(jaato), Path::new(echo)))?,
        ["deltas", jaato, probe] => runtime.block_on(deltas(Path::new(jaato), Path::new(probe)))?,
        ["open", folder] => runtime.block_on(open(Path::new(folder)))?,
        _ => {
            return Err(
                "usage: worker_bench calls JAATO ECHO | deltas JAATO PROBE | open FOLDER".into()
            );
        }
    };
    println!("{figures}");
    runtime.shutdown_background();
    Ok(())
}

async fn calls(jaato: &Path, echo: &Path) -> Outcome<Value> {
    let executor = Executor::new(Handle::current(), Arc::new(Aloud));
    let mut starts_ms = Vec::new();
    for _ in 0..STARTS {
        let start = Instant::now();
        let (instance, _) = in_worker(&executor, jaato, echo).await?;
        starts_ms.push(start.elapsed().as_secs_f64() * 1e3);
        instance.close().await?;
    }
    let (instance, pid) = in_worker(&executor, jaato, echo).await?;
    let frame = Frame::write(&json!({ "text": TEXT }))?;
    let ping_us = ping()?;
    let mut call_us = Vec::with_capacity(CALLS);
    for number in 0..WARM_UP + CALLS {
        let start = Instant::now();
        let call = instance.call_tool("count_bytes_echo", frame.clone(), services())?;
        let answer = call.answer().await?;
        let time = start.elapsed();
        if answer.len() < 5 {
            return Err("the tool answered nothing".into());
        }
        if number >= WARM_UP {
            call_us.push(time.as_secs_f64() * 1e6);
        }
    }
    let idle_mib = memory_beside(pid, echo)?;
    instance.close().await?;
    Ok(json!({
        "ping_us": ping_us,
        "call_us": median(&mut call_us),
        "start_ms": median(&mut starts_ms),
        "idle_mib": idle_mib,
    }))
}

async fn deltas(jaato: &Path, probe: &Path) -> Outcome<Value> {
    let executor = Executor::new(Handle::current(), Arc::new(Aloud));
    let opened = Library::open(probe)?;
    let here = Plugin::start(&executor, &opened).await?.create(services(), None).await?;
    let (there, _) = in_worker(&executor, jaato, probe).await?;
    let frame = Frame::write(&json!({ "pieces": PIECES, "bytes": 16 }))?;
    let (mut here_us, mut there_us) = (Vec::new(), Vec::new());
    for _ in 0..5 {
        here_us.push(stream(here.call_tool("emit", frame.clone(), services())?).await?);
        there_us.push(stream(there.call_tool("emit", frame.clone(), services())?).await?);
    }
    there.close().await?;
    Ok(json!({ "here_us": least(&here_us), "there_us": least(&there_us) }))
}

/// Reads a call's emissions to their end; microseconds a piece.
async fn stream(mut call: RunningCall) -> Outcome<f64> {
    let start = Instant::now();
    let mut pieces = 0;
    while call.next_emission().await.is_some() {
        pieces += 1;
    }
    call.answer().await?;
    if pieces != PIECES {
        return Err(format!("{pieces} pieces of {PIECES} came").into());
    }
    Ok(start.elapsed().as_secs_f64() * 1e6 / f64::from(PIECES))
}

async fn open(folder: &Path) -> Outcome<Value> {
    let executor = Executor::new(Handle::current(), Arc::new(Aloud));
    let files: Vec<_> = std::fs::read_dir(folder)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()?;
    let start = Instant::now();
    let mut kept = Vec::with_capacity(files.len());
    for file in &files {
        let opened = Library::open(file)?;
        let plugin = Plugin::start(&executor, &opened).await?;
        let instance = plugin.create(services(), None).await?;
        kept.push((plugin, instance));
    }
    let open_ms = start.elapsed().as_secs_f64() * 1e3;
    Ok(json!({ "open_ms": open_ms, "plugins": kept.len() }))
}

fn services() -> Arc<dyn Services> {
    Arc::new(NoServices)
}

/// Starts a worker and makes its instance; gives its process id too.
async fn in_worker(executor: &Executor, jaato: &Path, plugin: &Path) -> Outcome<(Instance, u32)> {
    let (ours, theirs) = UnixStream::pair()?;
    // The shell puts the socket where a worker looks for it, and becomes the worker.
    let child = Command::new("sh")
        .args(["-c", r#"exec "$0" plugin-worker "$1" 3<&0 </dev/null"#])
        .args([jaato, plugin])
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .spawn()?;
    let pid = child.id();
    let start = remote::Start {
        manifest: read_manifest(plugin)?,
        socket: ours,
        process: Arc::new(OwnChild(Mutex::new(child))),
        services: services(),
        saved: None,
    };
    Ok((Instance::in_worker(executor, start).await?, pid))
}

/// A worker that is a child of this program.
struct OwnChild(Mutex<Child>);

impl WorkerProcess for OwnChild {
    fn ended(&self) -> BoxFuture<'_, String> {
        Box::pin(async { "ended".to_owned() })
    }

    fn end(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            let mut child = self.0.lock();
            // It may have ended by itself; in either case it is waited for.
            let _ = child.kill().and_then(|()| child.wait());
        })
    }

    fn go_on(&self) -> BoxFuture<'_, bool> {
        Box::pin(std::future::ready(false))
    }

    fn printed(&self) -> String {
        String::new()
    }
}

/// The median of a ping and its pong, with a process of its own at the other end, as a worker has.
fn ping() -> Outcome<f64> {
    let (mut socket, theirs) = UnixStream::pair()?;
    let mut child = Command::new(std::env::current_exe()?)
        .arg("pong")
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .spawn()?;
    let (ping, mut pong) = ([7; PING_BYTES], [0; PONG_BYTES]);
    let mut times = Vec::with_capacity(CALLS);
    for number in 0..WARM_UP + CALLS {
        let start = Instant::now();
        socket.write_all(&ping)?;
        socket.read_exact(&mut pong)?;
        if number >= WARM_UP {
            times.push(start.elapsed().as_secs_f64() * 1e6);
        }
    }
    drop(socket);
    child.wait()?;
    Ok(median(&mut times))
}

fn pong() -> Outcome<()> {
    use std::os::fd::AsFd as _;
    let input = std::io::stdin().as_fd().try_clone_to_owned()?;
    let mut socket = UnixStream::from(input);
    let (mut ping, pong) = ([0; PING_BYTES], [7; PONG_BYTES]);
    while socket.read_exact(&mut ping).is_ok() {
        socket.write_all(&pong)?;
    }
    Ok(())
}

/// The memory of a process in MiB, its share of what it shares, without the pages of its plugin's
/// file.
fn memory_beside(pid: u32, plugin: &Path) -> Outcome<f64> {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/smaps"))?;
    let plugin = plugin.canonicalize()?.display().to_string();
    let (mut kib, mut is_plugins) = (0_u32, false);
    for line in maps.lines() {
        if let Some(size) = line.strip_prefix("Pss:") {
            let size: u32 = size.trim().trim_end_matches(" kB").parse()?;
            kib += if is_plugins { 0 } else { size };
        } else if line.split_whitespace().next().is_some_and(|word| word.contains('-')) {
            is_plugins = line.ends_with(&plugin);
        }
    }
    Ok(f64::from(kib) / 1024.0)
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn least(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
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
