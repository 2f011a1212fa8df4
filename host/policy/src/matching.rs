//! Decides whether a rule that denies or asks matches a call. Broad: one matching part is enough,
//! and a part that jaato cannot understand may match.

use std::path::{Path, PathBuf};

use jaato_types::PathGlob;

use crate::facts::Facts;
use crate::reach::{host, path, unclear};
use crate::shell::{self, DoubtCause, SimpleCommand, WordKind};
use crate::{Annotation, Call, CommandPattern, Conditions, Glob, JsonDigest, PluginSource, Rule};

/// The result of matching a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Matched {
    /// It does not match.
    No,
    /// It matches, because of this part of the call.
    Yes(Option<String>),
    /// It is unknown whether it matches, because of this part of the call.
    Perhaps(String),
}

impl Matched {
    pub(crate) fn is_certain(&self) -> bool {
        matches!(self, Self::Yes(_))
    }

    pub(crate) fn is_possible(&self) -> bool {
        !matches!(self, Self::No)
    }

    /// Returns the part of the call that matched.
    pub(crate) fn about(self) -> Option<String> {
        match self {
            Self::No => None,
            Self::Yes(about) => about,
            Self::Perhaps(about) => Some(about),
        }
    }

    /// Returns a match if both match.
    fn and(self, other: impl FnOnce() -> Self) -> Self {
        match self {
            Self::No => Self::No,
            Self::Yes(about) => match other() {
                Self::Yes(more) => Self::Yes(more.or(about)),
                rest => rest,
            },
            Self::Perhaps(about) => match other() {
                Self::No => Self::No,
                Self::Yes(_) | Self::Perhaps(_) => Self::Perhaps(about),
            },
        }
    }

    /// Returns a match if at least one matches.
    pub(crate) fn or(self, other: impl FnOnce() -> Self) -> Self {
        match self {
            Self::Yes(about) => Self::Yes(about),
            Self::No => other(),
            Self::Perhaps(about) => match other() {
                Self::Yes(more) => Self::Yes(more),
                Self::No | Self::Perhaps(_) => Self::Perhaps(about),
            },
        }
    }
}

/// Matches a rule that denies or asks.
pub(crate) fn matches(rule: &Rule, facts: &Facts<'_>) -> Matched {
    let when = &rule.when;
    if !speaks_of(when, facts.call) {
        return Matched::No;
    }
    promises(when, facts.call)
        .and(|| arguments(when, facts.call))
        .and(|| when.command.as_ref().map_or(Matched::Yes(None), |wanted| command(wanted, facts)))
        .and(|| when.path.as_ref().map_or(Matched::Yes(None), |wanted| path(wanted, facts)))
        .and(|| when.host.as_ref().map_or(Matched::Yes(None), |wanted| host(wanted, facts)))
        .and(|| if when.outside.is_empty() { Matched::Yes(None) } else { outside(when, facts) })
        .and(|| if when.compound { compound(facts) } else { Matched::Yes(None) })
        .and(|| {
            let wanted = when.signature.as_ref();
            wanted.map_or(Matched::Yes(None), |wanted| signature(wanted, facts))
        })
}

/// Matches the names of tool, plugin and agent, which are always known.
pub(crate) fn speaks_of(when: &Conditions, call: &Call<'_>) -> bool {
    let is = |wanted: &Option<Glob>, text: &str| {
        wanted.as_ref().is_none_or(|wanted| wanted.matches(text))
    };
    is(&when.tool, call.tool.as_str())
        && is(&when.plugin, call.plugin.as_str())
        && is(&when.agent_type, call.agent.agent_type)
        && is(&when.agent_name, call.agent.agent_name)
        && when.workspace.as_ref().is_none_or(|wanted| call.root == Some(&wanted.path))
        && when
            .exactly
            .as_ref()
            .is_none_or(|wanted| wanted.digest == JsonDigest::of(call.arguments))
        && when.definition.is_none_or(|wanted| call.definition == Some(wanted))
}

/// Matches the annotations of the tool. If an untrusted tool claims to be harmless, it is unknown
/// whether that is true.
pub(crate) fn promises(when: &Conditions, call: &Call<'_>) -> Matched {
    let promises = call.annotations;
    when.annotations.iter().fold(Matched::Yes(None), |so_far, &(annotation, wanted)| {
        so_far.and(|| {
            let (promised, harmless) = match annotation {
                Annotation::ReadOnly => (promises.read_only, true),
                Annotation::Destructive => (promises.destructive, false),
                Annotation::Idempotent => (promises.idempotent, true),
                Annotation::OpenWorld => (promises.open_world, false),
            };
            match call.source {
                _ if promised == wanted => Matched::Yes(None),
                PluginSource::Relayed | PluginSource::Elsewhere if wanted != harmless => {
                    Matched::Perhaps(format!("the annotations of plugin `{}`", call.plugin))
                }
                PluginSource::Shipped | PluginSource::Relayed | PluginSource::Elsewhere => {
                    Matched::No
                }
            }
        })
    })
}

/// Matches arguments by name. Each argument that a rule names must match.
pub(crate) fn arguments(when: &Conditions, call: &Call<'_>) -> Matched {
    let matched = |name: &str, wanted: &Glob| {
        let value = call.arguments.get(name)?;
        let text = match value.as_str() {
            Some(text) => text.to_owned(),
            None => value.to_string(),
        };
        wanted.matches(&text).then(|| format!("argument `{name}`"))
    };
    when.arguments.iter().fold(Matched::Yes(None), |so_far, (name, wanted)| {
        so_far.and(|| matched(name, wanted).map_or(Matched::No, |about| Matched::Yes(Some(about))))
    })
}

