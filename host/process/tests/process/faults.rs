//! Tests the death of the host, the guardian or a keeper, in every way.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

use jaato_process::{Exit, GuardianCommand, ProcessError, Supervisor};
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;

use crate::{
    assert_all_end, is_process_alive, miniature_host, new_supervisor, read_all, read_pids,
    script_command,
};

fn send_signal(pid: u32, signal: Signal) {
    kill(Pid::from_raw(pid as i32), signal).unwrap();
}

fn parent_of(pid: u32) -> u32 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let (_, rest) = stat.rsplit_once(") ").unwrap();
    rest.split(' ').nth(1).unwrap().parse().unwrap()
}

#[test]
fn a_killed_host_leaves_no_process_behind() {
    let script = "sleep 300 & echo $!
        (sleep 300 & echo $!)
        setsid -f sh -c 'echo $$; exec sleep 300'
        env -i /usr/bin/setsid -f /bin/sh -c '(/bin/sleep 300 & echo $!)'
        trap '' TERM HUP INT
        echo $$; while :; do sleep 300; done";
    let mut host = Command::new(miniature_host());
    let mut host = host.args(["keep", script]).stdout(Stdio::piped()).spawn().unwrap();
    let mut output = BufReader::new(host.stdout.take().unwrap());
    let mut pids: Vec<u32> = Vec::new();
    while pids.len() < 6 {
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        pids.push(line.trim().parse().unwrap());
    }
    assert!(pids.iter().all(|pid| is_process_alive(*pid)), "{pids:?}");
    host.kill().unwrap();
    host.wait().unwrap();
    // The output ends when all processes that inherited it have exited.
    output.read_to_string(&mut String::new()).unwrap();
    assert_all_end(&pids);
}

#[tokio::test]
async fn signals_to_the_guardian_and_its_group_do_not_end_it() {
    let supervisor = new_supervisor();
    let child = supervisor.spawn(script_command("exec sleep 300")).await.unwrap();
    let guardian = supervisor.guardian_pid().unwrap();
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT] {
        send_signal(guardian, signal);
        killpg(Pid::from_raw(guardian as i32), signal).unwrap();
        send_signal(parent_of(child.pid()), signal);
    }
    let mut next = supervisor.spawn(script_command("echo well")).await.unwrap();
    assert_eq!(read_all(&mut next).await, "well\n");
    assert_eq!(supervisor.guardian_pid(), Some(guardian));
    assert!(is_process_alive(child.pid()));
}

#[tokio::test]
async fn a_killed_guardian_fails_every_wait_ends_every_child_and_is_replaced() {
    let supervisor = new_supervisor();
    let text = "setsid -f sh -c 'echo $$; exec sleep 300'; exec sleep 300";
    let mut child = supervisor.spawn(script_command(text)).await.unwrap();
    let other = supervisor.spawn(script_command("exec sleep 300")).await.unwrap();
    let mut pids = read_pids(&mut child, 1).await;
    pids.extend([child.pid(), other.pid()]);
    let guardian = supervisor.guardian_pid().unwrap();
    send_signal(guardian, Signal::SIGKILL);
    let (first, second) = tokio::join!(child.wait(), other.wait());
    for result in [first, second] {
        let error = result.expect_err("a wait survived");
        assert!(matches!(error, ProcessError::GuardianLost), "{error:?}");
    }
    assert_all_end(&pids);
    let next = match supervisor.spawn(script_command("exit 0")).await {
        // The dying guardian may still have taken the request. The next call starts another one.
        Err(ProcessError::GuardianLost) => supervisor.spawn(script_command("exit 0")).await,
        next => next,
    };
    assert_eq!(next.unwrap().wait().await.unwrap(), Exit::Code(0));
    assert_ne!(supervisor.guardian_pid(), Some(guardian));
}

#[tokio::test]
async fn killed_keeper_fails_only_its_child_and_its_orphans_are_ended() {
    let supervisor = new_supervisor();
    let bystander = supervisor.spawn(script_command("exec sleep 300")).await.unwrap();
    let text = "setsid -f sh -c 'echo $$; exec sleep 300'; exec sleep 300";
    let mut child = supervisor.spawn(script_command(text)).await.unwrap();
    let mut pids = read_pids(&mut child, 1).await;
    pids.push(child.pid());
    let keeper = parent_of(child.pid());
    assert_eq!(parent_of(keeper), supervisor.guardian_pid().unwrap());
    send_signal(keeper, Signal::SIGKILL);
    let error = child.wait().await.expect_err("the wait survived");
    assert!(matches!(error, ProcessError::GuardianLost), "{error:?}");
    assert_all_end(&pids);
    assert!(is_process_alive(bystander.pid()));
    let next = supervisor.spawn(script_command("exit 0")).await.unwrap();
    assert_eq!(next.wait().await.unwrap(), Exit::Code(0));
}

