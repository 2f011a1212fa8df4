//! Prints what the engine's own exec of a small command costs at best, in a container that runs, as
//! one line of JSON.
//!
//! `exec_bench CONTAINER`; `cargo xtask bench containers` runs it.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::time::{Duration, Instant};

use bollard::Docker;
use bollard::exec::{StartExecOptions, StartExecResults};
use bollard::models::ExecConfig;
use futures_util::StreamExt as _;

/// Commands; the fastest counts.
const COMMANDS: usize = 10;

fn main() {
    let container = std::env::args().nth(1).expect("usage: exec_bench CONTAINER");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let docker = Docker::connect_with_defaults().unwrap();
        let mut best = Duration::MAX;
        for _ in 0..COMMANDS {
            best = best.min(exec(&docker, &container).await);
        }
        println!("{{\"exec_ms\":{}}}", best.as_secs_f64() * 1e3);
    });
}

async fn exec(docker: &Docker, container: &str) -> Duration {
    let begun = Instant::now();
    let config = ExecConfig {
        attach_stdout: Some(true),
        attach_stderr: Some(true),
        cmd: Some(["sh", "-c", "echo x"].map(str::to_owned).into()),
        ..ExecConfig::default()
    };
    let exec = docker.create_exec(container, config).await.unwrap().id;
    let started = docker.start_exec(&exec, None::<StartExecOptions>).await.unwrap();
    let StartExecResults::Attached { mut output, input: _input } = started else {
        panic!("it was asked for attached")
    };
    while output.next().await.is_some() {}
    docker.inspect_exec(&exec).await.unwrap();
    begun.elapsed()
}
