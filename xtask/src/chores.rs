//! The table of chores: what `cargo xtask` can do, and how to call it.

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::Result;

use crate::{
    build_plugins, check_macos, dist, measure, models, new_plugin, run, setup, test, tidy,
};

/// A chore that can be called by name.
pub struct Chore {
    /// The first word.
    pub name: &'static str,
    /// The possible arguments, as help shows them.
    pub arguments: &'static str,
    /// A one-line description.
    pub about: &'static str,
    /// Runs the chore with the words after its name, and returns the exit code.
    pub start: fn(Vec<OsString>) -> Result<ExitCode>,
    /// The text that `--help` prints after the chore's name.
    pub help: ChoreHelp,
}

/// The text that `--help` prints after a chore's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChoreHelp {
    /// The table, with the name, the arguments and the description.
    Table,
    /// The chore itself, which receives the word.
    Chore,
}

const CHORES: &[Chore] = &[
    Chore {
        name: "run",
        arguments: "TASK… [OPTIONS]",
        about: "build what is needed, then `jaato run TASK…`",
        start: run::run_jaato,
        help: ChoreHelp::Chore,
    },
    Chore {
        name: "test",
        arguments: "[FILTER | --item NAME | --full]",
        about: "every check and test, of the full tier what changed; only some tests; all of it",
        start: test::run_tests,
        help: ChoreHelp::Table,
    },
    Chore {
        name: "setup",
        arguments: "[--model] [--outside]",
        about: "make ready what the tests need; says what is missing and how to get it",
        start: setup::run_setup,
        help: ChoreHelp::Table,
    },
    Chore {
        name: "build-plugins",
        arguments: "[--profile PROFILE] [--dest DIR]",
        about: "build all plugins and gather them where `jaato` finds them",
        start: build_plugins::run_build_plugins,
        help: ChoreHelp::Table,
    },
    Chore {
        name: "new-plugin",
        arguments: "NAME [--kind tool|gc|provider|environment] [--path DIR] [--sdk DIR]",
        about: "write a plugin crate that builds outside this workspace",
        start: new_plugin::run_new_plugin,
        help: ChoreHelp::Table,
    },
    Chore {
        name: "tidy",
        arguments: "",
        about: "check the rules of the house: dependencies, `unsafe`, names, sizes",
        start: tidy::run_tidy,
        help: ChoreHelp::Table,
    },
    Chore {
        name: "bench",
        arguments: "[NAME…]",
        about: "measure, and compare with the targets",
        start: measure::run_bench,
        help: ChoreHelp::Chore,
    },
    Chore {
        name: "accuracy",
        arguments: "[NAME…] [--install] [--user USER] [--house DIR] [--list]",
        about: "play real programs through the shell tools: results that come too early or too late",
        start: measure::run_accuracy,
        help: ChoreHelp::Table,
    },
    Chore {
        name: "models",
        arguments: "FILE DATE",
        about: "make the snapshot of what is known of models from models.dev's api.json, of a day",
        start: models::run_models,
        help: ChoreHelp::Table,
    },
    Chore {
        name: "check-macos",
        arguments: "",
        about: "let a nightly compiler look at the branches for macOS; nothing is run",
        start: check_macos::run_check_macos,
        help: ChoreHelp::Table,
    },
    Chore {
        name: "dist",
        arguments: "[--profile PROFILE] [--from HOUSE] [--dest DIR]",
        about: "build an archive, a Python wheel and an npm package for other machines",
        start: dist::run_dist,
        help: ChoreHelp::Table,
    },
];

/// The exit code for invalid arguments, as in `jaato` itself.
const EXIT_USAGE: u8 = 2;

/// Runs the chore that the process's first argument names.
pub fn run_chore() -> ExitCode {
    run_selected_chore(CHORES)
}

/// Runs one of these chores with the process's arguments. Prints errors to standard error.
pub fn run_selected_chore(chores: &[Chore]) -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    let Some(name) = words.next() else {
        print!("{}", help_text(chores));
        return ExitCode::SUCCESS;
    };
    if matches!(name.to_str(), Some("help" | "--help" | "-h")) {
        print!("{}", help_text(chores));
        return ExitCode::SUCCESS;
    }
    let Some(chore) = chores.iter().find(|chore| name == chore.name) else {
        eprintln!("error: unknown chore `{}`\n\n{}", name.to_string_lossy(), help_text(chores));
        return ExitCode::from(EXIT_USAGE);
    };
    let words: Vec<OsString> = words.collect();
    let asks_help = words.iter().any(|word| word == "--help" || word == "-h");
    if asks_help && chore.help == ChoreHelp::Table {
        println!("cargo xtask {} {}\n\n{}", chore.name, chore.arguments, chore.about);
        return ExitCode::SUCCESS;
    }
    match (chore.start)(words) {
        Ok(code) => code,
        Err(error) if error.is::<lexopt::Error>() => {
            eprintln!("error: {error}\nusage: cargo xtask {} {}", chore.name, chore.arguments);
            ExitCode::from(EXIT_USAGE)
        }
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn help_text(chores: &[Chore]) -> String {
    let mut text = String::from("Chores of the jaato workspace.\n\nusage: cargo xtask CHORE …\n\n");
    for chore in chores {
        let head = format!("{} {}", chore.name, chore.arguments);
        text.push_str(&format!("  {}\n      {}\n", head.trim_end(), chore.about));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_names_every_chore_once() {
        let text = help_text(CHORES);
        for chore in CHORES {
            let heads = text.lines().filter(|line| {
                line.starts_with("  ") && line.split_whitespace().next() == Some(chore.name)
            });
            assert_eq!(heads.count(), 1, "`{}` in\n{text}", chore.name);
        }
    }
}
