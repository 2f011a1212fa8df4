//! The smallest host: starts a shell command under a guardian and keeps it until the host dies.
//!
//! `miniature_host keep SCRIPT` runs the script with its output on standard output, and waits for
//! its own end. The first line is the guardian's process id. `miniature_host outlive SCRIPT` runs
//! it until its guardian is lost, and prints the processes that it then ends itself.
//! `miniature_host latency` prints how long starting a child takes. The host starts
//! `miniature_host guardian`.

use std::error::Error;
use std::io::Write;
use std::os::fd::AsFd;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use jaato_process::{ChildCommand, Exit, GuardianCommand, StandardOutput, Supervisor};

/// The number of children for measuring the latency.
const ROUNDS: usize = 500;

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        ["guardian"] => return Ok(jaato_process::guardian_main()),
        ["keep", script] => new_runtime()?.block_on(keep_script(script))?,
        ["outlive", script] => {
            jaato_process::prepare_host()?;
            new_runtime()?.block_on(start_outliving_script(script))?;
        }
        ["latency"] => new_runtime()?.block_on(measure_latency())?,
        _ => {
            eprintln!("usage: miniature_host keep SCRIPT | outlive SCRIPT | latency");
            return Ok(ExitCode::from(2));
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn start_outliving_script(script: &str) -> Result<(), Box<dyn Error>> {
    let supervisor = new_supervisor()?;
    let mut command = ChildCommand::new("/bin/sh", "/");
    command.args = vec!["-c".into(), script.into()];
    command.variables.insert("PATH".into(), "/usr/bin:/bin".into());
    let child = supervisor.spawn(command).await?;
    println!("{:?}", child.wait().await.map_err(|error| error.to_string()));
    supervisor.end_all().await?;
    for orphan in supervisor.take_orphans() {
        println!("{orphan}");
    }
    Ok(())
}

fn new_runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}

fn new_supervisor() -> std::io::Result<Supervisor> {
    Ok(Supervisor::new(GuardianCommand::own_executable(["guardian"])?))
}

async fn keep_script(script: &str) -> Result<(), Box<dyn Error>> {
    let supervisor = new_supervisor()?;
    let mut command = ChildCommand::new("/bin/sh", "/");
    command.args = vec!["-c".into(), script.into()];
    command.variables.insert("PATH".into(), "/usr/bin:/bin".into());
    command.stdout = StandardOutput::Descriptor(std::io::stdout().as_fd().try_clone_to_owned()?);
    let _child = supervisor.spawn(command).await?;
    println!("{}", supervisor.guardian_pid().ok_or("the guardian is not there")?);
    std::io::stdout().flush()?;
    std::future::pending().await
}

async fn measure_latency() -> Result<(), Box<dyn Error>> {
    let supervisor = new_supervisor()?;
    let mut spawns = Vec::new();
    let mut whole = Vec::new();
    for _ in 0..ROUNDS {
        let start = Instant::now();
        let child = supervisor.spawn(ChildCommand::new("/bin/true", "/")).await?;
        spawns.push(start.elapsed());
        if child.wait().await? != Exit::Code(0) {
            return Err("`/bin/true` failed".into());
        }
        whole.push(start.elapsed());
    }
    println!("first child, with the guardian's start: {:?}", spawns[0]);
    println!("each further child: {}", format_time_spread(&mut spawns[1..]));
    println!("until its end was seen: {}", format_time_spread(&mut whole[1..]));
    let start = Instant::now();
    supervisor.end_all().await?;
    println!("the end of all: {:?}", start.elapsed());
    Ok(())
}

fn format_time_spread(times: &mut [Duration]) -> String {
    times.sort_unstable();
    let at = |percent: usize| times[(times.len() - 1) * percent / 100];
    format!("median {:?}, 95 % within {:?}, all within {:?}", at(50), at(95), at(100))
}
