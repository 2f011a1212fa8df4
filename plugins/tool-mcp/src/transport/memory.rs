//! An in-memory server for examples and tests.

use std::thread;

use jaato_plugin_sdk::serde_json::{self, Value, json};
use tokio::sync::mpsc;

use super::wire::{HEARD_PIECES_MAX, SAID_MESSAGES_MAX, StdioWire};

impl StdioWire {
    /// Connects to a server that answers each request from its method and parameters. `None` makes
    /// the server answer that it does not know the method.
    pub fn with_request_handler(
        mut answer: impl FnMut(&str, &Value) -> Option<Value> + Send + 'static,
    ) -> Self {
        Self::with_message_handler(move |message, say| {
            let (Some(method), Some(id)) = (message["method"].as_str(), message.get("id")) else {
                return;
            };
            say(&match answer(method, &message["params"]) {
                Some(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
                None => {
                    let error = json!({ "code": -32601, "message": "method not found" });
                    json!({ "jsonrpc": "2.0", "id": id, "error": error })
                }
            });
        })
    }

    /// Connects to a server that receives each message and can send any messages.
    pub fn with_message_handler(
        mut told: impl FnMut(&Value, &mut dyn FnMut(&Value)) + Send + 'static,
    ) -> Self {
        let (hear, heard) = mpsc::channel(HEARD_PIECES_MAX);
        let (said, mut say) = mpsc::channel::<Vec<u8>>(SAID_MESSAGES_MAX);
        thread::spawn(move || {
            while let Some(line) = say.blocking_recv() {
                let Ok(message) = serde_json::from_slice(&line) else { continue };
                told(&message, &mut |answer| {
                    // The client may have closed the connection.
                    let _ = hear.blocking_send(format!("{answer}\n").into_bytes());
                });
            }
        });
        Self { heard, said }
    }
}
