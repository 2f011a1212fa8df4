//! Decides whether a rule that denies or asks matches a call. Broad: one matching part is enough,
//! and a part that jaato cannot understand may match.

use std::path::{Path, PathBuf};

use jaato_types::PathGlob;

use crate::facts::PolicyFacts;
use crate::reached_targets::{match_host, match_path, match_unknown_values};
use crate::shell::{self, DoubtCause, ShellWordKind, SimpleCommand};
use crate::{
    AnnotationKind, CommandPattern, Glob, JsonDigest, PluginSource, PolicyCall, Rule,
    RuleConditions,
};

/// The result of matching a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RuleMatch {
    /// It does not match.
    No,
    /// It matches, because of this part of the call.
    Yes(Option<String>),
    /// It is unknown whether it matches, because of this part of the call.
    Perhaps(String),
}

impl RuleMatch {
    pub(crate) fn is_certain(&self) -> bool {
        matches!(self, Self::Yes(_))
    }

    pub(crate) fn is_possible(&self) -> bool {
        !matches!(self, Self::No)
    }

    /// Returns the part of the call that matched.
    pub(crate) fn matched_part(self) -> Option<String> {
        match self {
            Self::No => None,
            Self::Yes(about) => about,
            Self::Perhaps(about) => Some(about),
        }
    }

