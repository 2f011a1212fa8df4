//! Checks of the service `process`: programs start, can be read to their exit, and end with their
//! call.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use jaato_plugin_api::abi::abi_stable::std_types::{ROption, RResult};
use jaato_types::process::{
    END, OutputStream, ProcessEvent, ProcessExit, ProcessRef, ProcessSignal, ProcessWrite,
    RUNNING_PER_CALL_MAX, SIGNAL, SPAWN, Signal, Spawn, SpawnAnswer, WRITE,
};
use jaato_types::{Error, ErrorKind, Frame};
use serde_json::{Value, json};

use super::HostUnderTest;
use super::body::{
    DEADLINE, FOR_EVER_MS, SharedContext, call_service, encode_frame, read_answer, run_body,
    start_body,
};

/// The output of a program and its exit.
#[derive(Debug, Default, PartialEq)]
struct ProgramRun {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    exit: ProcessExit,
}

async fn spawn_program(context: &SharedContext, spawn: &Spawn) -> Result<SpawnAnswer, Error> {
    let answer = call_service(context, SPAWN, spawn).await?;
    Frame::read(&answer).map_err(|error| Error::failed(error.to_string()))
}

/// Reads one frame of a program. Returns `None` at the end.
async fn next_event(
    context: &SharedContext,
    handle: u64,
) -> Result<Option<(ProcessEvent, Vec<u8>)>, Error> {
    let wrong = |error: jaato_types::FrameError| Error::failed(error.to_string());
    match context.next(handle).await {
        RResult::ROk(ROption::RNone) => Ok(None),
        RResult::ROk(ROption::RSome(frame)) => {
            let frame = Frame::parse(&frame).map_err(wrong)?;
            Ok(Some((frame.json().map_err(wrong)?, frame.bytes.to_vec())))
        }
        RResult::RErr(error) => Err(super::body::read_error(&error)),
    }
}

/// Reads a program to its end.
async fn read_program(context: &SharedContext, handle: u64) -> Result<ProgramRun, Error> {
    let mut ran = ProgramRun::default();
    let mut has_ended = false;
    while let Some((event, bytes)) = next_event(context, handle).await? {
        if has_ended {
            return Err(Error::failed("something comes after the exit"));
        }
        match event {
            ProcessEvent::Output { stream: OutputStream::Stdout, .. } => ran.stdout.extend(bytes),
            ProcessEvent::Output { stream: OutputStream::Stderr, .. } => ran.stderr.extend(bytes),
            ProcessEvent::Exited(exit) => (ran.exit, has_ended) = (exit, true),
            ProcessEvent::Unknown => return Err(Error::failed("unknown process event")),
        }
    }
    if has_ended { Ok(ran) } else { Err(Error::failed("it never exited")) }
}

async fn run_to_end(context: &SharedContext, program: &Spawn) -> Result<ProgramRun, Error> {
    let spawned = spawn_program(context, program).await?;
    read_program(context, spawned.handle).await
}

/// Runs a program in its own call.
#[track_caller]
fn run_program(host: &dyn HostUnderTest, program: Spawn) -> ProgramRun {
    let (sender, receiver) = mpsc::channel();
    let ended = run_body(host, move |context| async move {
        // The check may have failed and ended.
        let _ = sender.send(run_to_end(&context, &program).await);
        Ok(encode_frame(&()))
    });
    assert!(ended.answer.is_ok(), "{ended:?}");
    match receiver.recv_timeout(DEADLINE) {
        Ok(Ok(ran)) => ran,
        other => panic!("{other:?}"),
    }
}

fn exit_code(code: i32) -> ProcessExit {
    ProcessExit { code: Some(code), ..ProcessExit::default() }
}

fn exit_signal(number: i32) -> ProcessExit {
    ProcessExit { signal: Some(number), ..ProcessExit::default() }
}

pub(super) fn outputs_and_exits_are_reported(host: &dyn HostUnderTest) {
    let script = "printf out; printf err >&2; exit 3";
    let expected =
        ProgramRun { stdout: b"out".to_vec(), stderr: b"err".to_vec(), exit: exit_code(3) };
    assert_eq!(run_program(host, Spawn::shell(script)), expected);
    assert_eq!(run_program(host, Spawn::shell("kill -9 $$")).exit, exit_signal(9));
    let words = Spawn::program("printf").arg("%s|").arg("a b").arg("$HOME");
    assert_eq!(run_program(host, words).stdout, b"a b|$HOME|");
}

