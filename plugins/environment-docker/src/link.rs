//! A line protocol with the shell in the container. Each request has a number, which its response
//! repeats.

use std::collections::HashMap;
use std::pin::Pin;

use bollard::container::LogOutput;
use bollard::errors::Error as EngineError;
use futures_util::{Stream, StreamExt as _};
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{mpsc, oneshot};

/// The maximum length of a response. A longer one is not valid.
const LINE_BYTES_MAX: usize = 64 * 1024;

/// The output stream of the engine.
pub type LogOutputStream = Pin<Box<dyn Stream<Item = Result<LogOutput, EngineError>> + Send>>;

/// The input stream of the engine.
pub type EngineInputStream = Pin<Box<dyn AsyncWrite + Send>>;

/// Both directions of a program in a container.
pub struct ExecStreams {
    /// The standard input.
    pub input: EngineInputStream,
    /// The standard output and standard error.
    pub output: LogOutputStream,
}

/// A request. Its response may be ignored.
#[derive(Debug)]
pub struct HelperShellRequest {
    /// The verb and its arguments.
    pub words: String,
    /// Receives the response.
    pub answer: Option<oneshot::Sender<String>>,
}

/// Forwards requests until all senders are gone or the shell has ended. Callers that still wait
/// then get an error, because their channels are dropped.
pub async fn forward_requests(
    streams: ExecStreams,
    mut asks: mpsc::UnboundedReceiver<HelperShellRequest>,
) {
    let ExecStreams { mut input, mut output } = streams;
    let mut waiting = HashMap::new();
    let mut last = 0_u64;
    let mut text = Vec::new();
    loop {
        tokio::select! {
            ask = asks.recv() => {
                let Some(HelperShellRequest { words, answer }) = ask else { break };
                last += 1;
                if let Some(answer) = answer {
                    waiting.insert(last, answer);
                }
                if input.write_all(format!("{last} {words}\n").as_bytes()).await.is_err()
                    || input.flush().await.is_err()
                {
                    return;
                }
            }
            piece = output.next() => {
                let Some(Ok(piece)) = piece else { return };
                // The standard error is ignored.
                if let LogOutput::StdOut { message } = piece {
                    text.extend_from_slice(&message);
                    deliver_lines(&mut text, &mut waiting);
                }
            }
        }
    }
    // The end of its input ends the shell. A broken connection has already closed the input.
    let _ = input.shutdown().await;
}

fn deliver_lines(text: &mut Vec<u8>, waiting: &mut HashMap<u64, oneshot::Sender<String>>) {
    while let Some(end) = text.iter().position(|byte| *byte == b'\n') {
        let line: Vec<u8> = text.drain(..=end).collect();
        let line = String::from_utf8_lossy(&line);
        let (number, answer) = line.trim_end().split_once(' ').unwrap_or((line.trim_end(), ""));
        let asker = number.parse().ok().and_then(|number: u64| waiting.remove(&number));
        if let Some(asker) = asker {
            // The caller may have stopped waiting.
            let _ = asker.send(answer.to_owned());
        }
    }
    if text.len() > LINE_BYTES_MAX {
        text.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_reach_their_requests_in_any_order_and_any_split() {
        let (first, mut one) = oneshot::channel();
        let (second, mut two) = oneshot::channel();
        let mut waiting = HashMap::from([(1, first), (2, second)]);
        let mut text = Vec::new();
        for piece in ["nonsense\n2 n", "o\n9 ok\n1 ", "12 S - sh x\n"] {
            text.extend_from_slice(piece.as_bytes());
            deliver_lines(&mut text, &mut waiting);
        }
        assert_eq!(one.try_recv().unwrap(), "12 S - sh x");
        assert_eq!(two.try_recv().unwrap(), "no");
        assert!(text.is_empty() && waiting.is_empty());
    }
}
