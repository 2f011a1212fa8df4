//! The JSON of execution environments: their lifecycle, background programs, terminals.

use std::fmt::Write as _;

use jaato_types::execution::*;
use jaato_types::process::*;
use jaato_types::terminal::{
    self, TerminalAsk, TerminalAskOutcome, TerminalEvent, TerminalRef, TerminalResize,
    TerminalScreen, TerminalShowAnswer, TerminalSignal, TerminalSpawn, TerminalSpawnAnswer,
    TerminalState, TerminalUserAction, TerminalWait, TerminalWrite, TerminalWriteAnswer,
};
use serde_json::json;

use super::{ShapeList, to_map};

/// Adds the lines of this module.
pub fn add_shapes(shapes: &mut ShapeList) {
    add_environment_shapes(shapes);
    add_program_shapes(shapes);
    add_terminal_shapes(shapes);
}

fn add_environment_shapes(shapes: &mut ShapeList) {
    shapes.start_section("execution environments");
    writeln!(shapes.text, "{SETUP} {TEARDOWN} {DESCRIBE} {STREAM_NEXT} {STREAM_CLOSE}").unwrap();
    writeln!(shapes.text, "{STREAM_KEY} {STREAM_END}").unwrap();
    shapes.add(&EnvironmentSpec {
        name: "docker".to_owned(),
        title: "a container".to_owned(),
        options: [("image".to_owned(), "image".to_owned())].into(),
    });
    let mut setup = EnvironmentSetup::default();
    setup.id = "e".to_owned();
    setup.workspace = "/w/sub".to_owned();
    setup.root = "/w".to_owned();
    setup.options = to_map(json!({ "image": "moon" }));
    shapes.add(&setup);
    shapes.add(&EnvironmentFacts {
        name: "docker".to_owned(),
        is_host: true,
        working_directory: "/workspace".to_owned(),
        allowed_paths: vec![AllowedPath { path: "/workspace".to_owned(), read_only: true }],
        temporary_directory: Some("/tmp/j".to_owned()),
        shell_timeout_ms: 5,
        confines_commands: true,
        os: Some(OsFacts {
            kind: "linux".to_owned(),
            name: "Linux".to_owned(),
            release: "6".to_owned(),
            friendly_name: "Moon Linux".to_owned(),
        }),
        shell: Some(ShellFacts { name: "sh".to_owned(), path: "/bin/sh".to_owned() }),
        machine: Some("x86_64".to_owned()),
        user: Some("1:1".to_owned()),
        details: to_map(json!({ "image": "moon" })),
    });
    shapes.add(&StreamNext { stream: 1 });
    shapes.add(&StreamClose { stream: 1 });
}

fn add_program_shapes(shapes: &mut ShapeList) {
    shapes.start_section("programs that outlive a call");
    writeln!(shapes.text, "{START} {LIST} {} {WAIT} {FORGET}", OUTPUT).unwrap();
    shapes.add(&ProcessStartAnswer { process: 1, pid: Some(2) });
    shapes.add(&ProcessFacts {
        process: 1,
        pid: Some(2),
        label: "moon".to_owned(),
        age_ms: 3,
        printed: 4,
        exit: Some(ProcessExit::default()),
    });
    shapes.add(&ProcessOutputRead { process: 1, from: 2, bytes_max: Some(3) });
    shapes.add(&ProcessOutput { from: 2, printed: 4, exit: Some(ProcessExit::default()) });
    shapes.add(&ProcessWait { process: 1, timeout_ms: Some(5) });
    shapes.add(&ProcessWaitAnswer { exit: Some(ProcessExit::default()) });
    writeln!(shapes.text, "{SPAWN_ON_TERMINAL} {PREPARE}").unwrap();
    let spawn = Spawn::program("sh").directory("/w");
    shapes.add(&SpawnOnTerminal { spawn, terminal: "/dev/pts/3".to_owned() });
}

#[expect(clippy::too_many_lines, reason = "a list")]
fn add_terminal_shapes(shapes: &mut ShapeList) {
    shapes.start_section("terminals");
    let names = [
        terminal::SPAWN,
        terminal::WRITE,
        terminal::RESIZE,
        terminal::SIGNAL,
        terminal::STATE,
        terminal::END,
    ];
    writeln!(shapes.text, "{}", names.join(" ")).unwrap();
    shapes.add(&TerminalSpawn {
        program: "sh".to_owned(),
        args: vec!["-i".to_owned()],
        directory: Some("/w".to_owned()),
        variables: [("A".to_owned(), "b".to_owned())].into(),
        rows: 24,
        columns: 80,
        label: Some("a shell".to_owned()),
    });
    shapes.add(&TerminalSpawnAnswer { terminal: 1, pid: Some(2), handle: 3 });
    shapes.add(&TerminalRef { terminal: 1 });
    shapes.add(&TerminalWrite { terminal: 1, wait_ms: None });
    shapes.add(&TerminalWrite { terminal: 1, wait_ms: Some(2) });
    shapes.add(&TerminalWriteAnswer { bytes: 3 });
    shapes.add(&TerminalResize { terminal: 1, rows: 2, columns: 3 });
    shapes.add(&TerminalSignal { terminal: 1, signal: Signal::Interrupt });
    shapes.add(&TerminalEvent::Output);
    shapes.add(&TerminalEvent::Exited(ProcessExit::default()));
    shapes.add(&TerminalState {
        waits: Some(TerminalWait::Reading),
        echoes: Some(true),
        reads_lines: Some(true),
        foreground_pid: Some(2),
        foreground_name: Some("sh".to_owned()),
        waiter_pid: Some(2),
        waited_us: Some(3),
        waited_again: Some(4),
        wait_ms: Some(6),
        is_pause: Some(false),
        has_input: Some(false),
        has_output: Some(true),
        shown_bytes: Some(5),
    });
    shapes.add_all(&[
        TerminalWait::Busy,
        TerminalWait::Reading,
        TerminalWait::ReadingForAWhile,
        TerminalWait::Relaying,
        TerminalWait::Unknown,
    ]);
    writeln!(shapes.text, "{}", [terminal::SHOW, terminal::ASK, terminal::WATCH].join(" "))
        .unwrap();
    shapes.add(&TerminalScreen {
        terminal: 1,
        name: "session_0".to_owned(),
        command: "bash".to_owned(),
        rows: 2,
        columns: 3,
        cursor: Some((0, 2)),
        is_full_screen: true,
        lines: vec!["$ ".to_owned()],
        is_alive: true,
    });
    shapes.add(&TerminalShowAnswer { watchers: 1 });
    shapes.add(&TerminalAsk {
        terminal: 1,
        name: "session_0".to_owned(),
        command: "sudo -s".to_owned(),
        prompt: "password: ".to_owned(),
    });
    shapes.add(&TerminalAskOutcome::Typed);
    shapes.add(&TerminalAskOutcome::Declined);
    shapes.add(&TerminalAskOutcome::Nobody { reason: "r".to_owned() });
    shapes.add(&TerminalUserAction::Watched { terminal: 1, watchers: 2 });
    shapes.add(&TerminalUserAction::Typed { terminal: 1, bytes: 3 });
}
