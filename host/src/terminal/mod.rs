//! The only module that uses the terminal: everything that the binary prints, asks and reads passes
//! through it.
//!
//! Nothing else in the binary uses standard output, standard error or `println!`. `cargo xtask
//! tidy` checks this. Three things follow:
//!
//! - Text from a model, a tool, a file or a server is made visible before it is written
//!   ([`jaato_runtime::visible`]). Colours are added after that, so they are always jaato's own.
//! - While a question is open, all other output to the terminal is held and shown afterwards. While
//!   the user types a line, the line's editor shows the output above it.
//! - Input that was typed before a question was shown does not answer it.
//!
//! Three kinds of bytes pass unchanged: an answer to a pipe or a file, the output of `jaato
//! environment exec` (the user's own command), and the screen that `jaato shell attach` draws from
//! cells.

mod above_line;
mod answer;
mod choice;
mod idle;
mod keyboard;
mod keys;
mod link;
mod markdown;
mod own_output;
mod progress;
mod question;
mod raw_input;
mod text;
mod writer;

pub use above_line::{
    Printer, is_given_in_vain, is_shown_above, line_begins, line_ends, line_is_drawn, show_above,
    work_row,
};
pub use answer::{Answer, Output};
pub use choice::{can_choose, choose, confirm};
pub use idle::{IdlePrompt, Keys, PromptBeside};
pub use keyboard::{Keyboard, NO_TERMINAL, keyboard, nobody_types};
pub use keys::{CtrlC, give_terminal_back, read_keys, remember_terminal, stop_here};
pub use own_output::{log_what_is_printed, reserve};
pub use progress::Moving;
pub use question::{Before, Dialog, Manner, Reply, Value, ask, can_edit, show};
pub use raw_input::{CTRL_C, read_line, something_is_typed};
pub use text::{Look, NAME_COLUMNS, Text, exact_line, one_line};
pub use writer::{
    Channel, OpenQuestion, draw, errors_are_terminal, give_up, input_is_terminal, open_question,
    output_is_terminal, pass, print, print_json, print_styled, say, size, size_of,
};
