//! Measures 100 sessions that stream at once, and how long opening a session takes. Prints one line
//! of JSON. `cargo xtask bench library` runs it.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use jaato_library::ports::{Cancel, DeltaSink, Provider};
use jaato_library::types::{
    Completion, CompletionRequest, Delta, Event, FinishReason, Part, Usage,
};
use jaato_library::{Jaato, Result};
use tokio::sync::mpsc;

const SESSIONS: usize = 100;
const DELTAS_PER_SECOND: u64 = 100;
const SECONDS: u64 = 5;
/// The number of sessions that are opened to measure one. The best of the rounds counts.
const OPENED: u32 = 100;
const ROUNDS: usize = 5;
const PIECE: &str = "a few words ";

/// Streams pieces at a steady rate.
struct SteadyProvider;

impl Provider for SteadyProvider {
    fn source(&self) -> &str {
        "steady"
    }

    fn complete<'a>(
        &'a self,
        _request: &'a CompletionRequest,
        sink: DeltaSink,
        _cancel: Cancel,
    ) -> BoxFuture<'a, Result<Completion>> {
        Box::pin(async move {
            let mut text = String::new();
            let mut ticks = delta_ticks();
            for _ in 0..SECONDS * DELTAS_PER_SECOND {
                ticks.tick().await;
                sink.emit_delta(Delta::text(PIECE));
                text.push_str(PIECE);
            }
            Ok(Completion::new(vec![Part::text(text)], FinishReason::Stop, Usage::default()))
        })
    }
}

fn delta_ticks() -> tokio::time::Interval {
    tokio::time::interval(Duration::from_millis(1000 / DELTAS_PER_SECOND))
}

/// The processor time of this process so far, in seconds.
fn processor_seconds() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    // User and system time, in the kernel's ticks of 10 ms.
    (fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap()) / 100.0
}

/// The highest memory of this process so far, in MiB.
fn peak_mib() -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() / 1024.0
}

/// Runs work for all sessions at the same time. Returns the share of a core that it took, and the
/// pieces.
async fn share_of_core<F>(work: impl Fn() -> F) -> (f64, u64)
where
    F: Future<Output = u64> + Send + 'static,
{
    let (begun, used) = (Instant::now(), processor_seconds());
    let tasks: Vec<_> = (0..SESSIONS).map(|_| tokio::spawn(work())).collect();
    let mut pieces = 0;
    for task in tasks {
        pieces += task.await.unwrap();
    }
    ((processor_seconds() - used) / begun.elapsed().as_secs_f64(), pieces)
}

/// The same pieces at the same rate, through a channel alone.
async fn stream_through_channel() -> u64 {
    let (to, mut pieces) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        let mut ticks = delta_ticks();
        for _ in 0..SECONDS * DELTAS_PER_SECOND {
            ticks.tick().await;
            to.send(PIECE.to_owned()).unwrap();
        }
    });
    let mut count = 0;
    while pieces.recv().await.is_some() {
        count += 1;
    }
    count
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<()> {
    let jaato = Jaato::builder().provider("my", SteadyProvider).start().await?;
    let mut open_ms = f64::MAX;
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        let opened: Vec<_> = (0..OPENED).map(|_| jaato.session().open()).collect::<Result<_>>()?;
        open_ms = open_ms.min(begun.elapsed().as_secs_f64() * 1e3 / f64::from(OPENED));
        for session in opened {
            session.close().await;
        }
    }
    let (plain_cores, _) = share_of_core(stream_through_channel).await;
    let host = jaato.clone();
    let stream = move || {
        let session = host.session().open().unwrap();
        async move {
            let mut turn = session.send("Speak.");
            let mut count = 0;
            while let Some(event) = turn.next().await {
                count += u64::from(matches!(event, Event::TextDelta { .. }));
            }
            turn.await.unwrap();
            count
        }
    };
    let (cores, pieces) = share_of_core(stream).await;
    assert_eq!(pieces, SESSIONS as u64 * SECONDS * DELTAS_PER_SECOND);
    let mib = peak_mib();
    println!(
        "{{\"open_ms\":{open_ms},\"cores\":{cores},\"plain_cores\":{plain_cores},\"mib\":{mib}}}"
    );
    Ok(())
}
