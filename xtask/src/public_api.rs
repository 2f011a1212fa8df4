//! What authors of plugins use is the committed list: an accidental change of it is a red test.
//!
//! One list for each crate: each `pub` item of its sources on a line of its own, with its
//! signature, wherever it stands. `UPDATE_EXPECT=1 cargo test -p xtask public_api` writes the lists
//! anew; a line that is gone or different breaks the sources of plugins. No name is resolved: an
//! item that is `pub` in a private module and not exported is listed too.

mod list;
mod print;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use expect_test::expect_file;

/// The sources of a crate, in any order: the list is sorted.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
    found
}

/// The structs and enums that everybody sees.
fn type_names(lines: &[String]) -> BTreeSet<String> {
    let rests = lines.iter().filter_map(|line| {
        line.strip_prefix("pub struct ").or_else(|| line.strip_prefix("pub enum "))
    });
    rests.map(|rest| first_word(rest).to_owned()).collect()
}

/// The type that an `impl` is for, where it is one of a name.
fn target(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("impl")?;
    let rest = rest.split(" :: ").next().unwrap_or(rest);
    // Behind the parameters: `<T: A<B>> Name<T>`.
    let mut depth = 0;
    let behind = rest.char_indices().find(|(_, sign)| {
        depth += i32::from(*sign == '<') - i32::from(*sign == '>');
        depth == 0
    });
    let named = match rest.split_once(" for ") {
        Some((_, named)) => named,
        None => rest[behind.map_or(0, |(at, _)| at + 1)..].trim_start(),
    };
    Some(first_word(named)).filter(|name| !name.is_empty())
}

fn first_word(text: &str) -> &str {
    let end = text.find(|sign: char| !(sign.is_alphanumeric() || sign == '_'));
    &text[..end.unwrap_or(text.len())]
}

fn check(name: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../plugin-api").join(name);
    let mut lines = Vec::new();
    for source in sources(&folder.join("src")) {
        let tokens = fs::read_to_string(&source).unwrap().parse().unwrap();
        list::items(tokens, &mut lines);
    }
    lines.retain({
        let names = type_names(&lines);
        move |line| target(line).is_none_or(|name| names.contains(name))
    });
    lines.sort();
    expect_file![folder.join("public-api.txt")].assert_eq(&format!("{}\n", lines.join("\n")));
}

#[test]
fn an_impl_is_found_by_the_type_that_it_is_for() {
    for (line, name) in [
        ("impl<S: State<A>> Cx<S> :: pub fn state(&self) -> &S", Some("Cx")),
        ("impl Home :: pub fn a(&self)", Some("Home")),
        ("impl<T> From<T> for Kind<T>", Some("Kind")),
        ("impl State for ()", None),
        ("pub struct Home", None),
    ] {
        assert_eq!(target(line), name, "{line}");
    }
}

#[test]
fn the_types_are_the_committed_ones() {
    check("types");
}

#[test]
fn the_sdk_is_the_committed_one() {
    check("sdk");
}

#[test]
fn the_sdk_of_providers_is_the_committed_one() {
    check("sdk-provider");
}

#[test]
fn the_sdk_of_environments_is_the_committed_one() {
    check("sdk-environment");
}

#[test]
fn the_testkit_is_the_committed_one() {
    check("testkit");
}
