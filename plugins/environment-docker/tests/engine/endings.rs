//! Commands that are ended early.

use std::path::Path;
use std::time::{Duration, Instant};

use environment_docker::{Container, DockerEngine, DockerSettings};
use jaato_plugin_sdk::types::process::Signal;
use jaato_plugin_sdk::types::{ErrorKind, Retry};

use super::support::{
    DEADLINE, EngineGate, EngineLab, engine_address, read_to_end, read_until_text, shell_command,
    shell_stdout, temporary_workspace, test_settings, with_container, with_engine,
};

/// Starts several processes: a child, one in its own session, and a parent that ignores SIGTERM.
const FAMILY: &str = "trap '' TERM; sleep 1000 & setsid sh -c 'echo apart; sleep 1001' & \
                      echo partial; wait; wait";

async fn assert_family_is_gone(container: &Container) {
    // Each look is a command. Zombies that wait for their reaper have no command line.
    let look = "for p in /proc/[0-9]*/cmdline; do { IFS= read -r l <$p; } 2>/dev/null; \
                case $l in sleep*100*) echo $l;; esac; done";
    while !shell_stdout(container, look).await.is_empty() {}
}

#[test]
fn ending_a_command_ends_its_children_and_keeps_its_output() {
    with_container(async |container| {
        let command = container.start_command(shell_command(FAMILY)).await.unwrap();
        let mut seen = read_until_text(&command, "apart").await;
        if !seen.contains("partial") {
            seen += &read_until_text(&command, "partial").await;
        }
        let start = Instant::now();
        command.end_command().await.unwrap();
        let told = read_to_end(&command).await.unwrap();
        assert_eq!(told.code, Some(137));
        assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
        assert_family_is_gone(container).await;
    });
}

#[test]
fn ended_command_may_print_and_exit_on_sigterm() {
    with_container(async |container| {
        let line = "trap 'echo bye; exit 9' TERM; echo up; while :; do sleep 0.01; done";
        let command = container.start_command(shell_command(line)).await.unwrap();
        read_until_text(&command, "up").await;
        command.end_command().await.unwrap();
        let told = read_to_end(&command).await.unwrap();
        assert_eq!((told.stdout.as_str(), told.code), ("bye\n", Some(9)));
    });
}

#[test]
fn dropping_a_command_ends_it() {
    with_container(async |container| {
        let command = container.start_command(shell_command(FAMILY)).await.unwrap();
        read_until_text(&command, "apart").await;
        drop(command);
        assert_family_is_gone(container).await;
    });
}

#[test]
fn cancelled_start_leaves_no_command_running() {
    with_engine(async |lab| {
        let folder = temporary_workspace();
        let container = lab.make_container(folder.path()).await;
        let mut starting =
            Box::pin(container.start_command(shell_command("echo x > started; sleep 1000")));
        while !folder.path().join("started").exists() {
            if futures_util::poll!(&mut starting).is_ready() {
                break;
            }
            tokio::task::yield_now().await;
        }
        drop(starting);
        assert_family_is_gone(&container).await;
        container.close().await.unwrap();
    });
}

#[test]
fn signals_reach_the_command() {
    with_container(async |container| {
        let line = "trap 'echo one' USR1; trap 'exit 5' INT; echo up; while :; do :; done";
        let command = container.start_command(shell_command(line)).await.unwrap();
        read_until_text(&command, "up").await;
        assert!(command.signal_group(Signal::User1).await.unwrap());
        read_until_text(&command, "one").await;
        assert!(command.signal_group(Signal::Interrupt).await.unwrap());
        assert_eq!(read_to_end(&command).await.unwrap().code, Some(5));
        assert!(!command.signal_group(Signal::Interrupt).await.unwrap());
    });
}

#[test]
fn commands_cannot_kill_the_guardian_of_a_created_container() {
    with_container(async |container| {
        let command = container
            .start_command(shell_command("kill -9 1; kill -9 -1; echo alive"))
            .await
            .unwrap();
        read_to_end(&command).await.unwrap();
        assert_eq!(shell_stdout(container, "echo still").await, "still\n");
    });
}