pub(super) fn program_gets_its_spawn_settings(host: &dyn HostUnderTest) {
    let script = "printf '%s ' \"$MOON\" \"$(basename \"$PWD\")\"; printf %s \"${PATH##*:}\"";
    let mut program = Spawn::shell(script).variable("MOON", "full").directory("/usr");
    program.extra_paths = vec!["/extra/bin".to_owned()];
    assert_eq!(run_program(host, program).stdout, b"full usr /extra/bin");
    let listed = run_program(host, Spawn::program("env")).stdout;
    let listed = String::from_utf8_lossy(&listed).into_owned();
    let names: Vec<&str> =
        listed.lines().filter_map(|line| Some(line.split_once('=')?.0)).collect();
    assert!(names.contains(&"JAATO_SESSION_ID"), "{names:?}");
    let secret = names.iter().find(|name| name.contains("TOKEN") || name.contains("KEY"));
    assert_eq!(secret, None);
}

pub(super) fn input_is_closed_or_a_pipe(host: &dyn HostUnderTest) {
    assert_eq!(
        run_program(host, Spawn::program("cat")),
        ProgramRun { exit: exit_code(0), ..ProgramRun::default() }
    );
    let ended = run_body(host, |context| async move {
        let spawned = spawn_program(&context, &Spawn::program("cat").piped_stdin()).await?;
        let write = |close| {
            write_frame(
                ProcessWrite { process: spawned.process, close, ..ProcessWrite::default() },
                b"moon",
            )
        };
        read_answer(context.service(WRITE.into(), write(false).into()).await)?;
        read_answer(context.service(WRITE.into(), write(true).into()).await)?;
        let after = read_answer(context.service(WRITE.into(), write(true).into()).await);
        let ran = read_program(&context, spawned.handle).await?;
        Ok(encode_frame(&json!({ "out": ran.stdout, "after": after.map_err(|error| error.kind) })))
    });
    let answer: Value = ended
        .answer
        .map(|answer| Frame::read(&answer).unwrap_or_default())
        .unwrap_or_else(|error| panic!("{}", super::body::read_error(&error)));
    assert_eq!(answer, json!({ "out": b"moonmoon".to_vec(), "after": { "Err": "io" } }));
    let ended = run_body(host, |context| async move {
        let spawned = spawn_program(&context, &Spawn::program("cat")).await?;
        let write = write_frame(
            ProcessWrite { process: spawned.process, close: false, ..ProcessWrite::default() },
            b"moon",
        );
        read_answer(context.service(WRITE.into(), write.into()).await)
    });
    assert_refused(ended.answer, &[ErrorKind::InvalidArguments]);
}

fn write_frame(write: ProcessWrite, bytes: &[u8]) -> Vec<u8> {
    Frame::write_with_bytes(&write, bytes)
        .unwrap_or_else(|error| unreachable!("a small value is a frame: {error}"))
}

#[track_caller]
fn assert_refused(answer: Result<Vec<u8>, Vec<u8>>, kinds: &[ErrorKind]) {
    let found = answer.map_err(|frame| super::body::read_error(&frame).kind);
    assert!(found.as_ref().is_err_and(|kind| kinds.contains(kind)), "{found:?}, not {kinds:?}");
}

pub(super) fn start_failure_is_reported(host: &dyn HostUnderTest) {
    let folder = tempfile::tempdir()
        .unwrap_or_else(|error| unreachable!("there is a folder for temporary files: {error}"));
    let missing = folder.path().join("missing").display().to_string();
    let cases = [
        (Spawn::program("no-such-program-anywhere"), ErrorKind::NotFound),
        (Spawn::program("ls").directory(missing), ErrorKind::NotFound),
        (Spawn::program("ls").arg("a\0b"), ErrorKind::InvalidArguments),
    ];
    for (program, kind) in cases {
        let ended = run_body(host, move |context| async move {
            spawn_program(&context, &program).await.map(|spawned| encode_frame(&spawned))
        });
        assert_refused(ended.answer, &[kind]);
    }
    let ended = run_body(host, |context| async move {
        call_service(&context, SPAWN, &json!({ "program": 1 })).await
    });
    assert_refused(ended.answer, &[ErrorKind::InvalidArguments]);
    for operation in [END, WRITE, SIGNAL] {
        let ended = run_body(host, move |context| async move {
            let request = json!({ "process": 4_000_000_000_u64, "signal": "kill" });
            call_service(&context, operation, &request).await
        });
        assert_refused(ended.answer, &[ErrorKind::NotFound]);
    }
}

