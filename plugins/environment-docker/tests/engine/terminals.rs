//! Programs on a terminal.

use std::time::Duration;

use environment_docker::{
    Container, ContainerCommandSpec, ContainerTerminal, DockerSettings, TerminalObservation,
    TerminalSize,
};
use jaato_plugin_sdk::types::process::Signal;
use jaato_plugin_sdk::types::terminal::TerminalWait;

use super::support::{
    shell_command, temporary_workspace, test_settings, with_container, with_engine,
};

const SIZE: TerminalSize = TerminalSize { rows: 33, columns: 101 };

async fn read_until_text(terminal: &ContainerTerminal, text: &str) -> String {
    let mut seen = Vec::new();
    loop {
        let shown = String::from_utf8_lossy(&seen).into_owned();
        if shown.contains(text) {
            return shown;
        }
        seen.extend(terminal.read_output().await.unwrap().expect("more"));
    }
}

async fn read_rest(terminal: &ContainerTerminal) -> Vec<u8> {
    let mut seen = Vec::new();
    while let Some(bytes) = terminal.read_output().await.unwrap() {
        seen.extend(bytes);
    }
    seen
}

#[test]
fn program_sees_the_terminal_size_and_later_resizes() {
    with_container(async |container| {
        let spec = shell_command("stty size; read x; stty size; exit 4");
        let terminal = container.start_on_terminal(spec, SIZE).await.unwrap();
        assert_eq!(read_until_text(&terminal, "101\r\n").await, "33 101\r\n");
        terminal.resize_terminal(TerminalSize { rows: 5, columns: 7 }).await.unwrap();
        terminal.write_input(b"go\n").await.unwrap();
        assert_eq!(String::from_utf8(read_rest(&terminal).await).unwrap(), "go\r\n5 7\r\n");
        assert_eq!(terminal.wait_for_exit().await.unwrap().0, 4);
    });
}

#[test]
fn terminal_bytes_are_passed_unchanged() {
    with_container(async |container| {
        // Separate chunks, so that one begins with bytes that look like a frame's head.
        let line = "stty raw -echo; printf ready; read x; printf '\\001\\000'; read x; printf '\\002\\377end'";
        let terminal = container.start_on_terminal(shell_command(line), SIZE).await.unwrap();
        read_until_text(&terminal, "ready").await;
        terminal.write_input(b"\n").await.unwrap();
        assert_eq!(terminal.read_output().await.unwrap().unwrap()[0], 1);
        terminal.write_input(b"\n").await.unwrap();
        let rest = read_rest(&terminal).await;
        assert!(rest.ends_with(b"\x02\xffend"), "{rest:?}");
    });
}

#[test]
fn foreground_process_that_waits_for_input_is_reported() {
    with_container(async |container| {
        let spec = ContainerCommandSpec {
            words: vec!["cat".to_owned()],
            ..ContainerCommandSpec::default()
        };
        let terminal = container.start_on_terminal(spec, SIZE).await.unwrap();
        loop {
            let foreground = terminal.foreground_process().await.unwrap().unwrap();
            assert_eq!(foreground.group, terminal.session());
            // The process is a shell at first, and the kernel may not show what it waits for.
            if foreground.name == "cat" && foreground.waits_for_input != Some(false) {
                break;
            }
        }
        terminal.end_program().await.unwrap();
        read_rest(&terminal).await;
        assert_eq!(terminal.foreground_process().await.unwrap(), None);
    });
}

#[test]
fn signal_reaches_the_foreground_process() {
    with_container(async |container| {
        let line = "trap 'echo caught; exit 6' INT; echo up; while :; do sleep 0.01; done";
        let terminal = container.start_on_terminal(shell_command(line), SIZE).await.unwrap();
        read_until_text(&terminal, "up").await;
        assert!(terminal.signal_foreground(Signal::Interrupt).await.unwrap());
        read_until_text(&terminal, "caught").await;
        read_rest(&terminal).await;
        assert_eq!(terminal.wait_for_exit().await.unwrap().0, 6);
    });
}

#[test]
fn ctrl_c_interrupts_the_foreground_process() {
    with_container(async |container| {
        let line = "trap 'echo caught; exit 6' INT; echo up; while :; do sleep 0.01; done";
        let terminal = container.start_on_terminal(shell_command(line), SIZE).await.unwrap();
        read_until_text(&terminal, "up").await;
        terminal.write_input(b"\x03").await.unwrap();
        read_until_text(&terminal, "caught").await;
    });
}

#[test]
fn a_terminal_that_is_dropped_ends_its_program() {
    with_container(async |container| {
        let line = "trap '' HUP TERM; echo up; while :; do touch alive; sleep 0.01; done";
        let terminal = container.start_on_terminal(shell_command(line), SIZE).await.unwrap();
        read_until_text(&terminal, "up").await;
        drop(terminal);
        // Removes the file until no process creates it again.
        let look = "rm -f alive; sleep 0.1; [ -e alive ] && echo there; true";
        while !super::support::shell_stdout(container, look).await.is_empty() {}
    });
}

/// Looks until a process waits in this way.
async fn observe_until_waiting(
    terminal: &ContainerTerminal,
    wait: TerminalWait,
) -> TerminalObservation {
    loop {
        let sight = terminal.observe_foreground().await.unwrap().expect("it runs");
        if sight.waiting.waits == Some(wait) {
            return sight;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[test]
fn waiting_and_busy_programs_are_distinguished_for_any_user() {
    with_engine(async |lab| {
        for user in [None, Some("1234:1234".to_owned())] {
            let folder = temporary_workspace();
            let settings = DockerSettings { user, ..test_settings() };
            let container = Container::open_container(lab.engine.clone(), &settings, folder.path());
            let container = container.await.unwrap();
            let line = "read x; echo got $x; sleep 300";
            let terminal = container.start_on_terminal(shell_command(line), SIZE).await.unwrap();
            let sight = observe_until_waiting(&terminal, TerminalWait::Reading).await;
            assert_eq!(sight.waiting.name.as_deref(), Some("sh"));
            let waiter = sight.waiting.waiter.unwrap();
            assert_eq!(Some(waiter.pid), sight.foreground);
            // Without `stty`, the echo mode is unknown.
            assert!(sight.modes.is_none_or(|modes| modes == (true, true)));
            terminal.write_input(b"moon\n").await.unwrap();
            read_until_text(&terminal, "got moon").await;
            observe_until_waiting(&terminal, TerminalWait::Busy).await;
            terminal.end_program().await.unwrap();
            container.close().await.unwrap();
        }
    });
}

#[test]
fn observer_shell_ends_with_the_session() {
    with_engine(async |lab| {
        let folder = temporary_workspace();
        let container = lab.make_container(folder.path()).await;
        let terminal = container.start_on_terminal(shell_command("read x"), SIZE).await.unwrap();
        observe_until_waiting(&terminal, TerminalWait::Reading).await;
        let id = container.id().to_owned();
        drop(terminal);
        container.close().await.unwrap();
        lab.wait_until_gone(&id).await;
    });
}
