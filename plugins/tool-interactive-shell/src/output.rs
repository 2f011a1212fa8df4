//! Streams a session's new output into a call's result. The host shows as much of it as a result
//! may have, and keeps all of it in a file.

use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::serde_json::Map;

use crate::echo;
use crate::session::{Live, Session};

/// The key of the text that a call streams while it waits, and of the output in most results.
pub const OUTPUT_KEY: &str = "output";

/// After so much output a screen gives back the memory for rows that are empty.
const LONG_BYTES: usize = 16 * 1024;

/// As long as it lives, a call takes new output as it comes. If the call gives no result, the bytes
/// that it took count as lost.
pub struct Streaming<'a> {
    session: &'a Session,
    bytes: u64,
}

impl<'a> Streaming<'a> {
    /// Begins.
    pub fn new(session: &'a Session) -> Self {
        session.streaming.fetch_add(1, SeqCst);
        Self { session, bytes: 0 }
    }

    /// Streams the older part of a long text, which was taken with [`surplus`].
    ///
    /// # Errors
    /// `cancelled`; what keeps the host from taking it.
    pub async fn send(&mut self, host: &Reporter, text: String) -> Result<()> {
        self.bytes += text.len() as u64;
        host.keep_and_show(OUTPUT_KEY, text).await
    }

    /// Ends with a result, which has the streamed text.
    pub fn finish(mut self) {
        self.bytes = 0;
    }
}

impl Drop for Streaming<'_> {
    fn drop(&mut self) {
        self.session.live().transcript.lose(self.bytes);
        self.session.streaming.fetch_sub(1, SeqCst);
    }
}

/// Takes the older part of a long text, once: in a flood more may have come when it is sent, and a
/// call looks at its time first.
pub fn surplus(live: &mut Live) -> Option<String> {
    let text = live.transcript.take_surplus()?;
    Some(without_echo(live, text))
}

/// Returns whether a call streams.
pub fn is_streamed(streaming: &AtomicU32) -> bool {
    streaming.load(SeqCst) > 0
}

/// Streams new output and marks it as told. Returns the screen if a program draws one.
///
/// # Errors
/// `cancelled`; what keeps the host from taking it.
pub async fn tell(
    cx: &Reporter,
    session: &Session,
    answer: &mut Map<String, Value>,
    key: &str,
) -> Result<Option<String>> {
    let (mut text, drawn) = take(&mut session.live(), answer);
    // The host puts the text in its place.
    answer.insert(key.to_owned(), "".into());
    if let Some(drawn) = &drawn {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text += drawn;
        cx.keep_output(key, text).await?;
    } else if !text.is_empty() {
        let is_open = !text.ends_with('\n');
        cx.keep_and_show(key, text).await?;
        if is_open {
            // What people are shown next begins a line.
            cx.output("\n");
        }
    }
    Ok(drawn)
}

/// Takes new output, and the screen that a program draws.
fn take(live: &mut Live, answer: &mut Map<String, Value>) -> (String, Option<String>) {
    let is_drawn = live.screen.is_drawn();
    if is_drawn {
        let cursor = live.screen.cursor();
        answer.insert("full_screen".to_owned(), true.into());
        let (row, column) = (cursor.row + 1, cursor.column + 1);
        answer.insert("cursor".to_owned(), json!({ "row": row, "column": column }));
    }
    let is_full_screen = live.screen.is_full_screen();
    let unseen = if is_drawn { live.screen.unseen_above() } else { live.screen.unseen() };
    live.transcript.push(&unseen);
    // The text below a full-screen program is told when the program is gone.
    let new = if is_full_screen { String::new() } else { live.transcript.take() };
    live.mark_told();
    if new.len() > LONG_BYTES {
        live.screen.release_memory();
    }
    let text = if is_drawn { new } else { without_echo(live, new) };
    (text, is_drawn.then(|| live.screen.lines().join("\n")))
}

/// Leaves out typed text at the beginning of new output.
fn without_echo(live: &mut Live, new: String) -> String {
    if new.is_empty() {
        return new;
    }
    let typed = std::mem::take(&mut live.typed);
    echo::without(&new, &typed).to_owned()
}
