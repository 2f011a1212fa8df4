//! The program of `cargo xtask bench` and `cargo xtask accuracy`, which measures the whole product.
//!
//! A separate crate, so that a newcomer's first command does not compile it.

mod accuracy;
mod batch;
mod bench;

use std::process::ExitCode;

use xtask::chores::{Chore, ChoreHelp, run_selected_chore};

const CHORES: &[Chore] = &[
    Chore {
        name: "bench",
        arguments: "[NAME…]",
        about: "measure, and compare with the targets",
        start: bench::run_bench_chore,
        help: ChoreHelp::Chore,
    },
    Chore {
        name: "accuracy",
        arguments: "[NAME…] [--install] [--user USER] [--house DIR] [--list]",
        about: "play real programs through the shell tools: results that come too early or too late",
        start: accuracy::run_accuracy_chore,
        help: ChoreHelp::Table,
    },
];

fn main() -> ExitCode {
    run_selected_chore(CHORES)
}
