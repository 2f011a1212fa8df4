//! Commands that are ended early.

use std::path::Path;
use std::time::{Duration, Instant};

use environment_docker::{Container, DockerEngine, DockerSettings};
use jaato_plugin_sdk::types::process::Signal;
use jaato_plugin_sdk::types::{ErrorKind, Retry};

use super::support::{
    DEADLINE, Gate, Lab, address, read, read_until, settings, sh, stdout, with_container,
    with_engine, workspace,
};

/// Starts several processes: a child, one in its own session, and a parent that ignores SIGTERM.
const FAMILY: &str = "trap '' TERM; sleep 1000 & setsid sh -c 'echo apart; sleep 1001' & \
                      echo partial; wait; wait";

async fn family_is_gone(container: &Container) {
    // Each look is a command. Zombies that wait for their reaper have no command line.
    let look = "for p in /proc/[0-9]*/cmdline; do { IFS= read -r l <$p; } 2>/dev/null; \
                case $l in sleep*100*) echo $l;; esac; done";
    while !stdout(container, look).await.is_empty() {}
}

#[test]
fn ending_a_command_ends_its_children_and_keeps_its_output() {
    with_container(async |container| {
        let command = container.start(sh(FAMILY)).await.unwrap();
        let mut seen = read_until(&command, "apart").await;
        if !seen.contains("partial") {
            seen += &read_until(&command, "partial").await;
        }
        let start = Instant::now();
        command.end().await.unwrap();
        let told = read(&command).await.unwrap();
        assert_eq!(told.code, Some(137));
        assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
        family_is_gone(container).await;
    });
}

#[test]
fn ended_command_may_print_and_exit_on_sigterm() {
    with_container(async |container| {
        let line = "trap 'echo bye; exit 9' TERM; echo up; while :; do sleep 0.01; done";
        let command = container.start(sh(line)).await.unwrap();
        read_until(&command, "up").await;
        command.end().await.unwrap();
        let told = read(&command).await.unwrap();
        assert_eq!((told.stdout.as_str(), told.code), ("bye\n", Some(9)));
    });
}

#[test]
fn dropping_a_command_ends_it() {
    with_container(async |container| {
        let command = container.start(sh(FAMILY)).await.unwrap();
        read_until(&command, "apart").await;
        drop(command);
        family_is_gone(container).await;
    });
}

#[test]
fn cancelled_start_leaves_no_command_running() {
    with_engine(async |lab| {
        let folder = workspace();
        let container = lab.made(folder.path()).await;
        let mut starting = Box::pin(container.start(sh("echo x > started; sleep 1000")));
        while !folder.path().join("started").exists() {
            if futures_util::poll!(&mut starting).is_ready() {
                break;
            }
            tokio::task::yield_now().await;
        }
        drop(starting);
        family_is_gone(&container).await;
        container.close().await.unwrap();
    });
}

#[test]
fn signals_reach_the_command() {
    with_container(async |container| {
        let line = "trap 'echo one' USR1; trap 'exit 5' INT; echo up; while :; do :; done";
        let command = container.start(sh(line)).await.unwrap();
        read_until(&command, "up").await;
        assert!(command.signal(Signal::User1).await.unwrap());
        read_until(&command, "one").await;
        assert!(command.signal(Signal::Interrupt).await.unwrap());
        assert_eq!(read(&command).await.unwrap().code, Some(5));
        assert!(!command.signal(Signal::Interrupt).await.unwrap());
    });
}

#[test]
fn commands_cannot_kill_the_guardian_of_a_created_container() {
    with_container(async |container| {
        let command = container.start(sh("kill -9 1; kill -9 -1; echo alive")).await.unwrap();
        read(&command).await.unwrap();
        assert_eq!(stdout(container, "echo still").await, "still\n");
    });
}

#[test]
fn killed_container_is_reported_to_running_and_later_commands() {
    with_engine(async |lab| {
        let folder = workspace();
        let container = lab.made(folder.path()).await;
        let command = container.start(sh("echo up; sleep 1000")).await.unwrap();
        read_until(&command, "up").await;
        lab.kill(&container.id()).await;
        let error = read(&command).await.unwrap_err();
        let expected = format!("the container `{}` has ended (it was killed)", container.name());
        assert_eq!(
            (error.kind, error.message.as_str()),
            (ErrorKind::Unavailable, expected.as_str())
        );
        assert_eq!(command.next().await.unwrap(), None);
        let error = container.start(sh("echo")).await.map(|_| ()).unwrap_err();
        assert_eq!(error.message, expected);
        container.close().await.unwrap();
    });
}

