//! The prompt of a conversation in which nothing is typed yet.
//!
//! It waits for the first key and takes none: whoever reads the line takes all of them. So it can
//! give way to what comes meanwhile, and nothing that is typed is lost. Between turns what else is
//! written is held while the prompt stands there; while a turn runs the prompt stands in the row of
//! what moves, and gives way to all that is written.

use std::io;
use std::os::fd::AsFd as _;
use std::time::Duration;

use super::keys::{CtrlC, KeyByKey};
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

/// A prompt behind which nothing is typed yet. Dropping it takes it away and makes the terminal as
/// it was.
pub struct IdlePrompt {
    /// There until the prompt is handed over.
    open: Option<OpenQuestion>,
    /// There where keys are read one by one.
    keys: Option<KeyByKey>,
}

impl IdlePrompt {
    /// Shows the prompt.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn show(open: OpenQuestion, prompt: &str, keys: Keys) -> io::Result<Self> {
        let keys = match keys {
            Keys::Lines => None,
            Keys::Editor => Some(KeyByKey::begin(CtrlC::Key)?),
        };
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
    pub fn hand_over(mut self) -> (Option<OpenQuestion>, Option<KeyByKey>) {
        let open = self.open.take();
        // Whoever reads the line ends its row.
        (open.inspect(OpenQuestion::row_has_ended), self.keys.take())
    }
}

impl Drop for IdlePrompt {
    fn drop(&mut self) {
        // A terminal that knows no keys may not know how to erase either: there a new row begins.
        if let Some(open) = self.open.take().filter(|_| self.keys.is_some()) {
            // A terminal that is gone needs nothing.
            let _ = open.erase_row();
        }
    }
}

/// A prompt in the row of what moves, while a turn runs. Dropping it takes the prompt away and
/// makes the terminal as it was.
pub struct PromptBeside {
    /// There until the prompt is handed over.
    keys: Option<KeyByKey>,
}

impl PromptBeside {
    /// Has it drawn from here on.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn show(prompt: &'static str) -> io::Result<Self> {
        let keys = Some(KeyByKey::begin(CtrlC::Signal)?);
        moving::stand_behind(prompt);
        Ok(Self { keys })
    }

    /// Becomes ready when something is typed, and takes none of it.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub async fn typed(&self) -> io::Result<()> {
        first_key().await
    }

    /// Leaves the terminal to who reads the line, with Ctrl-C as a key.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn hand_over(mut self) -> io::Result<Option<KeyByKey>> {
        let keys = self.keys.take();
        keys.as_ref().map_or(Ok(()), |keys| keys.set(CtrlC::Key))?;
        Ok(keys)
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
