//! Answers the host for an execution environment: its lifecycle, its streams, and the other
//! operations.

use jaato_plugin_sdk::__private::encode_value;
use jaato_plugin_sdk::Cx;
use jaato_plugin_sdk::process::ProcessUpdate;
use jaato_plugin_sdk::terminal::TerminalUpdate;
use jaato_types::execution::{
    DESCRIBE, EnvironmentSetup, SETUP, STREAM_CLOSE, STREAM_END, STREAM_NEXT, StreamClose,
    StreamNext, TEARDOWN,
};
use jaato_types::process::ProcessEvent;
use jaato_types::terminal::TerminalEvent;
use jaato_types::{Error, ErrorKind, Result};

use super::frames::{
    empty_answer, encode_frame, parse_frame, unknown_handle_error, unknown_operation_error,
};
use super::handle_table::{EnvironmentHandleTable, OpenEnvironmentHandle};
use super::shell::{Program, ProgramEvents};
use super::terminals::{Terminal, TerminalEvents};
use super::traits::ExecutionEnvironment;
use super::{file_calls, program_calls, terminal_calls};

/// Answers one operation.
pub(super) async fn answer_operation<E: ExecutionEnvironment>(
    cx: &Cx<E::State>,
    desk: &EnvironmentHandleTable<E>,
    operation: &str,
    frame: &[u8],
) -> Result<Vec<u8>> {
    match operation {
        SETUP => set_up_environment(cx, desk, parse_frame(frame)?).await,
        TEARDOWN => tear_down_environment(cx, desk).await,
        DESCRIBE => encode_value(&desk.environment()?.facts(cx).await?),
        STREAM_NEXT => {
            let StreamNext { stream, .. } = parse_frame(frame)?;
            next_item(cx, desk, stream).await
        }
        STREAM_CLOSE => {
            let StreamClose { stream, .. } = parse_frame(frame)?;
            desk.close_handle(stream);
            empty_answer()
        }
        files if files.starts_with("files.") => {
            file_calls::answer_file_operation(cx, desk, files, frame).await
        }
        process if process.starts_with("process.") => {
            program_calls::answer_process_operation(cx, desk, process, frame).await
        }
        terminal if terminal.starts_with("terminal.") => {
            terminal_calls::answer_terminal_operation(cx, desk, terminal, frame).await
        }
        other => Err(unknown_operation_error(other)),
    }
}

async fn set_up_environment<E: ExecutionEnvironment>(
    cx: &Cx<E::State>,
    desk: &EnvironmentHandleTable<E>,
    setup: EnvironmentSetup,
) -> Result<Vec<u8>> {
    if desk.environment().is_ok() {
        return Err(Error::new(ErrorKind::Conflict, "the execution environment is already set up"));
    }
    let environment = desk.set_environment(E::setup(cx, setup).await?);
    match environment.facts(cx).await {
        Ok(facts) => {
            desk.store_facts(&facts);
            encode_value(&facts)
        }
        Err(error) => {
            // If the facts are unknown, the environment must not be used.
            drop(desk.take_all());
            environment.teardown(cx).await.map_err(|left| left.with_hint(error.to_string()))?;
            Err(error)
        }
    }
}

/// Ends everything that is open, all at the same time, and then the environment.
async fn tear_down_environment<E: ExecutionEnvironment>(
    cx: &Cx<E::State>,
    desk: &EnvironmentHandleTable<E>,
) -> Result<Vec<u8>> {
    let (environment, open) = desk.take_all();
    for kept in desk.background.take_programs() {
        // A program that cannot be ended here ends with the environment or with the host's
        // guardian.
        let _ = kept.program.end().await;
    }
    for opened in open {
        let _ = match &*opened {
            OpenEnvironmentHandle::Program { program, .. } => program.end().await,
            OpenEnvironmentHandle::Terminal { terminal, .. } => terminal.end().await,
            OpenEnvironmentHandle::Stream(_) | OpenEnvironmentHandle::Writer(_) => Ok(()),
        };
    }
    if let Some(environment) = environment {
        environment.teardown(cx).await?;
    }
    empty_answer()
}

/// Waits for the next item of a stream.
async fn next_item<E: ExecutionEnvironment>(
    cx: &Cx<E::State>,
    desk: &EnvironmentHandleTable<E>,
    stream: u64,
) -> Result<Vec<u8>> {
    let opened = desk.find_handle(stream).ok_or_else(|| unknown_handle_error("stream", stream))?;
    match &*opened {
        OpenEnvironmentHandle::Program { events, .. } => match events.try_borrow()?.next().await? {
            Some(ProcessUpdate::Output { stream, bytes }) => {
                encode_frame(&ProcessEvent::output(stream), &bytes)
            }
            Some(ProcessUpdate::Exited(exit)) => encode_value(&ProcessEvent::Exited(exit)),
            None => end_of_stream_frame(),
        },
        OpenEnvironmentHandle::Terminal { events, .. } => {
            match events.try_borrow()?.next().await? {
                Some(TerminalUpdate::Output(bytes)) => encode_frame(&TerminalEvent::Output, &bytes),
                Some(TerminalUpdate::Exited(exit)) => encode_value(&TerminalEvent::Exited(exit)),
                None => end_of_stream_frame(),
            }
        }
        OpenEnvironmentHandle::Stream(stream) => {
            let environment = desk.environment()?;
            let files = file_calls::require_files(&*environment)?;
            stream.try_borrow()?.next(files, cx).await?.map_or_else(end_of_stream_frame, Ok)
        }
        // A writer has no items. It can only be closed.
        OpenEnvironmentHandle::Writer(_) => end_of_stream_frame(),
    }
}

fn end_of_stream_frame() -> Result<Vec<u8>> {
    encode_value(&STREAM_END)
}