#[test]
fn killed_container_is_reported_to_running_and_later_commands() {
    with_engine(async |lab| {
        let folder = temporary_workspace();
        let container = lab.make_container(folder.path()).await;
        let command = container.start_command(shell_command("echo up; sleep 1000")).await.unwrap();
        read_until_text(&command, "up").await;
        lab.kill_container(&container.id()).await;
        let error = read_to_end(&command).await.unwrap_err();
        let expected = format!("the container `{}` has ended (it was killed)", container.name());
        assert_eq!(
            (error.kind, error.message.as_str()),
            (ErrorKind::Unavailable, expected.as_str())
        );
        assert_eq!(command.next().await.unwrap(), None);
        let error = container.start_command(shell_command("echo")).await.map(|_| ()).unwrap_err();
        assert_eq!(error.message, expected);
        container.close().await.unwrap();
    });
}

/// Kills a container and waits until its end is known.
async fn kill_during_command(lab: &EngineLab, container: &Container) {
    let command = container.start_command(shell_command("echo up; sleep 1000")).await.unwrap();
    read_until_text(&command, "up").await;
    lab.kill_container(&container.id()).await;
    let error = read_to_end(&command).await.unwrap_err();
    assert!(error.message.contains("has ended (it was killed)"), "{error}");
}

#[test]
fn killed_container_is_created_again_after_its_end_was_reported() {
    with_engine(async |lab| {
        let folder = temporary_workspace();
        let container = lab.make_container(folder.path()).await;
        shell_stdout(&container, "echo x > /workspace/kept; echo x > /tmp/jaato/kept").await;
        for round in ["-again-2", "-again-3"] {
            let (id, name) = (container.id(), container.name());
            kill_during_command(&lab, &container).await;
            let error =
                container.start_command(shell_command("echo")).await.map(|_| ()).unwrap_err();
            assert_eq!(error.kind, ErrorKind::Unavailable, "{error}");
            assert!(error.hint.unwrap().contains("the next command makes a new one"));
            assert!(container.take_user_notes().is_empty());
            let kept = "cat /workspace/kept /tmp/jaato/kept";
            assert_eq!(shell_stdout(&container, kept).await, "x\nx\n");
            assert!(container.name().ends_with(round) && container.id() != id);
            assert!(!lab.container_exists(&name).await, "the first container is gone");
            let [note] = &container.take_user_notes()[..] else { panic!("expected one note") };
            assert!(note.contains(&*name) && note.contains("was made again as"), "{note}");
        }
        let (id, tmp) = (container.id(), container.paths().temporary_folder().host.clone());
        container.close().await.unwrap();
        assert!(!lab.container_exists(&id).await && !tmp.exists());
        let error = container.start_command(shell_command("echo")).await.map(|_| ()).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Unavailable, "it stays closed: {error}");
        assert!(container.start_command(shell_command("echo")).await.is_err());
    });
}

#[test]
fn killed_persistent_container_is_restarted_after_its_end_was_reported() {
    with_engine(async |lab| {
        let folder = temporary_workspace();
        let settings = DockerSettings { cleanup_on_exit: false, ..test_settings() };
        let container =
            Container::open_container(lab.engine.clone(), &settings, folder.path()).await.unwrap();
        shell_stdout(&container, "echo x > /workspace/kept").await;
        let id = container.id();
        kill_during_command(&lab, &container).await;
        assert!(container.start_command(shell_command("echo")).await.is_err());
        assert_eq!(shell_stdout(&container, "cat kept").await, "x\n");
        assert_eq!(container.id(), id);
        assert_eq!(container.take_user_notes().len(), 1);
        container.close().await.unwrap();
        lab.remove_container(&id).await;
    });
}

async fn container_through_gate(gate: &EngineGate, folder: &Path) -> Container {
    let engine = DockerEngine::connect_to_engine(gate.address(), DEADLINE).await.unwrap();
    Container::open_container(engine, &test_settings(), folder).await.unwrap()
}

#[test]
fn engine_loss_during_a_command_leaves_no_container() {
    with_engine(async |lab: EngineLab| {
        let folder = temporary_workspace();
        let mut gate = EngineGate::open(engine_address());
        let container = container_through_gate(&gate, folder.path()).await;
        let name = container.name().to_owned();
        let command = container.start_command(shell_command("echo up; sleep 1000")).await.unwrap();
        read_until_text(&command, "up").await;
        gate.close().await;
        let error = read_to_end(&command).await.unwrap_err();
        assert_eq!((error.kind, error.retry), (ErrorKind::Unavailable, Retry::Temporary));
        assert!(
            error.message.contains("went away or was restarted while a command ran"),
            "{error}"
        );
        let error = container.start_command(shell_command("echo")).await.map(|_| ()).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Unavailable, "{error}");
        assert!(container.close().await.is_err());
        // The first process has lost its connection, so the container ended on its own.
        lab.wait_until_gone(&name).await;
    });
}
