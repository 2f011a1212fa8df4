//! The operations `process.*`.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use jaato_plugin_sdk::__private::encode_value;
use jaato_plugin_sdk::Cx;
use jaato_types::execution::STREAM_KEY;
use jaato_types::process::{
    END, FORGET, LIST, OUTPUT, PREPARE, ProcessExit, ProcessRef, ProcessSignal, ProcessStartAnswer,
    ProcessWait, ProcessWaitAnswer, ProcessWrite, SIGNAL, SPAWN, START, Spawn, WAIT, WRITE,
};
use jaato_types::{Error, Result};
use serde_json::json;

use super::background::BackgroundProgram;
use super::exclusive_value::ExclusiveValue;
use super::frames::{
    empty_answer, encode_frame, parse_frame, parse_frame_with_bytes, unknown_handle_error,
    unknown_operation_error,
};
use super::handle_table::{EnvironmentHandleTable, EnvironmentProgram, OpenEnvironmentHandle};
use super::shell::{Program, Shell};
use super::traits::ExecutionEnvironment;

/// Answers a `process.*` operation.
pub(super) async fn answer_process_operation<E: ExecutionEnvironment>(
    cx: &Cx<E::State>,
    desk: &EnvironmentHandleTable<E>,
    operation: &str,
    frame: &[u8],
) -> Result<Vec<u8>> {
    let environment = desk.environment()?;
    let shell = environment.shell().ok_or_else(|| unknown_operation_error(operation))?;
    match operation {
        SPAWN => {
            desk.check_has_room()?;
            let (program, events) =
                shell.start(cx, with_default_deadline(desk, parse_frame(frame)?)).await?;
            let pid = program.pid();
            let process = desk.add_handle(OpenEnvironmentHandle::Program {
                program,
                events: ExclusiveValue::new(events),
            });
            encode_value(
                &json!({ "process": process, "pid": pid.unwrap_or(0), STREAM_KEY: process }),
            )
        }
        PREPARE => match shell.prepare(cx, with_default_deadline(desk, parse_frame(frame)?)).await?
        {
            Some(spawn) => encode_value(&spawn),
            None => Err(unknown_operation_error(operation)),
        },
        START => start_program(cx, desk, shell, parse_frame(frame)?).await,
        LIST => encode_value(&desk.background.list_programs()),
        OUTPUT => {
            let (output, bytes) = desk.background.read_output(parse_frame(frame)?)?;
            encode_frame(&output, &bytes)
        }
        WAIT => {
            let ProcessWait { process, timeout_ms, .. } = parse_frame(frame)?;
            let kept = desk
                .background
                .find_program(process)
                .ok_or_else(|| unknown_handle_error("program", process))?;
            encode_value(&ProcessWaitAnswer {
                exit: wait_for_exit(cx, &kept, timeout_ms).await?,
                ..ProcessWaitAnswer::default()
            })
        }
        WRITE => {
            let (ProcessWrite { process, close, .. }, bytes) = parse_frame_with_bytes(frame)?;
            let running = find_running_program(desk, process)?;
            if !bytes.is_empty() {
                running.program().write(bytes).await?;
            }
            if close {
                running.program().close_input().await?;
            }
            empty_answer()
        }
        SIGNAL => {
            let ProcessSignal { process, signal, .. } = parse_frame(frame)?;
            find_running_program(desk, process)?.program().signal(signal).await?;
            empty_answer()
        }
        END => {
            let ProcessRef { process, .. } = parse_frame(frame)?;
            find_running_program(desk, process)?.program().end().await?;
            empty_answer()
        }
        FORGET => {
            let ProcessRef { process, .. } = parse_frame(frame)?;
            let kept = desk.background.remove_program(process);
            let kept = kept.ok_or_else(|| unknown_handle_error("program", process))?;
            kept.program.end().await?;
            empty_answer()
        }
        other => Err(unknown_operation_error(other)),
    }
}

/// Applies the environment's default deadline to a program without one.
fn with_default_deadline<E: ExecutionEnvironment>(
    desk: &EnvironmentHandleTable<E>,
    spawn: Spawn,
) -> Spawn {
    Spawn { deadline_ms: spawn.deadline_ms.or(desk.shell_timeout_ms()), ..spawn }
}

async fn start_program<E: ExecutionEnvironment>(
    cx: &Cx<E::State>,
    desk: &EnvironmentHandleTable<E>,
    shell: &E::Shell,
    spawn: Spawn,
) -> Result<Vec<u8>> {
    desk.background.remove_ended_program()?;
    let label = spawn.label.clone().unwrap_or_else(|| {
        let words = std::iter::once(&spawn.program).chain(&spawn.args);
        words.map(String::as_str).collect::<Vec<_>>().join(" ")
    });
    let (program, events) = shell.start(cx, spawn).await?;
    let (pid, process) = (program.pid(), desk.unused_number());
    let reading = desk.background.add_program(process, (program, pid), events, label);
    if !desk.home.spawn(reading) {
        drop(desk.background.remove_program(process));
        return Err(Error::cancelled());
    }
    encode_value(&ProcessStartAnswer { process, pid, ..ProcessStartAnswer::default() })
}

/// Waits for an exit, up to the timeout.
async fn wait_for_exit<S, P>(
    cx: &Cx<S>,
    kept: &BackgroundProgram<P>,
    timeout_ms: Option<u64>,
) -> Result<Option<ProcessExit>> {
    let Some(timeout_ms) = timeout_ms else { return kept.wait_for_exit().await.map(Some) };
    let mut exit = pin!(kept.wait_for_exit());
    let mut sleep = pin!(cx.sleep(Duration::from_millis(timeout_ms)));
    poll_fn(|task| {
        if let Poll::Ready(exit) = exit.as_mut().poll(task) {
            return Poll::Ready(exit.map(Some));
        }
        sleep.as_mut().poll(task).map(|slept| slept.map(|()| None))
    })
    .await
}

/// A program of a call or a background program.
enum RunningEnvironmentProgram<E: ExecutionEnvironment> {
    OfCall(Arc<OpenEnvironmentHandle<E>>),
    InBackground(Arc<BackgroundProgram<EnvironmentProgram<E>>>),
}

impl<E: ExecutionEnvironment> RunningEnvironmentProgram<E> {
    fn program(&self) -> &EnvironmentProgram<E> {
        match self {
            Self::OfCall(open) => match &**open {
                OpenEnvironmentHandle::Program { program, .. } => program,
                _ => unreachable!("looked at when it was found"),
            },
            Self::InBackground(kept) => &kept.program,
        }
    }
}

fn find_running_program<E: ExecutionEnvironment>(
    desk: &EnvironmentHandleTable<E>,
    process: u64,
) -> Result<RunningEnvironmentProgram<E>> {
    if let Some(kept) = desk.background.find_program(process) {
        return Ok(RunningEnvironmentProgram::InBackground(kept));
    }
    match desk.find_handle(process) {
        Some(open) if matches!(&*open, OpenEnvironmentHandle::Program { .. }) => {
            Ok(RunningEnvironmentProgram::OfCall(open))
        }
        Some(_) | None => Err(unknown_handle_error("program", process)),
    }
}