    /// Returns a match if both match.
    fn and_match(self, other: impl FnOnce() -> Self) -> Self {
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
    pub(crate) fn or_match(self, other: impl FnOnce() -> Self) -> Self {
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
pub(crate) fn match_rule(rule: &Rule, facts: &PolicyFacts<'_>) -> RuleMatch {
    let when = &rule.when;
    if !matches_names(when, facts.call) {
        return RuleMatch::No;
    }
    match_annotations(when, facts.call)
        .and_match(|| match_arguments(when, facts.call))
        .and_match(|| {
            when.command
                .as_ref()
                .map_or(RuleMatch::Yes(None), |wanted| match_command(wanted, facts))
        })
        .and_match(|| {
            when.path.as_ref().map_or(RuleMatch::Yes(None), |wanted| match_path(wanted, facts))
        })
        .and_match(|| {
            when.host.as_ref().map_or(RuleMatch::Yes(None), |wanted| match_host(wanted, facts))
        })
        .and_match(|| {
            if when.outside.is_empty() {
                RuleMatch::Yes(None)
            } else {
                match_outside_paths(when, facts)
            }
        })
        .and_match(
            || if when.compound { match_compound_command(facts) } else { RuleMatch::Yes(None) },
        )
        .and_match(|| {
            let wanted = when.signature.as_ref();
            wanted.map_or(RuleMatch::Yes(None), |wanted| match_signature(wanted, facts))
        })
}

/// Matches the names of tool, plugin and agent, which are always known.
pub(crate) fn matches_names(when: &RuleConditions, call: &PolicyCall<'_>) -> bool {
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
            .is_none_or(|wanted| wanted.digest == JsonDigest::from_json(call.arguments))
        && when.definition.is_none_or(|wanted| call.definition == Some(wanted))
}

/// Matches the annotations of the tool. If an untrusted tool claims to be harmless, it is unknown
/// whether that is true.
pub(crate) fn match_annotations(when: &RuleConditions, call: &PolicyCall<'_>) -> RuleMatch {
    let promises = call.annotations;
    when.annotations.iter().fold(RuleMatch::Yes(None), |so_far, &(annotation, wanted)| {
        so_far.and_match(|| {
            let (promised, harmless) = match annotation {
                AnnotationKind::ReadOnly => (promises.read_only, true),
                AnnotationKind::Destructive => (promises.destructive, false),
                AnnotationKind::Idempotent => (promises.idempotent, true),
                AnnotationKind::OpenWorld => (promises.open_world, false),
            };
            match call.source {
                _ if promised == wanted => RuleMatch::Yes(None),
                PluginSource::Relayed | PluginSource::Elsewhere if wanted != harmless => {
                    RuleMatch::Perhaps(format!("the annotations of plugin `{}`", call.plugin))
                }
                PluginSource::Shipped | PluginSource::Relayed | PluginSource::Elsewhere => {
                    RuleMatch::No
                }
            }
        })
    })
}

/// Matches arguments by name. Each argument that a rule names must match.
pub(crate) fn match_arguments(when: &RuleConditions, call: &PolicyCall<'_>) -> RuleMatch {
    let matched = |name: &str, wanted: &Glob| {
        let value = call.arguments.get(name)?;
        let text = match value.as_str() {
            Some(text) => text.to_owned(),
            None => value.to_string(),
        };
        wanted.matches(&text).then(|| format!("argument `{name}`"))
    };
    when.arguments.iter().fold(RuleMatch::Yes(None), |so_far, (name, wanted)| {
        so_far.and_match(|| {
            matched(name, wanted).map_or(RuleMatch::No, |about| RuleMatch::Yes(Some(about)))
        })
    })
}

fn match_command(wanted: &CommandPattern, facts: &PolicyFacts<'_>) -> RuleMatch {
    let of_line = facts.shell.as_ref().map_or(RuleMatch::No, |analysis| {
        let commands = facts.distinct.iter().map(|&at| &analysis.commands[at]);
        let found = commands.fold(RuleMatch::No, |so_far, command| {
            so_far.or_match(|| match_simple_command(wanted, command))
        });
        found.or_match(|| match analysis.hidden_program_doubt() {
            Some(doubt) => RuleMatch::Perhaps(doubt.what.clone()),
            None => RuleMatch::No,
        })
    });
    of_line.or_match(|| {
        let mut commands = facts.undeclared_lines().iter().flat_map(|line| &line.commands);
        let found = commands.find(|command| match_simple_command(wanted, command).is_possible());
        let about = found.map(describe_undeclared);
        about.map_or_else(|| match_unread_lines(facts), RuleMatch::Perhaps)
    })
}

fn describe_undeclared(command: &SimpleCommand) -> String {
    format!("`{}`, which the tool may run", command.command_text())
}

/// Matches a call with more values than jaato reads, which may touch anything.
pub(crate) fn match_unread_values(facts: &PolicyFacts<'_>) -> RuleMatch {
    match facts.touched.everything {
        true => RuleMatch::Perhaps("it has more arguments than jaato reads".to_owned()),
        false => RuleMatch::No,
    }
}

/// As [`match_unread_values`], also for an undeclared text that is longer, or nested deeper, than
/// the command lines that jaato reads.
pub(crate) fn match_unread_lines(facts: &PolicyFacts<'_>) -> RuleMatch {
    match_unread_values(facts).or_match(|| {
        let mut lines = facts.undeclared_lines().iter();
        match lines.any(|line| line.has_cause(DoubtCause::Bound)) {
            true => RuleMatch::Perhaps("it has a longer text than jaato reads".to_owned()),
            false => RuleMatch::No,
        }
    })
}

/// Matches a simple command: the program by its last name, and the words in order, with any words
/// between them.
fn match_simple_command(wanted: &CommandPattern, command: &SimpleCommand) -> RuleMatch {
    let Some((program, words)) = command.words.split_first() else { return RuleMatch::No };
    // `git-push` is `git push`.
    let of_git = command.program_name().strip_prefix("git-");
    let subcommand = of_git.filter(|_| wanted.program == "git");
    if program.kind != ShellWordKind::Literal
        || subcommand.is_none() && !is_program(&wanted.program, &program.text)
    {
        return RuleMatch::No;
    }
    let about = || format!("`{}`", command.command_text());
    let is_word = |next: &Glob, text: &str| {
        next.matches(text) || shell::is_same_subcommand(&wanted.program, next.as_str(), text)
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
            ShellWordKind::Literal if is_word(next, &word.text) => _ = left.next(),
            ShellWordKind::Literal => {}
            ShellWordKind::Glob | ShellWordKind::Dynamic => is_unclear = true,
        }
    }
    match (left.peek(), is_unclear) {
        (None, _) => RuleMatch::Yes(Some(about())),
        (Some(_), true) => RuleMatch::Perhaps(about()),
        (Some(_), false) => RuleMatch::No,
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
fn match_outside_paths(when: &RuleConditions, facts: &PolicyFacts<'_>) -> RuleMatch {
    let is_written_as_path = |text: &str| text.starts_with(['~', '.']) || text.contains('/');
    let undeclared = facts.touched.undeclared.iter().filter(|it| is_written_as_path(&it.text));
    let undeclared: Vec<PathBuf> =
        undeclared.map(|it| facts.call.absolute_path(&it.text)).collect();
    let folders: Vec<PathGlob> =
        when.outside.iter().map(|folder| PathGlob::new(&folder.path)).collect();
    let named = facts.paths.iter().chain(facts.shell_paths_written()).chain(&undeclared);
    let mut left = named.filter(|path| {
        path.as_path() != Path::new("/dev/null")
            && !folders.iter().any(|folder| folder.is_path_match(path))
    });
    if let Some(path) = left.next() {
        return RuleMatch::Yes(Some(format!("`{}`", path.display())));
    }
    match_unknown_values(facts)
}

fn match_compound_command(facts: &PolicyFacts<'_>) -> RuleMatch {
    let Some(analysis) = &facts.shell else { return RuleMatch::No };
    if analysis.is_plain() && analysis.commands.len() == 1 {
        return RuleMatch::No;
    }
    let doubt = analysis.doubts.first().map(|doubt| doubt.what.clone());
    RuleMatch::Yes(Some(doubt.unwrap_or_else(|| "several commands".to_owned())))
}

fn match_signature(wanted: &Glob, facts: &PolicyFacts<'_>) -> RuleMatch {
    let signature = facts.call_signature();
    if wanted.matches(&signature) {
        RuleMatch::Yes(Some(format!("`{signature}`")))
    } else {
        RuleMatch::No
    }
}
