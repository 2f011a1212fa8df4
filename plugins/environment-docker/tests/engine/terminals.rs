//! Programs on a terminal.

use environment_docker::{Size, Spec, Terminal};
use jaato_plugin_sdk::types::process::Signal;

use super::support::{sh, with_engine, workspace};

const SIZE: Size = Size { rows: 33, columns: 101 };

async fn until(terminal: &Terminal, text: &str) -> String {
    let mut seen = Vec::new();
    loop {
        let shown = String::from_utf8_lossy(&seen).into_owned();
        if shown.contains(text) {
            return shown;
        }
        seen.extend(terminal.read().await.unwrap().expect("more"));
    }
}

async fn rest(terminal: &Terminal) -> Vec<u8> {
    let mut seen = Vec::new();
    while let Some(bytes) = terminal.read().await.unwrap() {
        seen.extend(bytes);
    }
    seen
}

#[test]
fn a_program_finds_a_terminal_of_that_size_and_sees_it_change() {
    with_engine(async |lab| {
        let folder = workspace();
        let container = lab.made(folder.path()).await;
        let spec = sh("stty size; read x; stty size; exit 4");
        let terminal = container.start_on_terminal(spec, SIZE).await.unwrap();
        assert_eq!(until(&terminal, "101\r\n").await, "33 101\r\n");
        terminal.resize(Size { rows: 5, columns: 7 }).await.unwrap();
        terminal.write(b"go\n").await.unwrap();
        assert_eq!(String::from_utf8(rest(&terminal).await).unwrap(), "go\r\n5 7\r\n");
        assert_eq!(terminal.code().await.unwrap(), 4);
        container.close().await.unwrap();
    });
}

#[test]
fn bytes_are_what_they_are() {
    with_engine(async |lab| {
        let folder = workspace();
        let container = lab.made(folder.path()).await;
        // Each piece by itself, so that one begins with what would be a frame's head elsewhere.
        let line = "stty raw -echo; printf ready; read x; printf '\\001\\000'; read x; printf '\\002\\377end'";
        let terminal = container.start_on_terminal(sh(line), SIZE).await.unwrap();
        until(&terminal, "ready").await;
        terminal.write(b"\n").await.unwrap();
        assert_eq!(terminal.read().await.unwrap().unwrap()[0], 1);
        terminal.write(b"\n").await.unwrap();
        let rest = rest(&terminal).await;
        assert!(rest.ends_with(b"\x02\xffend"), "{rest:?}");
        container.close().await.unwrap();
    });
}

#[test]
fn it_is_known_who_waits_for_input() {
    with_engine(async |lab| {
        let folder = workspace();
        let container = lab.made(folder.path()).await;
        let spec = Spec { words: vec!["cat".to_owned()], ..Spec::default() };
        let terminal = container.start_on_terminal(spec, SIZE).await.unwrap();
        loop {
            let foreground = terminal.foreground().await.unwrap().unwrap();
            assert_eq!(foreground.group, terminal.session());
            // It is a shell for a moment, and the kernel need not tell what it waits for.
            if foreground.name == "cat" && foreground.waits_for_input != Some(false) {
                break;
            }
        }
        terminal.end().await.unwrap();
        rest(&terminal).await;
        assert_eq!(terminal.foreground().await.unwrap(), None);
        container.close().await.unwrap();
    });
}

#[test]
fn a_signal_reaches_who_has_the_terminal() {
    with_engine(async |lab| {
        let folder = workspace();
        let container = lab.made(folder.path()).await;
        let line = "trap 'echo caught; exit 6' INT; echo up; while :; do sleep 0.01; done";
        let terminal = container.start_on_terminal(sh(line), SIZE).await.unwrap();
        until(&terminal, "up").await;
        assert!(terminal.signal(Signal::Interrupt).await.unwrap());
        until(&terminal, "caught").await;
        rest(&terminal).await;
        assert_eq!(terminal.code().await.unwrap(), 6);
        container.close().await.unwrap();
    });
}

#[test]
fn the_key_that_interrupts_works() {
    with_engine(async |lab| {
        let folder = workspace();
        let container = lab.made(folder.path()).await;
        let line = "trap 'echo caught; exit 6' INT; echo up; while :; do sleep 0.01; done";
        let terminal = container.start_on_terminal(sh(line), SIZE).await.unwrap();
        until(&terminal, "up").await;
        terminal.write(b"\x03").await.unwrap();
        until(&terminal, "caught").await;
        container.close().await.unwrap();
    });
}

#[test]
fn a_terminal_that_is_dropped_ends_its_program() {
    with_engine(async |lab| {
        let folder = workspace();
        let container = lab.made(folder.path()).await;
        let line = "trap '' HUP TERM; echo up; while :; do touch alive; sleep 0.01; done";
        let terminal = container.start_on_terminal(sh(line), SIZE).await.unwrap();
        until(&terminal, "up").await;
        drop(terminal);
        // Removed until nobody is there who makes it again.
        let look = "rm -f alive; sleep 0.1; [ -e alive ] && echo there; true";
        while !super::support::stdout(&container, look).await.is_empty() {}
        container.close().await.unwrap();
    });
}
