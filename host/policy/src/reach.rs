//! Decides whether a call reaches a path or a host that a rule denies or asks about.

use std::path::Path;

use jaato_types::PathGlob;

use crate::facts::{Facts, ShellPath};
use crate::matching::{Matched, unread, unread_lines};
use crate::shell::{self, Reach};
use crate::touched::possible_hosts;
use crate::{Glob, PathPattern, PathsResolved, expansion};

/// Matches a rule's path.
pub(crate) fn path(wanted: &PathPattern, facts: &Facts<'_>) -> Matched {
    let wanted = Wanted {
        path: &wanted.path,
        glob: PathGlob::new(&wanted.path),
        links_are_known: facts.call.resolved.is_some_and(PathsResolved::knows_patterns),
    };
    let mut named = facts.paths.iter().chain(&facts.undeclared_paths);
    if let Some(path) = named.find(|path| wanted.glob.covers(path)) {
        return Matched::Yes(Some(format!("`{}`", path.display())));
    }
    let names = facts.shell_paths.iter();
    let in_line = names.fold(Matched::No, |so_far, name| so_far.or(|| wanted.reached(name)));
    in_line.or(|| unclear(facts)).or(|| wanted.reached_by_undeclared(facts))
}

/// Matches unknown words of the command line, or unknown values of the arguments.
pub(crate) fn unclear(facts: &Facts<'_>) -> Matched {
    if facts.call.may_be_anywhere() {
        return Matched::Perhaps("it has more paths than jaato checks".to_owned());
    }
    facts.unclear_names.clone().map_or_else(|| unread_lines(facts), Matched::Perhaps)
}

/// A rule's path, prepared for comparing it with many names.
struct Wanted<'a> {
    path: &'a Path,
    glob: PathGlob,
    /// Whether the host has followed links among the names that patterns match.
    links_are_known: bool,
}

impl Wanted<'_> {
    fn is_below(&self, folder: &Path) -> bool {
        folder.components().next().is_some() && self.path.starts_with(folder)
    }

    /// Returns true if a name in a command line reaches the path.
    fn reached(&self, name: &ShellPath) -> Matched {
        let path = name.path.as_path();
        let (is_certain, is_reached) = match name.named.reach {
            Reach::Word => (true, self.glob.covers(path)),
            // `rm -r ~` also removes `~/.ssh`.
            Reach::Folder => (true, self.glob.covers(path) || self.is_below(path)),
            Reach::Piece => (false, self.glob.covers(path)),
            Reach::Below => (false, self.is_below(path)),
            // One of its names may be a link, unless the host has checked.
            Reach::Pattern => {
                (false, !self.links_are_known || expansion::may_reach(path, self.path))
            }
        };
        let about = || format!("`{}`", path.display());
        match (is_certain, is_reached) {
            (true, true) => Matched::Yes(Some(about())),
            (false, true) => Matched::Perhaps(about()),
            (_, false) if self.is_inside_text(&name.named.text) => Matched::Perhaps(about()),
            (_, false) => Matched::No,
        }
    }

    /// Returns true if the path may be inside a text. A program may extract a name from one: `sed
    /// '1r.ssh/key'`.
    fn is_inside_text(&self, text: &str) -> bool {
        let last = self.path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        last.starts_with('.') && last.len() > 2 && text.contains(last)
    }

    /// Matches undeclared strings. A foreign tool may do anything with a folder. A shipped tool
    /// that reads a folder leaves out denied files.
    fn reached_by_undeclared(&self, facts: &Facts<'_>) -> Matched {
        let call = facts.call;
        let written = facts.touched.writes.iter().map(|text| call.whole(text));
        let mut folders = written.chain(facts.undeclared_paths.iter().cloned());
        let mut names = facts.undeclared_names().iter().cloned();
        let possible = folders
            .find(|path| self.is_below(path))
            .or_else(|| names.find(|path| is_anything(path) || self.glob.covers(path)));
        possible.map_or(Matched::No, |path| Matched::Perhaps(format!("`{}`", path.display())))
    }
}

/// Returns true for the placeholder of names that are too many or too long to check.
fn is_anything(path: &Path) -> bool {
    path == Path::new(shell::ANYTHING)
}

/// Normalizes a rule's host for comparing it with the hosts of calls.
pub(crate) fn host_glob(wanted: &Glob) -> Glob {
    let written = wanted.as_str().to_ascii_lowercase();
    Glob::new(shell::canonical(&written).unwrap_or(written))
}

/// Matches a rule's host.
pub(crate) fn host(wanted: &Glob, facts: &Facts<'_>) -> Matched {
    let wanted = host_glob(wanted);
    let has_letters = wanted.as_str().contains(|letter: char| letter.is_ascii_alphanumeric());
    let is_local =
        |host: &str| host.starts_with("127.") || matches!(host, "::1" | "0.0.0.0" | "::");
    let names = |host: &str| {
        wanted.matches(host)
            || wanted.as_str() == "localhost" && is_local(host)
            || host == "localhost" && is_local(wanted.as_str())
    };
    // A pattern for every host does not match words that only look like hosts.
    let of_shell = facts
        .shell_hosts
        .iter()
        .filter(|named| (named.is_certain || has_letters) && names(&named.host));
    let certain = of_shell.clone().filter(|named| named.is_certain).map(|named| &named.host);
    let mut certain = facts.hosts.iter().filter(|host| names(host)).chain(certain);
    if let Some(host) = certain.next() {
        return Matched::Yes(Some(format!("`{host}`")));
    }
    if facts.has_ambiguous_hosts() {
        return Matched::Perhaps(shell::UNCLEAR_HOST.to_owned());
    }
    let texts = facts.touched.undeclared.iter().map(|it| it.text.as_str());
    let is_pattern = wanted.as_str().contains(['*', '?']);
    // A pattern would match any word.
    let undeclared = texts
        .flat_map(possible_hosts)
        .filter(|host| (!is_pattern || host.contains('.')) && names(host));
    let possible = of_shell.map(|named| named.host.clone()).chain(undeclared).next();
    possible.map_or_else(
        || facts.unclear_hosts.clone().map_or_else(|| unread(facts), Matched::Perhaps),
        |host| Matched::Perhaps(format!("`{host}`")),
    )
}
