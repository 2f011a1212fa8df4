//! The person's own terminal, while it shows another: taken over as a whole, and given back as it
//! was.

use std::io::{self, Read as _};

use nix::sys::termios::{SetArg, Termios, cfmakeraw, tcgetattr, tcsetattr};
use tokio::sync::mpsc;

use super::draw::Room;
use crate::terminal::{self, Channel};

/// A screen of its own, so that what was there is there again in the end.
const BEGIN: &str = "\x1b[?1049h\x1b[0m\x1b[2J";

/// Everything that may have been switched, as it is in a shell.
const END: &str = "\x1b[0m\x1b[?1l\x1b>\x1b[?2004l\x1b[?25h\x1b[?1049l";

/// Pieces of what was typed that wait.
const TYPED_WAITING_MAX: usize = 16;

/// The person's terminal. Dropping it gives it back, also when the program panics.
pub struct Tty {
    before: Termios,
    is_taken: bool,
}

impl Tty {
    /// Takes it over: every key comes as it is typed, and nothing is shown but what is drawn.
    ///
    /// # Errors
    /// When it is no terminal, or does not take it.
    pub fn take() -> io::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let mut tty = Self { before, is_taken: false };
        tty.take_again()?;
        Ok(tty)
    }

    /// Takes it over after it was given back for a while.
    ///
    /// # Errors
    /// As [`Tty::take`].
    pub fn take_again(&mut self) -> io::Result<()> {
        let mut raw = self.before.clone();
        cfmakeraw(&mut raw);
        tcsetattr(io::stdin(), SetArg::TCSADRAIN, &raw)?;
        self.is_taken = true;
        self.write(BEGIN)
    }

    /// Gives it back.
    pub fn give_back(&mut self) {
        if std::mem::take(&mut self.is_taken) {
            // A terminal that is gone needs neither.
            let _ = self.write(END);
            let _ = tcsetattr(io::stdin(), SetArg::TCSADRAIN, &self.before);
        }
    }

    /// Writes to it.
    ///
    /// # Errors
    /// When it is gone.
    pub fn write(&self, text: &str) -> io::Result<()> {
        terminal::draw(text)
    }

    /// Returns its size.
    pub fn room() -> Room {
        let (rows, columns) = terminal::size_of(Channel::Output);
        Room { rows, columns }
    }
}

impl Drop for Tty {
    fn drop(&mut self) {
        self.give_back();
    }
}

/// Reads what is typed, on a thread of its own: it ends with the process.
pub fn keys() -> io::Result<mpsc::Receiver<Vec<u8>>> {
    let (send, keys) = mpsc::channel(TYPED_WAITING_MAX);
    std::thread::Builder::new().name("keys".to_owned()).spawn(move || {
        let mut buffer = [0; 1024];
        loop {
            match io::stdin().lock().read(&mut buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(0) | Err(_) => return,
                Ok(read) if send.blocking_send(buffer[..read].to_vec()).is_err() => return,
                Ok(_) => {}
            }
        }
    })?;
    Ok(keys)
}