#[tokio::test]
async fn a_guardian_that_cannot_be_started_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("jaato");
    let named = format!("`{}`", program.display());
    let supervisor = Supervisor::new(GuardianCommand { program, args: vec![] });
    let error = supervisor.spawn(script_command("exit 0")).await.expect_err("it was started");
    assert!(matches!(error, ProcessError::GuardianNotStarted { .. }), "{error:?}");
    assert!(error.to_string().contains(&named), "{error}");
    let program = "/bin/true".into();
    let supervisor = Supervisor::new(GuardianCommand { program, args: vec!["guardian".into()] });
    let error = supervisor.spawn(script_command("exit 0")).await.expect_err("it was started");
    assert!(matches!(error, ProcessError::NoGuardian { .. }), "{error:?}");
    assert!(error.to_string().contains("`/bin/true guardian` exited immediately"), "{error}");
    assert!(error.hint().unwrap().contains("Setup::executable"), "{error:?}");
}

#[test]
fn host_ends_and_reports_processes_of_a_command_that_kills_its_guardian() {
    let folder = tempfile::tempdir().unwrap();
    let pids = folder.path().join("pids");
    // Each without its parents, its session and its variables.
    let script = format!(
        "env -i /usr/bin/setsid -f /bin/sh -c 'echo $$ >> {pids}; exec /bin/sleep 300'
        while ! [ -s {pids} ]; do :; done
        echo $$ >> {pids}
        read -r _ _ _ guardian _ < /proc/$PPID/stat
        kill -STOP $PPID
        kill -9 $guardian $PPID
        exec sleep 300",
        pids = pids.display()
    );
    let mut host = Command::new(miniature_host());
    let output = host.args(["outlive", &script]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let pids = std::fs::read_to_string(&pids).unwrap();
    let pids: Vec<u32> = pids.lines().map(|pid| pid.parse().unwrap()).collect();
    assert_eq!(pids.len(), 2, "{text}");
    assert_all_end(&pids);
    for pid in pids {
        assert!(text.contains(&format!("ended process {pid} (")), "{text}");
    }
    assert!(text.starts_with("Err(\"the guardian has ended"), "{text}");
}

#[test]
fn host_runs_commands_even_if_its_parent_ignores_sigchld() {
    let host = format!("trap '' CHLD; exec {} outlive 'exit 7'", miniature_host().display());
    let output = Command::new("/bin/sh").args(["-c", &host]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "Ok(Code(7))\n", "{output:?}");
}

#[tokio::test]
async fn a_command_that_stops_its_keeper_is_ended_all_the_same() {
    let supervisor = new_supervisor();
    let folder = tempfile::tempdir().unwrap();
    let begin = folder.path().join("begin");
    // Not before the keeper has reported that the command runs.
    let wait = format!("while ! [ -e {} ]; do :; done", begin.display());
    let text = format!("echo $$; {wait}; kill -STOP $PPID; exec sleep 300");
    let mut child = supervisor.spawn(script_command(&text)).await.unwrap();
    let pids = read_pids(&mut child, 1).await;
    std::fs::write(&begin, "").unwrap();
    let keeper = parent_of(child.pid());
    let state = || std::fs::read_to_string(format!("/proc/{keeper}/stat")).unwrap();
    while !state().contains(") T ") {
        tokio::task::yield_now().await;
    }
    child.end().await.unwrap();
    assert_all_end(&pids);
}

#[tokio::test]
async fn a_command_that_stops_its_keeper_at_once_is_started_and_ended_all_the_same() {
    let supervisor = new_supervisor();
    // In about half of the runs, it does so before its keeper has reported the start.
    for _ in 0..8 {
        let text = "kill -STOP $PPID; echo $$; exec sleep 300";
        let mut child = supervisor.spawn(script_command(text)).await.unwrap();
        let pids = read_pids(&mut child, 1).await;
        child.end().await.unwrap();
        assert_all_end(&pids);
    }
}

#[tokio::test]
async fn exit_of_a_command_that_stopped_its_keeper_is_reported() {
    let supervisor = new_supervisor();
    let child =
        supervisor.spawn(script_command("sleep 300 & kill -STOP $PPID; exit 7")).await.unwrap();
    assert_eq!(child.wait().await.unwrap(), Exit::Code(7));
    child.end().await.unwrap();
}

#[test]
fn guardian_started_by_a_user_explains_itself() {
    let mut guardian = Command::new(miniature_host());
    let output = guardian.arg("guardian").stdin(Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("is started by jaato itself"), "{text}");
}