/// Kills a container and waits until its end is known.
async fn kill_in_mid_command(lab: &Lab, container: &Container) {
    let command = container.start(sh("echo up; sleep 1000")).await.unwrap();
    read_until(&command, "up").await;
    lab.kill(&container.id()).await;
    let error = read(&command).await.unwrap_err();
    assert!(error.message.contains("has ended (it was killed)"), "{error}");
}

#[test]
fn killed_container_is_created_again_after_its_end_was_reported() {
    with_engine(async |lab| {
        let folder = workspace();
        let container = lab.made(folder.path()).await;
        stdout(&container, "echo x > /workspace/kept; echo x > /tmp/jaato/kept").await;
        for round in ["-again-2", "-again-3"] {
            let (id, name) = (container.id(), container.name());
            kill_in_mid_command(&lab, &container).await;
            let error = container.start(sh("echo")).await.map(|_| ()).unwrap_err();
            assert_eq!(error.kind, ErrorKind::Unavailable, "{error}");
            assert!(error.hint.unwrap().contains("the next command makes a new one"));
            assert!(container.take_notes().is_empty());
            let kept = "cat /workspace/kept /tmp/jaato/kept";
            assert_eq!(stdout(&container, kept).await, "x\nx\n");
            assert!(container.name().ends_with(round) && container.id() != id);
            assert!(!lab.exists(&name).await, "the first container is gone");
            let [note] = &container.take_notes()[..] else { panic!("expected one note") };
            assert!(note.contains(&*name) && note.contains("was made again as"), "{note}");
        }
        let (id, tmp) = (container.id(), container.paths().tmp().host.clone());
        container.close().await.unwrap();
        assert!(!lab.exists(&id).await && !tmp.exists());
        let error = container.start(sh("echo")).await.map(|_| ()).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Unavailable, "it stays closed: {error}");
        assert!(container.start(sh("echo")).await.is_err());
    });
}

#[test]
fn killed_persistent_container_is_restarted_after_its_end_was_reported() {
    with_engine(async |lab| {
        let folder = workspace();
        let settings = DockerSettings { cleanup_on_exit: false, ..settings() };
        let container =
            Container::open(lab.engine.clone(), &settings, folder.path()).await.unwrap();
        stdout(&container, "echo x > /workspace/kept").await;
        let id = container.id();
        kill_in_mid_command(&lab, &container).await;
        assert!(container.start(sh("echo")).await.is_err());
        assert_eq!(stdout(&container, "cat kept").await, "x\n");
        assert_eq!(container.id(), id);
        assert_eq!(container.take_notes().len(), 1);
        container.close().await.unwrap();
        lab.remove(&id).await;
    });
}

async fn through(gate: &Gate, folder: &Path) -> Container {
    let engine = DockerEngine::connect(gate.address(), DEADLINE).await.unwrap();
    Container::open(engine, &settings(), folder).await.unwrap()
}

#[test]
fn engine_loss_during_a_command_leaves_no_container() {
    with_engine(async |lab: Lab| {
        let folder = workspace();
        let mut gate = Gate::open(address());
        let container = through(&gate, folder.path()).await;
        let name = container.name().to_owned();
        let command = container.start(sh("echo up; sleep 1000")).await.unwrap();
        read_until(&command, "up").await;
        gate.close().await;
        let error = read(&command).await.unwrap_err();
        assert_eq!((error.kind, error.retry), (ErrorKind::Unavailable, Retry::Temporary));
        assert!(
            error.message.contains("went away or was restarted while a command ran"),
            "{error}"
        );
        let error = container.start(sh("echo")).await.map(|_| ()).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Unavailable, "{error}");
        assert!(container.close().await.is_err());
        // The first process has lost its connection, so the container ended on its own.
        lab.until_gone(&name).await;
    });
}
