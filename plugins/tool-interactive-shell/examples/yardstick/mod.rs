//! The emulator's crate alone, as large as our screens and with as much history.

use alacritty_terminal::Term;
use alacritty_terminal::event::VoidListener;
use alacritty_terminal::grid::Dimensions;
use alacritty_terminal::term::Config;
use alacritty_terminal::vte::ansi::{Processor, StdSyncHandler};
use tool_interactive_shell::screen::HISTORY_ROWS_MAX;

struct Size;

impl Dimensions for Size {
    fn total_lines(&self) -> usize {
        24
    }
    fn screen_lines(&self) -> usize {
        24
    }
    fn columns(&self) -> usize {
        80
    }
}

/// Feeds it these pieces, one after the other.
pub fn emulate<'a>(pieces: impl Iterator<Item = &'a [u8]>) {
    let config = Config { scrolling_history: HISTORY_ROWS_MAX, ..Config::default() };
    let mut term = Term::new(config, &Size, VoidListener);
    let mut parser = Processor::<StdSyncHandler>::new();
    pieces.for_each(|piece| parser.advance(&mut term, piece));
}
