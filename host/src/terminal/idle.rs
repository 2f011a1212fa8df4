//! The prompt of a conversation in which nothing is typed yet.
//!
//! It waits for the first key and takes none: whoever reads the line takes all of them. So it can
//! give way to what comes meanwhile, and nothing that is typed is lost. What else is written while
//! the prompt stands there, or a line is typed behind it, is held.

use std::io;
use std::os::fd::AsFd as _;
use std::time::Duration;

use nix::sys::termios::{
    ControlFlags, InputFlags, LocalFlags, SetArg, SpecialCharacterIndices, Termios, tcgetattr,
    tcsetattr,
};

use super::writer::{self, OpenQuestion};
use super::{Text, typed};

/// How often it is looked whether something waits to be shown above the prompt.
const HELD_LOOKED_AT_EVERY: Duration = Duration::from_millis(250);

/// Has the terminal mark what is pasted, so that its line ends send nothing.
const PASTE_MARKED: &str = "\u{1b}[?2004h";
/// Ends that.
const PASTE_UNMARKED: &str = "\u{1b}[?2004l";

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
    /// How the terminal was, where that was changed.
    before: Option<Termios>,
}

impl IdlePrompt {
    /// Shows the prompt.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn show(open: OpenQuestion, prompt: &str, keys: Keys) -> io::Result<Self> {
        let before = match keys {
            Keys::Lines => None,
            Keys::Editor => {
                let before = tcgetattr(io::stdin())?;
                tcsetattr(io::stdin(), SetArg::TCSANOW, &key_by_key(&before))?;
                Some(before)
            }
        };
        // From here on a failure leaves the terminal as it was.
        let shown = Self { open: Some(open), before };
        if let Some(open) = &shown.open {
            if shown.before.is_some() {
                open.switch(PASTE_MARKED)?;
            }
            open.say_open(&Text::new().plain(prompt))?;
        }
        Ok(shown)
    }

    /// Becomes ready when something is typed, and takes none of it.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub async fn typed(&self) -> io::Result<()> {
        // A thread that waits costs nothing, however long the person is away. It ends when the
        // other end of the pipe is closed.
        let (withdrawn, _withdraws) = io::pipe()?;
        let waiting = tokio::task::spawn_blocking(move || typed::until_typed(withdrawn.as_fd()));
        waiting.await.map_err(io::Error::other)?
    }

    /// Becomes ready when something waits to be shown.
    pub async fn something_is_held(&self) {
        while !writer::something_is_held() {
            tokio::time::sleep(HELD_LOOKED_AT_EVERY).await;
        }
    }

    /// Leaves the prompt to who reads the line. What else is written is held until what is returned
    /// is dropped.
    pub fn hand_over(mut self) -> Option<OpenQuestion> {
        self.restore();
        let open = self.open.take();
        // Whoever reads the line ends its row.
        open.inspect(OpenQuestion::row_has_ended)
    }

    fn restore(&mut self) {
        if let Some(before) = self.before.take() {
            // A terminal that is gone needs nothing.
            let _ = tcsetattr(io::stdin(), SetArg::TCSANOW, &before);
        }
    }
}

impl Drop for IdlePrompt {
    fn drop(&mut self) {
        let was_changed = self.before.is_some();
        self.restore();
        // A terminal that knows no keys may not know how to erase either: there a new row begins.
        if let Some(open) = self.open.take().filter(|_| was_changed) {
            // A terminal that is gone needs nothing.
            let _ = open.erase_row();
            let _ = open.switch(PASTE_UNMARKED);
        }
    }
}

/// The terminal as an editor has it, so that keys mean the same before it begins: nothing is shown,
/// and Ctrl-C is a key.
fn key_by_key(before: &Termios) -> Termios {
    let mut keys = before.clone();
    keys.input_flags &= !(InputFlags::BRKINT
        | InputFlags::ICRNL
        | InputFlags::INPCK
        | InputFlags::ISTRIP
        | InputFlags::IXON);
    keys.control_flags |= ControlFlags::CS8;
    keys.local_flags &=
        !(LocalFlags::ECHO | LocalFlags::ICANON | LocalFlags::IEXTEN | LocalFlags::ISIG);
    keys.control_chars[SpecialCharacterIndices::VMIN as usize] = 1;
    keys.control_chars[SpecialCharacterIndices::VTIME as usize] = 0;
    keys
}
