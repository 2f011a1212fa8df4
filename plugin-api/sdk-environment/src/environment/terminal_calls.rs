//! The operations `terminal.*`.

use std::time::Duration;

use jaato_plugin_sdk::__private::encode_value;
use jaato_plugin_sdk::Cx;
use jaato_types::execution::STREAM_KEY;
use jaato_types::terminal::{
    END, RESIZE, SIGNAL, SIZE, SPAWN, STATE, TerminalRef, TerminalResize, TerminalSignal,
    TerminalSpawn, TerminalWrite, TerminalWriteAnswer, WRITE,
};
use jaato_types::{Error, ErrorKind, Result};
use serde_json::json;

use super::exclusive_value::ExclusiveValue;
use super::frames::{
    empty_answer, parse_frame, parse_frame_with_bytes, unknown_handle_error,
    unknown_operation_error,
};
use super::handle_table::{EnvironmentHandleTable, OpenEnvironmentHandle};
use super::terminals::{Terminal, Terminals};
use super::traits::ExecutionEnvironment;

/// Answers a `terminal.*` operation.
pub(super) async fn answer_terminal_operation<E: ExecutionEnvironment>(
    cx: &Cx<E::State>,
    desk: &EnvironmentHandleTable<E>,
    operation: &str,
    frame: &[u8],
) -> Result<Vec<u8>> {
    if operation == SPAWN {
        return spawn_terminal(cx, desk, parse_frame(frame)?).await;
    }
    let (request, bytes): (serde_json::Value, Vec<u8>) = parse_frame_with_bytes(frame)?;
    let TerminalRef { terminal: number, .. } = parse_request(&request)?;
    let open = desk.find_handle(number).ok_or_else(|| unknown_handle_error("terminal", number))?;
    let OpenEnvironmentHandle::Terminal { terminal, .. } = &*open else {
        return Err(unknown_handle_error("terminal", number));
    };
    match operation {
        WRITE => {
            let TerminalWrite { wait_ms, .. } = parse_request(&request)?;
            let Some(wait_ms) = wait_ms else {
                terminal.write(bytes).await?;
                return empty_answer();
            };
            let taken = terminal.write_within(bytes, Duration::from_millis(wait_ms)).await?;
            let bytes = u64::try_from(taken).unwrap_or(u64::MAX);
            return encode_value(&TerminalWriteAnswer { bytes, ..TerminalWriteAnswer::default() });
        }
        RESIZE => {
            let size: TerminalResize = parse_request(&request)?;
            if size.rows == 0 || size.columns == 0 {
                let text = "a terminal has at least one row and one column";
                return Err(Error::new(ErrorKind::InvalidArguments, text));
            }
            terminal.resize(size).await?;
        }
        SIGNAL => {
            let TerminalSignal { signal, .. } = parse_request(&request)?;
            terminal.signal(signal).await?;
        }
        STATE => return encode_value(&terminal.state().await?),
        END => terminal.end().await?,
        other => return Err(unknown_operation_error(other)),
    }
    empty_answer()
}

async fn spawn_terminal<E: ExecutionEnvironment>(
    cx: &Cx<E::State>,
    desk: &EnvironmentHandleTable<E>,
    mut spawn: TerminalSpawn,
) -> Result<Vec<u8>> {
    let environment = desk.environment()?;
    let terminals = environment.terminals().ok_or_else(|| unknown_operation_error(SPAWN))?;
    desk.check_has_room()?;
    (spawn.rows, spawn.columns) = match (spawn.rows, spawn.columns) {
        (0, 0) => SIZE,
        (0, columns) => (SIZE.0, columns),
        (rows, 0) => (rows, SIZE.1),
        given => given,
    };
    let (terminal, events) = terminals.spawn(cx, spawn).await?;
    let pid = terminal.pid();
    let number = desk.add_handle(OpenEnvironmentHandle::Terminal {
        terminal,
        events: ExclusiveValue::new(events),
    });
    encode_value(&json!({ "terminal": number, "pid": pid, STREAM_KEY: number }))
}

fn parse_request<T: serde::de::DeserializeOwned>(request: &serde_json::Value) -> Result<T> {
    T::deserialize(request)
        .map_err(|error| Error::new(ErrorKind::InvalidArguments, error.to_string()))
}
