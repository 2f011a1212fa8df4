//! Whether a rule that forbids or asks matches a call. Generous: one part that matches is enough,
//! and what cannot be read may match.

use std::path::{Path, PathBuf};

use jaato_types::PathGlob;

use crate::facts::Facts;
use crate::shell::{Analysis, SimpleCommand, WordKind};
use crate::touched::possible_hosts;
use crate::{
    Annotation, ArgumentsDigest, CommandPattern, Conditions, Glob, PathPattern, PluginSource, Rule,
};

/// What came of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Matched {
    /// It does not match.
    No,
    /// It matches, because of this part of the call.
    Yes(Option<String>),
    /// Nobody can tell, because of this part of the call.
    Perhaps(String),
}

impl Matched {
    pub(crate) fn is_certain(&self) -> bool {
        matches!(self, Self::Yes(_))
    }

    pub(crate) fn is_possible(&self) -> bool {
        !matches!(self, Self::No)
    }

    /// What of the call it is about.
    pub(crate) fn about(self) -> Option<String> {
        match self {
            Self::No => None,
            Self::Yes(about) => about,
            Self::Perhaps(about) => Some(about),
        }
    }

    /// Both must match.
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

    /// One that matches is enough.
    fn or(self, other: impl FnOnce() -> Self) -> Self {
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

/// Matches a rule that forbids or asks.
pub(crate) fn matches(rule: &Rule, facts: &Facts<'_>) -> Matched {
    let when = &rule.when;
    if !speaks_of(when, facts) {
        return Matched::No;
    }
    promises(when, facts)
        .and(|| arguments(when, facts))
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

/// Matches what a rule says of the names of tool and agent: nothing of that can be unclear.
pub(crate) fn speaks_of(when: &Conditions, facts: &Facts<'_>) -> bool {
    let call = facts.call;
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
            .is_none_or(|wanted| wanted.digest == ArgumentsDigest::of(call.arguments))
}

/// Matches what the tool promises. Of a stranger's tool that promises to do no harm nobody can tell
/// whether that is true.
pub(crate) fn promises(when: &Conditions, facts: &Facts<'_>) -> Matched {
    let (call, promises) = (facts.call, facts.call.annotations);
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
                    Matched::Perhaps(format!("what plugin `{}` says of itself", call.plugin))
                }
                PluginSource::Shipped | PluginSource::Relayed | PluginSource::Elsewhere => {
                    Matched::No
                }
            }
        })
    })
}

/// Matches arguments by name. Each that a rule names must match.
pub(crate) fn arguments(when: &Conditions, facts: &Facts<'_>) -> Matched {
    let matched = |name: &str, wanted: &Glob| {
        let value = facts.call.arguments.get(name)?;
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
        found.map_or_else(|| unread(facts), |command| Matched::Perhaps(about_undeclared(command)))
    })
}

fn about_undeclared(command: &SimpleCommand) -> String {
    format!("`{}`, which the tool may run", command.text())
}

/// A call with more values than are read may touch anything.
fn unread(facts: &Facts<'_>) -> Matched {
    match facts.touched.everything {
        true => Matched::Perhaps("it has more arguments than jaato reads".to_owned()),
        false => Matched::No,
    }
}

