//! Tests of every row of the tables.

use std::collections::BTreeSet;

use super::programs::{find_program, program_rows, wrapper_table};
use super::{CommandLine, SimpleCommand, analyse_line};

#[test]
fn each_program_is_in_one_row() {
    let mut seen = BTreeSet::new();
    for row in program_rows() {
        for name in row.program_names() {
            assert!(seen.insert(name), "{name}");
            let mut of_row = BTreeSet::new();
            let subcommands = row.subcommands.iter().flat_map(|row| row.program_names());
            subcommands.for_each(|sub| assert!(of_row.insert(sub), "{name} {sub}"));
        }
    }
    assert!(seen.len() > 250, "{}", seen.len());
}

/// Every option of every row is accepted, but not with one more letter.
#[test]
fn each_listed_option_is_accepted_only_as_written() {
    for row in program_rows().flat_map(|row| std::iter::once(row).chain(&row.subcommands)) {
        let name = row.program_names().collect::<Vec<_>>().join(" ");
        for long in row.long_options() {
            let value = if long.ends_with('=') { "x" } else { "" };
            assert!(row.accepts_word(&format!("--{long}{value}")), "{name} --{long}");
            let unknown = format!("--{}zzz", long.trim_end_matches('='));
            assert!(!row.accepts_word(&unknown), "{name} {unknown}");
        }
        let letters: Vec<char> = row.short_options().chars().filter(|it| *it != ':').collect();
        let unlike: BTreeSet<char> = letters.iter().copied().collect();
        assert_eq!(letters.len(), unlike.len(), "{name} {letters:?}");
        letters
            .iter()
            .for_each(|letter| assert!(row.accepts_word(&format!("-{letter}")), "{letter}"));
        assert!(!row.accepts_word("-\u{7f}") && !row.accepts_word("--"), "{name}");
    }
}

/// A program that a row marks as reading is not a wrapper or a shell, and does not change the
/// meaning of words.
#[test]
fn programs_that_only_read_are_not_wrappers() {
    for row in program_rows().filter(|row| row.read.is_some()) {
        for name in row.program_names() {
            let known = wrapper_table();
            assert!(name == "command" || known.find_wrapper(name).is_none(), "{name}");
            assert!(!known.network.has_word(name) || row.is_lookup(), "{name}");
        }
    }
}

/// Each text in the table of code-running words is detected in a line with these words.
#[test]
fn each_listed_code_running_form_is_detected() {
    for (name, when) in wrapper_table().code_rows() {
        let words = when.replace('*', "");
        let line = CommandLine::Words(
            [name].into_iter().chain(words.split_whitespace()).map(str::to_owned).collect(),
        );
        let analysis = analyse_line(&line);
        assert!(analysis.hidden_program_doubt().is_some(), "{name} {when}");
    }
    for name in wrapper_table().changes_meaning.iter().chain(wrapper_table().runs_others.iter()) {
        let analysis = analyse_line(&CommandLine::Words(vec![name.to_owned(), "x".to_owned()]));
        assert!(analysis.hidden_program_doubt().is_some(), "{name}");
    }
    for name in wrapper_table().dangerous_variables() {
        let words = ["env".to_owned(), format!("{name}=x"), "ls".to_owned()];
        assert!(
            analyse_line(&CommandLine::Words(words.to_vec())).hidden_program_doubt().is_some(),
            "{name}"
        );
    }
}

#[test]
fn each_wrapper_runs_the_command_after_it() {
    for (name, between) in wrapper_table().wrapper_rows() {
        let words = [name].into_iter().chain(std::iter::repeat_n("1", between)).chain(["rm", "x"]);
        let analysis = analyse_line(&CommandLine::Words(words.map(str::to_owned).collect()));
        let found = analysis.commands.iter().any(|command| command.program_name() == "rm");
        assert!(
            found,
            "{name}: {:?}",
            analysis.commands.iter().map(SimpleCommand::command_text).collect::<Vec<_>>()
        );
    }
}

#[test]
fn option_abbreviations_and_clusters_do_not_bypass_the_check() {
    let sort = find_program("sort").unwrap();
    let (yes, no) = (
        ["-rn", "-k2", "-t,", "--reverse", "--key=2", "file", "-", "-k2o"],
        [
            "-o",
            "-ro",
            "-rofile",
            "--output=x",
            "--out",
            "--compress-program=x",
            "--comp=x",
            "-T",
            "--reverse=x",
            "--",
            "--r",
        ],
    );
    yes.iter().for_each(|word| assert!(sort.accepts_word(word), "{word}"));
    no.iter().for_each(|word| assert!(!sort.accepts_word(word), "{word}"));
}
