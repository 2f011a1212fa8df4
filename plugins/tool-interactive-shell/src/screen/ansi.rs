//! The visible screen with its colours, for users who watch.

use std::fmt::Write as _;

use alacritty_terminal::grid::{Dimensions, Grid};
use alacritty_terminal::index::Line;
use alacritty_terminal::term::cell::{Cell, Flags};
use alacritty_terminal::vte::ansi::{Color, NamedColor};

/// The supported attributes, with the number that sets each.
const ATTRIBUTES: [(Flags, u8); 7] = [
    (Flags::BOLD, 1),
    (Flags::DIM, 2),
    (Flags::ITALIC, 3),
    (Flags::ALL_UNDERLINES, 4),
    (Flags::INVERSE, 7),
    (Flags::HIDDEN, 8),
    (Flags::STRIKEOUT, 9),
];

/// The appearance of a cell, without its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CellStyle {
    foreground: Color,
    background: Color,
    /// One bit for each of [`ATTRIBUTES`].
    attributes: u8,
}

impl CellStyle {
    const PLAIN: Self = Self {
        foreground: Color::Named(NamedColor::Foreground),
        background: Color::Named(NamedColor::Background),
        attributes: 0,
    };

    fn from_cell(cell: &Cell) -> Self {
        let attributes = ATTRIBUTES
            .iter()
            .enumerate()
            .fold(0, |bits, (at, (flag, _))| bits | (u8::from(cell.flags.intersects(*flag)) << at));
        Self { foreground: cell.fg, background: cell.bg, attributes }
    }

    /// Returns true if a blank with this appearance is visible.
    fn shows_on_blank(self) -> bool {
        let seen = Flags::INVERSE | Flags::ALL_UNDERLINES | Flags::STRIKEOUT;
        let has_seen = ATTRIBUTES
            .iter()
            .enumerate()
            .any(|(at, (flag, _))| seen.intersects(*flag) && self.attributes & (1 << at) != 0);
        has_seen || self.background != Self::PLAIN.background
    }

    /// Writes the sequence that resets the style and applies this one.
    fn write_sequence(self, out: &mut String) {
        out.push_str("\x1b[0");
        for (at, (_, number)) in ATTRIBUTES.iter().enumerate() {
            if self.attributes & (1 << at) != 0 {
                // Writing to a string cannot fail.
                let _ = write!(out, ";{number}");
            }
        }
        write_colour(out, self.foreground, 30);
        write_colour(out, self.background, 40);
        out.push('m');
    }
}

/// Returns the visible rows, joined by CR LF, without plain trailing blanks and blank rows at the
/// bottom.
pub(super) fn ansi_rows(grid: &Grid<Cell>) -> String {
    let mut out = String::new();
    let mut blank_rows = 0;
    for row in 0..grid.screen_lines() {
        let cells = &grid[Line(row as i32)][..];
        let shown =
            cells.iter().rposition(is_visible_cell).map_or(&cells[..0], |last| &cells[..=last]);
        if shown.is_empty() {
            blank_rows += 1;
            continue;
        }
        let breaks = if out.is_empty() { blank_rows } else { blank_rows + 1 };
        out.push_str(&"\r\n".repeat(breaks));
        blank_rows = 0;
        write_cells(&mut out, shown);
    }
    out
}

fn is_visible_cell(cell: &Cell) -> bool {
    let is_blank = (cell.c == ' ' || cell.c.is_control()) && cell.zerowidth().is_none();
    !is_blank || CellStyle::from_cell(cell).shows_on_blank()
}

fn write_cells(out: &mut String, cells: &[Cell]) {
    let mut look = CellStyle::PLAIN;
    for cell in cells.iter().filter(|cell| !cell.flags.contains(Flags::WIDE_CHAR_SPACER)) {
        let next = CellStyle::from_cell(cell);
        if next != look {
            look = next;
            if look == CellStyle::PLAIN {
                out.push_str("\x1b[0m")
            } else {
                look.write_sequence(out)
            }
        }
        out.push(if cell.c.is_control() { ' ' } else { cell.c });
        out.extend(cell.zerowidth().unwrap_or_default());
    }
    if look != CellStyle::PLAIN {
        out.push_str("\x1b[0m");
    }
}

/// Writes a colour. `base` is 30 for the foreground and 40 for the background.
fn write_colour(out: &mut String, colour: Color, base: u8) {
    // Writing to a string cannot fail.
    let _ = match colour {
        Color::Named(name) => match name as usize {
            number @ 0..=7 => write!(out, ";{}", usize::from(base) + number),
            number @ 8..=15 => write!(out, ";{}", usize::from(base) + 60 + number - 8),
            // The default colours, and shades of them that exist only in windows with a theme.
            _ => Ok(()),
        },
        Color::Indexed(index) => write!(out, ";{};5;{index}", base + 8),
        Color::Spec(rgb) => write!(out, ";{};2;{};{};{}", base + 8, rgb.r, rgb.g, rgb.b),
    };
}
