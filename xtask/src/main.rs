//! `cargo xtask`: the chores of this workspace, one file each.
//!
//! It compiles in seconds and needs nothing but a Rust toolchain; what else a chore wants is
//! looked for by [`setup`], which says what is missing instead of failing.

mod accuracy;
mod artifacts;
mod batch;
mod bench;
mod build_plugins;
mod check_macos;
mod child;
mod dist;
mod freeze;
mod gather;
mod new_plugin;
mod nightly;
#[cfg(test)]
mod public_api;
mod run;
mod setup;
mod test;
mod tidy;
mod workspace;

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::Result;

/// One thing that `cargo xtask` can do.
struct Chore {
    name: &'static str,
    arguments: &'static str,
    about: &'static str,
    /// Gets the words after the chore's name; answers the exit code.
    start: fn(Vec<OsString>) -> Result<ExitCode>,
}

const CHORES: &[Chore] = &[
    Chore {
        name: "run",
        arguments: "TASK… [OPTIONS]",
        about: "build what is needed, then `jaato run TASK…`",
        start: run::start,
    },
    Chore {
        name: "test",
        arguments: "[FILTER]",
        about: "every check and test there is; with FILTER only the tests whose names hold it",
        start: test::start,
    },
    Chore {
        name: "setup",
        arguments: "[--model]",
        about: "make ready what the tests need; says what is missing and how to get it",
        start: setup::start,
    },
    Chore {
        name: "build-plugins",
        arguments: "[--profile PROFILE] [--dest DIR]",
        about: "build all plugins and gather them where `jaato` finds them",
        start: build_plugins::start,
    },
    Chore {
        name: "new-plugin",
        arguments: "NAME [--kind tool|gc|provider] [--path DIR] [--sdk DIR]",
        about: "write a plugin crate that builds outside this workspace",
        start: new_plugin::start,
    },
    Chore {
        name: "tidy",
        arguments: "",
        about: "check the rules of the house: dependencies, `unsafe`, names, sizes",
        start: tidy::start,
    },
    Chore {
        name: "bench",
        arguments: "[NAME…] [--all]",
        about: "measure, and compare with the targets",
        start: bench::start,
    },
    Chore {
        name: "accuracy",
        arguments: "[NAME…] [--install] [--user USER] [--house DIR] [--list]",
        about: "play real programs through the shell tools: results that come too early or too late",
        start: accuracy::start,
    },
    Chore {
        name: "freeze",
        arguments: "",
        about: "copy the sources of the boundary to where a test builds a plugin from them",
        start: freeze::start,
    },
    Chore {
        name: "check-macos",
        arguments: "",
        about: "let a nightly compiler look at the branches for macOS; nothing is run",
        start: check_macos::start,
    },
    Chore {
        name: "dist",
        arguments: "[--profile PROFILE] [--from HOUSE] [--dest DIR]",
        about: "build the archive that is unpacked on other machines",
        start: dist::start,
    },
];

/// For words on the command line that make no sense; as in `jaato` itself.
const EXIT_USAGE: u8 = 2;

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    let Some(name) = words.next() else {
        print!("{}", help());
        return ExitCode::SUCCESS;
    };
    if matches!(name.to_str(), Some("help" | "--help" | "-h")) {
        print!("{}", help());
        return ExitCode::SUCCESS;
    }
    let Some(chore) = CHORES.iter().find(|chore| name == chore.name) else {
        eprintln!("error: there is no chore `{}`\n\n{}", name.to_string_lossy(), help());
        return ExitCode::from(EXIT_USAGE);
    };
    let words: Vec<OsString> = words.collect();
    // `run` hands everything on, its `--help` is `jaato`'s; `bench` has a list to show.
    let asks_help = words.iter().any(|word| word == "--help" || word == "-h");
    if asks_help && !matches!(chore.name, "run" | "bench") {
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

fn help() -> String {
    let mut text = String::from("Chores of the jaato workspace.\n\nusage: cargo xtask CHORE …\n\n");
    for chore in CHORES {
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
        let text = help();
        for chore in CHORES {
            let heads = text.lines().filter(|line| {
                line.starts_with("  ") && line.split_whitespace().next() == Some(chore.name)
            });
            assert_eq!(heads.count(), 1, "`{}` in\n{text}", chore.name);
        }
    }
}
