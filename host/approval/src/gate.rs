//! Decides about a call before the user is asked.
//!
//! Plugins have no part in this decision. A guard, which can deny a call or want the user to
//! decide, is asked separately.

use std::path::{Path, PathBuf};

use futures_util::future::BoxFuture;
use jaato_policy::{Decision, PolicyCall, Rules, WorkspaceTrust, decide};
use jaato_types::files::ResolvedPath;

/// Decides about calls. A program that embeds jaato can replace [`RulesGate`] with its own, which
/// jaato trusts like the program itself.
///
/// ```
/// use jaato_approval::{CallGate, RulesGate};
/// use jaato_policy::{PolicyCall, Decision, RuleOutcome, Rules};
///
/// /// Asks about each call that the rules would allow, but for tools that change nothing.
/// struct Careful;
///
/// impl CallGate for Careful {
///     fn decide(&self, rules: &Rules, call: &PolicyCall<'_>) -> Decision {
///         let decision = RulesGate.decide(rules, call);
///         match decision.outcome {
///             RuleOutcome::Allow if !call.annotations.read_only => {
///                 Decision { outcome: RuleOutcome::Ask, ..decision }
///             }
///             RuleOutcome::Allow | RuleOutcome::Ask | RuleOutcome::Deny => decision,
///         }
///     }
/// }
/// ```
pub trait CallGate: Send + Sync {
    /// Decides about a call. Must not block, because the rules are locked.
    fn decide(&self, rules: &Rules, call: &PolicyCall<'_>) -> Decision {
        decide(rules, call)
    }

    /// Returns the place where calls run, as far as it is known.
    fn call_environment(&self) -> CallEnvironment {
        CallEnvironment::default()
    }

    /// Asks the execution environment for the targets of paths, one result for each. Returns `None`
    /// without an environment. Rules then see paths as they are written.
    fn resolve_paths<'a>(
        &'a self,
        paths: &'a [PathBuf],
    ) -> BoxFuture<'a, Option<Vec<Option<ResolvedPath>>>> {
        let _ = paths;
        Box::pin(std::future::ready(None))
    }

    /// Returns the names that a shell pattern may match. Returns `None` if they are unknown or too
    /// many.
    fn expand_pattern(&self, pattern: &Path) -> Option<Vec<PathBuf>> {
        let _ = pattern;
        None
    }

    /// Returns true if the repository of the working directory configures nothing that `git` runs
    /// when it only reads.
    fn is_plain_repository(&self) -> bool {
        false
    }
}

/// Decides only by the rules, without knowing where calls run.
#[derive(Debug, Clone, Copy, Default)]
pub struct RulesGate;

impl CallGate for RulesGate {}

/// The place where calls run, as rules see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallEnvironment {
    /// The base of relative paths.
    pub directory: Option<PathBuf>,
    /// The home folder, for `~`.
    pub home: Option<PathBuf>,
    /// Whether the user trusts the workspace.
    pub workspace: WorkspaceTrust,
    /// The workspace's root.
    pub root: Option<PathBuf>,
    /// The folders with jaato's own files.
    pub own_folders: Vec<PathBuf>,
    /// The name of the execution environment, if it is not this machine.
    pub environment: Option<String>,
}

impl Default for CallEnvironment {
    fn default() -> Self {
        Self {
            directory: None,
            home: None,
            workspace: WorkspaceTrust::Untrusted,
            root: None,
            own_folders: Vec::new(),
            environment: None,
        }
    }
}
