//! Streams a session's new output into a call's result. The host truncates the result and stores
//! the complete output in a file.

use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::serde_json::Map;

use crate::echo;
use crate::session::{LiveSessionState, ShellSession};

/// The key of the text that a call streams while it waits, and of the output in most results.
pub const OUTPUT_KEY: &str = "output";

/// After this much output, a screen releases the memory of empty rows.
const LONG_BYTES: usize = 16 * 1024;

/// While this exists, a call takes new output as it arrives. If the call returns no result, the
/// bytes that it took count as lost.
pub struct OutputStreaming<'a> {
    session: &'a ShellSession,
    bytes: u64,
}

impl<'a> OutputStreaming<'a> {
    /// Starts streaming.
    pub fn new(session: &'a ShellSession) -> Self {
        session.streaming.fetch_add(1, SeqCst);
        Self { session, bytes: 0 }
    }

    /// Streams the older part of a long text, which [`take_surplus_text`] returned.
    ///
    /// # Errors
    /// `cancelled`, or the reason why the host does not accept the text.
    pub async fn stream_text(&mut self, host: &Reporter, text: String) -> Result<()> {
        self.bytes += text.len() as u64;
        host.keep_and_show(OUTPUT_KEY, text).await
    }

    /// Ends streaming with a result, which contains the streamed text.
    pub fn finish_with_result(mut self) {
        self.bytes = 0;
    }
}

impl Drop for OutputStreaming<'_> {
    fn drop(&mut self) {
        self.session.lock_live().transcript.add_lost_bytes(self.bytes);
        self.session.streaming.fetch_sub(1, SeqCst);
    }
}

/// Takes the older part of a long text, once. During a flood, more text may arrive while it is
/// sent, and the caller must check its time limit first.
pub fn take_surplus_text(live: &mut LiveSessionState) -> Option<String> {
    let text = live.transcript.take_surplus_text()?;
    Some(without_echo(live, text))
}

/// Returns true while a call streams.
pub fn is_streamed(streaming: &AtomicU32) -> bool {
    streaming.load(SeqCst) > 0
}

/// Streams new output and marks it as reported. Returns the screen if a program draws one.
///
/// # Errors
/// `cancelled`, or the reason why the host does not accept the text.
pub async fn stream_new_output(
    cx: &Reporter,
    session: &ShellSession,
    answer: &mut Map<String, Value>,
    key: &str,
) -> Result<Option<String>> {
    let (mut text, drawn) = take_new_output(&mut session.lock_live(), answer);
    // The host replaces this by the text.
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
            // The next text for users begins on a new line.
            cx.output("\n");
        }
    }
    Ok(drawn)
}

/// Takes new output, and the screen that a program draws.
fn take_new_output(
    live: &mut LiveSessionState,
    answer: &mut Map<String, Value>,
) -> (String, Option<String>) {
    let is_drawn = live.screen.is_drawn();
    if is_drawn {
        let cursor = live.screen.cursor();
        answer.insert("full_screen".to_owned(), true.into());
        let (row, column) = (cursor.row + 1, cursor.column + 1);
        answer.insert("cursor".to_owned(), json!({ "row": row, "column": column }));
    }
    let is_full_screen = live.screen.is_full_screen();
    let unseen =
        if is_drawn { live.screen.unseen_text_above_screen() } else { live.screen.unseen_text() };
    live.transcript.push_text(&unseen);
    // Text below a full-screen program is reported after the program has ended.
    let new = if is_full_screen { String::new() } else { live.transcript.take_text() };
    live.mark_reported();
    if new.len() > LONG_BYTES {
        live.screen.release_memory();
    }
    let text = if is_drawn { new } else { without_echo(live, new) };
    (text, is_drawn.then(|| live.screen.visible_lines().join("\n")))
}

/// Removes echoed text at the start of new output.
fn without_echo(live: &mut LiveSessionState, new: String) -> String {
    if new.is_empty() {
        return new;
    }
    let typed = std::mem::take(&mut live.typed);
    echo::strip_echo(&new, &typed).to_owned()
}