/// Whether a simple command is one that a rule speaks of: the program by its last name, and the
/// words in their order, whatever stands between them.
fn runs(wanted: &CommandPattern, command: &SimpleCommand) -> Matched {
    let Some((program, words)) = command.words.split_first() else { return Matched::No };
    if program.kind != WordKind::Literal || !is_program(&wanted.program, &program.text) {
        return Matched::No;
    }
    let about = || format!("`{}`", command.text());
    let mut left = wanted.words.iter().map(|word| Glob::new(word.clone())).peekable();
    let mut is_unclear = false;
    for word in words {
        let Some(next) = left.peek() else { break };
        match word.kind {
            WordKind::Literal if next.matches(&word.text) => _ = left.next(),
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

/// Tells whether a program is the one that a rule names, wherever it lies.
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

fn path(wanted: &PathPattern, facts: &Facts<'_>) -> Matched {
    let takes_folders = facts.shell.as_ref().is_some_and(|analysis| analysis.takes_folders());
    let pattern = PathGlob::new(&wanted.path);
    let mut named = facts.paths.iter().chain(&facts.undeclared_paths);
    let named = named.find(|path| pattern.covers(path));
    let in_line = || {
        // `rm -r ~` takes `~/.ssh` with it.
        let is_above = |path: &Path| takes_folders && is_above(wanted, path);
        facts.shell_paths.iter().find(|path| pattern.covers(path) || is_above(path))
    };
    if let Some(path) = named.or_else(in_line) {
        return Matched::Yes(Some(format!("`{}`", path.display())));
    }
    unclear(facts).or(|| {
        let call = facts.call;
        let written = facts.touched.writes.iter().map(|text| call.whole(text));
        // What a foreign tool does with a folder is not known. A shipped tool that reads one leaves
        // out what is denied.
        let mut folders = written.chain(facts.undeclared_paths.iter().cloned());
        let words = facts.undeclared_lines().iter().flat_map(Analysis::values);
        let mut words = words.map(|word| call.whole(&word));
        let possible = folders
            .find(|path| is_above(wanted, path))
            .or_else(|| words.find(|path| pattern.covers(path)));
        possible.map_or(Matched::No, |path| Matched::Perhaps(format!("`{}`", path.display())))
    })
}

/// Words of the command line, or values of the arguments, that are not known.
fn unclear(facts: &Facts<'_>) -> Matched {
    let doubt = facts.shell.as_ref().and_then(|analysis| analysis.unclear_words());
    doubt.map_or_else(|| unread(facts), |doubt| Matched::Perhaps(doubt.what.clone()))
}

/// Tells whether a path is the one that a rule names, or lies below it.
pub(crate) fn is_at_or_below(wanted: &PathPattern, path: &Path) -> bool {
    PathGlob::new(&wanted.path).covers(path)
}

/// Tells whether a folder holds what a rule names.
fn is_above(wanted: &PathPattern, folder: &Path) -> bool {
    folder.components().next().is_some() && wanted.path.starts_with(folder)
}

/// Matches a call that names something outside of folders. Words of a command line count where they
/// look like paths.
fn outside(when: &Conditions, facts: &Facts<'_>) -> Matched {
    let is_written_as_path = |text: &str| text.starts_with(['~', '.']) || text.contains('/');
    let undeclared = facts.touched.undeclared.iter().filter(|it| is_written_as_path(&it.text));
    let undeclared: Vec<PathBuf> = undeclared.map(|it| facts.call.whole(&it.text)).collect();
    let named = facts.paths.iter().chain(facts.shell_paths_written()).chain(&undeclared);
    let mut left = named.filter(|path| {
        path.as_path() != Path::new("/dev/null")
            && !when.outside.iter().any(|folder| is_at_or_below(folder, path))
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

fn host(wanted: &Glob, facts: &Facts<'_>) -> Matched {
    let wanted = Glob::new(wanted.as_str().to_ascii_lowercase());
    if let Some(host) =
        facts.hosts.iter().chain(&facts.shell_hosts).find(|host| wanted.matches(host))
    {
        return Matched::Yes(Some(format!("`{host}`")));
    }
    unclear(facts).or(|| {
        let is_pattern = wanted.as_str().contains(['*', '?']);
        let texts = facts.touched.undeclared.iter().map(|it| it.text.as_str());
        let mut hosts = texts.flat_map(possible_hosts);
        // A pattern would match any word.
        let found = hosts.find(|host| (!is_pattern || host.contains('.')) && wanted.matches(host));
        found.map_or(Matched::No, |host| Matched::Perhaps(format!("`{host}`")))
    })
}

fn signature(wanted: &Glob, facts: &Facts<'_>) -> Matched {
    let signature = facts.signature();
    if wanted.matches(&signature) {
        Matched::Yes(Some(format!("`{signature}`")))
    } else {
        Matched::No
    }
}
