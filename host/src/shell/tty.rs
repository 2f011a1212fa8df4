//! The user's own terminal while it shows another one: taken over completely, and restored
//! afterwards.

use std::io::{self, Read as _};

use nix::sys::termios::{SetArg, Termios, cfmakeraw, tcgetattr, tcsetattr};
use tokio::sync::mpsc;

use super::draw::TtySize;
use crate::terminal::{self, Channel};

/// Switches to the alternate screen, so that the previous content returns at the end.
const BEGIN: &str = "\x1b[?1049h\x1b[0m\x1b[2J";

/// Resets all modes that may have changed, to those of a shell.
const END: &str = "\x1b[0m\x1b[?1l\x1b>\x1b[?2004l\x1b[?25h\x1b[?1049l";

/// How many pieces of input wait.
const TYPED_WAITING_MAX: usize = 16;

/// The user's terminal. Dropping it restores it, even if the program panics.
pub struct Tty {
    before: Termios,
    is_taken: bool,
}

impl Tty {
    /// Takes it over: each key arrives as it is pressed, and only drawn output is shown.
    ///
    /// # Errors
    /// When it is not a terminal, or refuses.
    pub fn take() -> io::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let mut tty = Self { before, is_taken: false };
        tty.take_again()?;
        Ok(tty)
    }

    /// Takes over the terminal again after a pause.
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
    pub fn size() -> TtySize {
        let (rows, columns) = terminal::size_of(Channel::Output);
        TtySize { rows, columns }
    }
}

impl Drop for Tty {
    fn drop(&mut self) {
        self.give_back();
    }
}

/// Reads the input, on its own thread, which ends with the process.
pub fn read_keys() -> io::Result<mpsc::Receiver<Vec<u8>>> {
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
