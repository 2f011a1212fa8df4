//! The prompt of a conversation before the user types anything.
//!
//! The prompt waits for the first key and leaves it to the reader of the line. So it can give way
//! to other output, and no typed key is lost. Between turns, other output is held while the prompt
//! is shown. While a turn runs, the prompt is part of the spinner's row and gives way to all
//! output.

use std::io;
use std::os::fd::AsFd as _;
use std::time::Duration;

use super::keys::{CtrlC, read_keys};
use super::writer::{self, OpenQuestion};
use super::{Text, progress, raw_input};

/// How often the idle prompt checks for held output.
const HELD_LOOKED_AT_EVERY: Duration = Duration::from_millis(250);

/// The reader of what the user types after the prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keys {
    /// An editor, key by key.
    Editor,
    /// The terminal itself, which delivers whole lines.
    Lines,
}

/// A prompt after which the user has typed nothing yet. Dropping it erases the prompt.
pub struct IdlePrompt {
    /// `Some` until the prompt is handed over.
    open: Option<OpenQuestion>,
    keys: Keys,
}

impl IdlePrompt {
    /// Shows the prompt.
    ///
    /// # Errors
    /// If the terminal is gone.
    pub fn show(open: OpenQuestion, prompt: &str, keys: Keys) -> io::Result<Self> {
        if keys == Keys::Editor {
            read_keys(CtrlC::Key)?;
        }
        open.say_open(&Text::new().plain(prompt))?;
        Ok(Self { open: Some(open), keys })
    }

    /// Becomes ready when the user has typed something. Reads none of it.
    ///
    /// # Errors
    /// If the terminal is gone.
    pub async fn typed(&self) -> io::Result<()> {
        first_key().await
    }

    /// Becomes ready when output is held.
    pub async fn something_is_held(&self) {
        while !writer::something_is_held() {
            tokio::time::sleep(HELD_LOOKED_AT_EVERY).await;
        }
    }

    /// Leaves the prompt to the reader of the line, and the terminal unchanged. Other output is
    /// held until the returned question is dropped.
    pub fn hand_over(mut self) -> Option<OpenQuestion> {
        let open = self.open.take();
        // The reader of the line ends its row.
        open.inspect(OpenQuestion::row_has_ended)
    }
}

impl Drop for IdlePrompt {
    fn drop(&mut self) {
        // A terminal without key input may not support erasing either, so the next output begins on
        // a new row.
        if let Some(open) = self.open.take().filter(|_| self.keys == Keys::Editor) {
            // A terminal that is gone needs no cleanup.
            let _ = open.erase_row();
        }
    }
}

/// A prompt in the spinner's row while a turn runs. Dropping it removes the prompt.
pub struct PromptBeside(());

impl PromptBeside {
    /// Shows the prompt. Ctrl-C sends the signal.
    ///
    /// # Errors
    /// If the terminal is gone.
    pub fn show(prompt: &'static str) -> io::Result<Self> {
        read_keys(CtrlC::Signal)?;
        progress::stand_behind(prompt);
        Ok(Self(()))
    }

    /// Becomes ready when the user has typed something. Reads none of it.
    ///
    /// # Errors
    /// If the terminal is gone.
    pub async fn typed(&self) -> io::Result<()> {
        first_key().await
    }
}

impl Drop for PromptBeside {
    fn drop(&mut self) {
        progress::stand_behind("");
    }
}

async fn first_key() -> io::Result<()> {
    // A waiting thread costs nothing, however long the user is away. It ends when the other end of
    // the pipe is closed.
    let (withdrawn, _withdraws) = io::pipe()?;
    let waiting = tokio::task::spawn_blocking(move || raw_input::until_typed(withdrawn.as_fd()));
    waiting.await.map_err(io::Error::other)?
}
