//! What a terminal answers by itself, kept until somebody types it to the program.

use std::sync::Arc;

use alacritty_terminal::event::{Event, EventListener};
use alacritty_terminal::vte::ansi::{NamedColor, Rgb};
use parking_lot::Mutex;

/// Most bytes of replies that wait: a hostile file that asks a million times must not make the
/// terminal type for minutes.
pub const REPLY_BYTES_MAX: usize = 4096;

/// Light grey: what programs are told that text looks like.
const FOREGROUND: Rgb = Rgb { r: 0xe5, g: 0xe5, b: 0xe5 };

/// Black: what they are told that lies behind it.
const BACKGROUND: Rgb = Rgb { r: 0, g: 0, b: 0 };

/// A handle on the replies that wait. The emulator writes into one, the screen reads from another.
#[derive(Debug, Clone, Default)]
pub(super) struct Replies {
    waiting: Arc<Mutex<Vec<u8>>>,
}

impl Replies {
    pub(super) fn take(&self) -> Vec<u8> {
        std::mem::take(&mut *self.waiting.lock())
    }

    fn add(&self, reply: &str) {
        let mut waiting = self.waiting.lock();
        // Half a reply would be typed text, so one that does not fit is left out whole.
        if waiting.len() + reply.len() <= REPLY_BYTES_MAX {
            waiting.extend_from_slice(reply.as_bytes());
        }
    }
}

impl EventListener for Replies {
    /// Everything but what is to be typed concerns windows, which there are none of. The emulator's
    /// events are not our enum, hence the last arm.
    fn send_event(&self, event: Event) {
        match event {
            Event::PtyWrite(reply) => self.add(&reply),
            Event::ColorRequest(index, reply) => {
                if let Some(colour) = default_colour(index) {
                    self.add(&reply(colour));
                }
            }
            _ => {}
        }
    }
}

/// Only the two that programs ask for, to choose between a light and a dark theme.
fn default_colour(index: usize) -> Option<Rgb> {
    if index == NamedColor::Foreground as usize {
        Some(FOREGROUND)
    } else if index == NamedColor::Background as usize {
        Some(BACKGROUND)
    } else {
        None
    }
}
