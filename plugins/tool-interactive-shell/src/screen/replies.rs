//! The terminal's own replies, stored until they are typed to the program.

use std::sync::Arc;

use alacritty_terminal::event::{Event, EventListener};
use alacritty_terminal::vte::ansi::{NamedColor, Rgb};
use parking_lot::Mutex;

/// The maximum number of bytes of waiting replies. A hostile file with a million requests must not
/// make the terminal type for minutes.
pub const REPLY_BYTES_MAX: usize = 4096;

/// The reported text colour: light grey.
const FOREGROUND: Rgb = Rgb { r: 0xe5, g: 0xe5, b: 0xe5 };

/// The reported background colour: black.
const BACKGROUND: Rgb = Rgb { r: 0, g: 0, b: 0 };

/// A handle to the waiting replies. The emulator writes to one handle, and the screen reads from
/// another.
#[derive(Debug, Clone, Default)]
pub(super) struct PendingReplies {
    waiting: Arc<Mutex<Vec<u8>>>,
}

impl PendingReplies {
    pub(super) fn take_replies(&self) -> Vec<u8> {
        std::mem::take(&mut *self.waiting.lock())
    }

    fn add_reply(&self, reply: &str) {
        let mut waiting = self.waiting.lock();
        // A partial reply would be typed as text, so a reply that does not fit is dropped.
        if waiting.len() + reply.len() <= REPLY_BYTES_MAX {
            waiting.extend_from_slice(reply.as_bytes());
        }
    }
}

impl EventListener for PendingReplies {
    /// All other events concern windows, which do not exist here. The enum is the emulator's, so
    /// the last arm is needed.
    fn send_event(&self, event: Event) {
        match event {
            Event::PtyWrite(reply) => self.add_reply(&reply),
            Event::ColorRequest(index, reply) => {
                if let Some(colour) = default_colour(index) {
                    self.add_reply(&reply(colour));
                }
            }
            _ => {}
        }
    }
}

/// Only the two colours that programs request to choose between a light and a dark theme.
fn default_colour(index: usize) -> Option<Rgb> {
    if index == NamedColor::Foreground as usize {
        Some(FOREGROUND)
    } else if index == NamedColor::Background as usize {
        Some(BACKGROUND)
    } else {
        None
    }
}
