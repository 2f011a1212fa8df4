//! The prompt of a conversation in which nothing is typed yet.
//!
//! It waits for the first key and takes none: whoever reads the line takes all of them. So it can
//! give way to what comes meanwhile, and nothing that is typed is lost. Between turns what else is
//! written is held while the prompt stands there; while a turn runs the prompt stands in the row of
//! what moves, and gives way to all that is written.

use std::io;
use std::os::fd::AsFd as _;
use std::time::Duration;

use super::keys::{CtrlC, read_keys};
use super::writer::{self, OpenQuestion};
use super::{Text, moving, typed};

/// How often it is looked whether something waits to be shown above the prompt.
const HELD_LOOKED_AT_EVERY: Duration = Duration::from_millis(250);

/// Who reads what is typed behind the prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keys {
    /// An editor, key by key.
    Editor,
    /// The terminal itself, which gives out whole lines.
    Lines,
}

/// A prompt behind which nothing is typed yet. Dropping it takes it away.
pub struct IdlePrompt {
    /// There until the prompt is handed over.
    open: Option<OpenQuestion>,
    keys: Keys,
}

impl IdlePrompt {
    /// Shows the prompt.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn show(open: OpenQuestion, prompt: &str, keys: Keys) -> io::Result<Self> {
        if keys == Keys::Editor {
            read_keys(CtrlC::Key)?;
        }
        open.say_open(&Text::new().plain(prompt))?;
        Ok(Self { open: Some(open), keys })
    }

    /// Becomes ready when something is typed, and takes none of it.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub async fn typed(&self) -> io::Result<()> {
        first_key().await
    }

    /// Becomes ready when something waits to be shown.
    pub async fn something_is_held(&self) {
        while !writer::something_is_held() {
            tokio::time::sleep(HELD_LOOKED_AT_EVERY).await;
        }
    }

    /// Leaves the prompt to who reads the line, and the terminal as it is. What else is written is
    /// held until what is returned is dropped.
    pub fn hand_over(mut self) -> Option<OpenQuestion> {
        let open = self.open.take();
        // Whoever reads the line ends its row.
        open.inspect(OpenQuestion::row_has_ended)
    }
}

impl Drop for IdlePrompt {
    fn drop(&mut self) {
        // A terminal that knows no keys may not know how to erase either: there a new row begins.
        if let Some(open) = self.open.take().filter(|_| self.keys == Keys::Editor) {
            // A terminal that is gone needs nothing.
            let _ = open.erase_row();
        }
    }
}

/// A prompt in the row of what moves, while a turn runs. Dropping it takes the prompt away.
pub struct PromptBeside(());

impl PromptBeside {
    /// Has it drawn from here on. Ctrl-C is the signal.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn show(prompt: &'static str) -> io::Result<Self> {
        read_keys(CtrlC::Signal)?;
        moving::stand_behind(prompt);
        Ok(Self(()))
    }

    /// Becomes ready when something is typed, and takes none of it.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub async fn typed(&self) -> io::Result<()> {
        first_key().await
    }
}

impl Drop for PromptBeside {
    fn drop(&mut self) {
        moving::stand_behind("");
    }
}

async fn first_key() -> io::Result<()> {
    // A thread that waits costs nothing, however long the person is away. It ends when the other
    // end of the pipe is closed.
    let (withdrawn, _withdraws) = io::pipe()?;
    let waiting = tokio::task::spawn_blocking(move || typed::until_typed(withdrawn.as_fd()));
    waiting.await.map_err(io::Error::other)?
}