pub(super) fn programs_are_signalled_and_ended(host: &dyn HostUnderTest) {
    let ended = run_body(host, |context| async move {
        let asleep = Spawn::program("sleep").arg("300");
        let signalled = spawn_program(&context, &asleep).await?;
        let request = ProcessSignal {
            process: signalled.process,
            signal: Signal::Interrupt,
            ..ProcessSignal::default()
        };
        call_service(&context, SIGNAL, &request).await?;
        let signalled = read_program(&context, signalled.handle).await?.exit;
        let asked = spawn_program(&context, &asleep).await?;
        call_service(
            &context,
            END,
            &ProcessRef { process: asked.process, ..ProcessRef::default() },
        )
        .await?;
        let asked = read_program(&context, asked.handle).await?.exit;
        // A program that ignores the signal gets 50 ms.
        let deaf = Spawn::shell("trap '' TERM; echo; while :; do sleep 1; done");
        let deaf = spawn_program(&context, &deaf).await?;
        next_event(&context, deaf.handle).await?;
        call_service(&context, END, &ProcessRef { process: deaf.process, ..ProcessRef::default() })
            .await?;
        let deaf = read_program(&context, deaf.handle).await?.exit;
        Ok(encode_frame(&(signalled, asked, deaf)))
    });
    let exits: Vec<ProcessExit> =
        ended.answer.map(|answer| Frame::read(&answer).unwrap_or_default()).unwrap_or_default();
    assert_eq!(exits, [exit_signal(2), exit_signal(15), exit_signal(9)]);
}

pub(super) fn a_deadline_ends_a_program(host: &dyn HostUnderTest) {
    let late = run_program(host, Spawn::shell("printf so; sleep 300").deadline_ms(200));
    assert_eq!((late.stdout.as_slice(), late.exit.timed_out), (&b"so"[..], true));
    assert_eq!(late.exit.code, None);
    let early = run_program(host, Spawn::shell("exit 0").deadline_ms(600_000));
    assert_eq!(early.exit, exit_code(0));
}

pub(super) fn all_output_is_read(host: &dyn HostUnderTest) {
    let large =
        run_program(host, Spawn::shell("head -c 3000000 /dev/zero; head -c 100000 /dev/zero >&2"));
    assert_eq!((large.stdout.len(), large.stderr.len()), (3_000_000, 100_000));
    assert_eq!(large.exit, exit_code(0));
    // The program has ended before its pipe is read.
    let ended = run_body(host, |context| async move {
        let spawned = spawn_program(&context, &Spawn::shell("head -c 60000 /dev/zero")).await?;
        context.sleep_ms(100).await;
        Ok(encode_frame(&read_program(&context, spawned.handle).await?.stdout.len()))
    });
    assert_eq!(ended.answer, Ok(encode_frame(&60_000)));
}

pub(super) fn call_ends_at_exit_despite_open_pipes(host: &dyn HostUnderTest) {
    let begin = Instant::now();
    let left = run_program(host, Spawn::shell("sleep 300 & printf done"));
    assert!(begin.elapsed() < DEADLINE, "{:?}", begin.elapsed());
    assert_eq!((left.stdout.as_slice(), left.exit.code), (&b"done"[..], Some(0)));
    let names: Vec<_> =
        left.exit.left_running.iter().map(|process| process.name.as_str()).collect();
    if cfg!(target_os = "linux") {
        assert_eq!(names, ["sleep"]);
    }
    // A program that prints without end does not hide the exit.
    let noisy = run_program(host, Spawn::shell("(while :; do echo noise; done) & exit 4"));
    assert_eq!(noisy.exit.code, Some(4));
}

