//! Decides whether a call reaches a path or a host that a rule denies or asks about.

use std::path::Path;

use jaato_types::PathGlob;

use crate::facts::{PolicyFacts, ShellPath};
use crate::matching::{RuleMatch, match_unread_lines, match_unread_values};
use crate::shell::{self, NameReach};
use crate::touched_targets::possible_hosts;
use crate::{Glob, PathPattern, ResolvedCallPaths, expansion};

/// Matches a rule's path.
pub(crate) fn match_path(wanted: &PathPattern, facts: &PolicyFacts<'_>) -> RuleMatch {
    let wanted = PreparedRulePath {
        path: &wanted.path,
        glob: PathGlob::new(&wanted.path),
        links_are_known: facts.call.resolved.is_some_and(ResolvedCallPaths::has_known_patterns),
    };
    let mut named = facts.paths.iter().chain(&facts.undeclared_paths);
    if let Some(path) = named.find(|path| wanted.glob.is_path_match(path)) {
        return RuleMatch::Yes(Some(format!("`{}`", path.display())));
    }
    let names = facts.shell_paths.iter();
    let in_line =
        names.fold(RuleMatch::No, |so_far, name| so_far.or_match(|| wanted.match_name(name)));
    in_line
        .or_match(|| match_unknown_values(facts))
        .or_match(|| wanted.match_undeclared_text(facts))
}

/// Matches unknown words of the command line, or unknown values of the arguments.
pub(crate) fn match_unknown_values(facts: &PolicyFacts<'_>) -> RuleMatch {
    if facts.call.may_touch_anything() {
        return RuleMatch::Perhaps("it has more paths than jaato checks".to_owned());
    }
    facts.unclear_names.clone().map_or_else(|| match_unread_lines(facts), RuleMatch::Perhaps)
}

/// A rule's path, prepared for comparing it with many names.
struct PreparedRulePath<'a> {
    path: &'a Path,
    glob: PathGlob,
    /// Whether the host has followed links among the names that patterns match.
    links_are_known: bool,
}

impl PreparedRulePath<'_> {
    fn is_below(&self, folder: &Path) -> bool {
        folder.components().next().is_some() && self.path.starts_with(folder)
    }

    /// Returns true if a name in a command line reaches the path.
    fn match_name(&self, name: &ShellPath) -> RuleMatch {
        let path = name.path.as_path();
        let (is_certain, is_reached) = match name.named.reach {
            NameReach::Word => (true, self.glob.is_path_match(path)),
            // `rm -r ~` also removes `~/.ssh`.
            NameReach::Folder => (true, self.glob.is_path_match(path) || self.is_below(path)),
            NameReach::Piece => (false, self.glob.is_path_match(path)),
            NameReach::Below => (false, self.is_below(path)),
            // One of its names may be a link, unless the host has checked.
            NameReach::Pattern => {
                (false, !self.links_are_known || expansion::may_reach_path(path, self.path))
            }
        };
        let about = || format!("`{}`", path.display());
        match (is_certain, is_reached) {
            (true, true) => RuleMatch::Yes(Some(about())),
            (false, true) => RuleMatch::Perhaps(about()),
            (_, false) if self.is_inside_text(&name.named.text) => RuleMatch::Perhaps(about()),
            (_, false) => RuleMatch::No,
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
    fn match_undeclared_text(&self, facts: &PolicyFacts<'_>) -> RuleMatch {
        let call = facts.call;
        let written = facts.touched.writes.iter().map(|text| call.absolute_path(text));
        let mut folders = written.chain(facts.undeclared_paths.iter().cloned());
        let mut names = facts.undeclared_names().iter().cloned();
        let possible = folders.find(|path| self.is_below(path)).or_else(|| {
            names.find(|path| is_any_path_placeholder(path) || self.glob.is_path_match(path))
        });
        possible.map_or(RuleMatch::No, |path| RuleMatch::Perhaps(format!("`{}`", path.display())))
    }
}

/// Returns true for the placeholder of names that are too many or too long to check.
fn is_any_path_placeholder(path: &Path) -> bool {
    path == Path::new(shell::ANYTHING)
}

/// Normalizes a rule's host for comparing it with the hosts of calls.
pub(crate) fn host_glob(wanted: &Glob) -> Glob {
    let written = wanted.as_str().to_ascii_lowercase();
    Glob::new(shell::canonical_host(&written).unwrap_or(written))
}

/// Matches a rule's host.
pub(crate) fn match_host(wanted: &Glob, facts: &PolicyFacts<'_>) -> RuleMatch {
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
        return RuleMatch::Yes(Some(format!("`{host}`")));
    }
    if facts.has_ambiguous_hosts() {
        return RuleMatch::Perhaps(shell::UNCLEAR_HOST.to_owned());
    }
    let texts = facts.touched.undeclared.iter().map(|it| it.text.as_str());
    let is_pattern = wanted.as_str().contains(['*', '?']);
    // A pattern would match any word.
    let undeclared = texts
        .flat_map(possible_hosts)
        .filter(|host| (!is_pattern || host.contains('.')) && names(host));
    let possible = of_shell.map(|named| named.host.clone()).chain(undeclared).next();
    possible.map_or_else(
        || {
            facts
                .unclear_hosts
                .clone()
                .map_or_else(|| match_unread_values(facts), RuleMatch::Perhaps)
        },
        |host| RuleMatch::Perhaps(format!("`{host}`")),
    )
}