fn command(wanted: &CommandPattern, facts: &Facts<'_>) -> Matched {
    let of_line = facts.shell.as_ref().map_or(Matched::No, |analysis| {
        let commands = facts.distinct.iter().map(|&at| &analysis.commands[at]);
        let found =
            commands.fold(Matched::No, |so_far, command| so_far.or(|| runs(wanted, command)));
        found.or(|| match analysis.hidden() {
            Some(doubt) => Matched::Perhaps(doubt.what.clone()),
            None => Matched::No,
        })
    });
    of_line.or(|| {
        let mut commands = facts.undeclared_lines().iter().flat_map(|line| &line.commands);
        let found = commands.find(|command| runs(wanted, command).is_possible());
        let about = found.map(about_undeclared);
        about.map_or_else(|| unread_lines(facts), Matched::Perhaps)
    })
}

fn about_undeclared(command: &SimpleCommand) -> String {
    format!("`{}`, which the tool may run", command.text())
}

/// Matches a call with more values than jaato reads, which may touch anything.
pub(crate) fn unread(facts: &Facts<'_>) -> Matched {
    match facts.touched.everything {
        true => Matched::Perhaps("it has more arguments than jaato reads".to_owned()),
        false => Matched::No,
    }
}

/// As [`unread`], also for an undeclared text that is longer, or nested deeper, than the command
/// lines that jaato reads.
pub(crate) fn unread_lines(facts: &Facts<'_>) -> Matched {
    unread(facts).or(|| {
        let mut lines = facts.undeclared_lines().iter();
        match lines.any(|line| line.has(DoubtCause::Bound)) {
            true => Matched::Perhaps("it has a longer text than jaato reads".to_owned()),
            false => Matched::No,
        }
    })
}

/// Matches a simple command: the program by its last name, and the words in order, with any words
/// between them.
fn runs(wanted: &CommandPattern, command: &SimpleCommand) -> Matched {
    let Some((program, words)) = command.words.split_first() else { return Matched::No };
    // `git-push` is `git push`.
    let of_git = command.program_name().strip_prefix("git-");
    let subcommand = of_git.filter(|_| wanted.program == "git");
    if program.kind != WordKind::Literal
        || subcommand.is_none() && !is_program(&wanted.program, &program.text)
    {
        return Matched::No;
    }
    let about = || format!("`{}`", command.text());
    let is_word = |next: &Glob, text: &str| {
        next.matches(text) || shell::is_same(&wanted.program, next.as_str(), text)
    };
    let mut left = wanted.words.iter().map(|word| Glob::new(word.clone())).peekable();
    if let (Some(subcommand), Some(next)) = (subcommand, left.peek())
        && is_word(next, subcommand)
    {
        left.next();
    }
    let mut is_unclear = false;
    for word in words {
        let Some(next) = left.peek() else { break };
        match word.kind {
            WordKind::Literal if is_word(next, &word.text) => _ = left.next(),
            WordKind::Literal => {}
            WordKind::Glob | WordKind::Dynamic => is_unclear = true,
        }
    }
    match (left.peek(), is_unclear) {
        (None, _) => Matched::Yes(Some(about())),
        (Some(_), true) => Matched::Perhaps(about()),
        (Some(_), false) => Matched::No,
    }
}

/// Returns true if a program is the one in a rule, in any folder.
fn is_program(wanted: &str, called: &str) -> bool {
    if wanted.contains('/') {
        return Glob::new(wanted).matches(called);
    }
    let name = called.rsplit('/').next().unwrap_or(called);
    if wanted.contains(['*', '?']) {
        return Glob::new(wanted.to_ascii_lowercase()).matches(&name.to_ascii_lowercase());
    }
    wanted.eq_ignore_ascii_case(name)
}

/// Matches a call that names something outside of folders. Words of a command line count if they
/// look like paths.
fn outside(when: &Conditions, facts: &Facts<'_>) -> Matched {
    let is_written_as_path = |text: &str| text.starts_with(['~', '.']) || text.contains('/');
    let undeclared = facts.touched.undeclared.iter().filter(|it| is_written_as_path(&it.text));
    let undeclared: Vec<PathBuf> = undeclared.map(|it| facts.call.whole(&it.text)).collect();
    let folders: Vec<PathGlob> =
        when.outside.iter().map(|folder| PathGlob::new(&folder.path)).collect();
    let named = facts.paths.iter().chain(facts.shell_paths_written()).chain(&undeclared);
    let mut left = named.filter(|path| {
        path.as_path() != Path::new("/dev/null")
            && !folders.iter().any(|folder| folder.covers(path))
    });
    if let Some(path) = left.next() {
        return Matched::Yes(Some(format!("`{}`", path.display())));
    }
    unclear(facts)
}

fn compound(facts: &Facts<'_>) -> Matched {
    let Some(analysis) = &facts.shell else { return Matched::No };
    if analysis.is_plain() && analysis.commands.len() == 1 {
        return Matched::No;
    }
    let doubt = analysis.doubts.first().map(|doubt| doubt.what.clone());
    Matched::Yes(Some(doubt.unwrap_or_else(|| "several commands".to_owned())))
}

fn signature(wanted: &Glob, facts: &Facts<'_>) -> Matched {
    let signature = facts.signature();
    if wanted.matches(&signature) {
        Matched::Yes(Some(format!("`{signature}`")))
    } else {
        Matched::No
    }
}