pub(super) fn leftover_processes_can_be_ended(host: &dyn HostUnderTest) {
    if !cfg!(target_os = "linux") {
        return;
    }
    let ended = run_body(host, |context| async move {
        let spawned = spawn_program(&context, &Spawn::shell("sleep 300 & exit 4")).await?;
        let left = read_program(&context, spawned.handle).await?.exit.left_running;
        let [sleep] = &left[..] else { return Err(Error::failed(format!("{left:?}"))) };
        // Another program that runs at the same time changes nothing.
        run_to_end(&context, &Spawn::program("true")).await?;
        let number = ProcessRef { process: spawned.process, ..ProcessRef::default() };
        call_service(&context, END, &number).await?;
        let wait = format!("while kill -0 {}; do sleep 0.01; done; exit 6", sleep.pid);
        let gone = run_to_end(&context, &Spawn::shell(wait)).await?;
        // The process cannot be ended twice.
        let again = call_service(&context, END, &number).await;
        let is_known = again.is_ok() || again.is_err_and(|error| error.kind == ErrorKind::NotFound);
        Ok(encode_frame(&(gone.exit.code, is_known)))
    });
    assert_eq!(ended.answer, Ok(encode_frame(&(6, true))));
}

pub(super) fn programs_end_with_their_call(host: &dyn HostUnderTest) {
    for how in ["cancel", "answer", "close"] {
        let (sender, receiver) = mpsc::channel();
        let call = start_body(host, move |context| async move {
            let spawned = spawn_program(&context, &Spawn::program("sleep").arg("300")).await?;
            let _ = sender.send(spawned.pid);
            match how {
                "cancel" => drop(next_event(&context, spawned.handle).await),
                "close" => {
                    context.close(spawned.handle);
                    context.sleep_ms(FOR_EVER_MS).await;
                }
                _ => {}
            }
            Ok(encode_frame(&()))
        });
        let Ok(pid) = receiver.recv_timeout(DEADLINE) else { panic!("it does not start ({how})") };
        match how {
            "cancel" => call.cancel(),
            "close" => {
                assert_process_ends(pid, how);
                call.cancel();
            }
            _ => drop(call.wait()),
        }
        assert_process_ends(pid, how);
    }
}

/// Waits until a process is gone, or is a zombie that waits to be reaped.
#[track_caller]
fn assert_process_ends(pid: u32, how: &str) {
    let bound = Instant::now() + DEADLINE;
    let stat = format!("/proc/{pid}/stat");
    let lives = || {
        let stat = std::fs::read_to_string(&stat).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
    };
    while lives() {
        assert!(Instant::now() < bound, "process {pid} outlives its call ({how})");
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub(super) fn too_many_programs_are_refused(host: &dyn HostUnderTest) {
    let ended = run_body(host, |context| async move {
        let asleep = Spawn::program("sleep").arg("300");
        let mut first = None;
        for _ in 0..RUNNING_PER_CALL_MAX {
            let spawned = spawn_program(&context, &asleep).await?;
            first.get_or_insert(spawned);
        }
        let refused = spawn_program(&context, &asleep).await.map_err(|error| error.kind).err();
        // The end of one program makes room for another.
        if let Some(first) = first {
            call_service(
                &context,
                END,
                &ProcessRef { process: first.process, ..ProcessRef::default() },
            )
            .await?;
            read_program(&context, first.handle).await?;
            context.close(first.handle);
        }
        let again = spawn_program(&context, &asleep).await.is_ok();
        Ok(encode_frame(&(refused, again)))
    });
    assert_eq!(ended.answer, Ok(encode_frame(&(ErrorKind::LimitReached, true))));
}

pub(super) fn programs_of_other_calls_are_unreachable(host: &dyn HostUnderTest) {
    let (sender, receiver) = mpsc::channel();
    let call = start_body(host, move |context| async move {
        let spawned = spawn_program(&context, &Spawn::program("sleep").arg("300")).await?;
        let _ = sender.send(spawned.process);
        drop(next_event(&context, spawned.handle).await);
        Ok(encode_frame(&()))
    });
    let Ok(process) = receiver.recv_timeout(DEADLINE) else { panic!("nothing came") };
    let ended = run_body(host, move |context| async move {
        call_service(&context, END, &ProcessRef { process, ..ProcessRef::default() }).await
    });
    assert_refused(ended.answer, &[ErrorKind::NotFound]);
    call.cancel();
}
