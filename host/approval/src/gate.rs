//! What decides whether a call may run before a person is asked.
//!
//! Plugins have no part in it: a guard denies a call or wants it asked, and that is looked at
//! beside what is decided here.

use std::path::{Path, PathBuf};

use futures_util::future::BoxFuture;
use jaato_policy::{Call, Decision, Rules, WorkspaceTrust, decide};
use jaato_types::files::ResolvedPath;

/// Decides about calls. A program that embeds jaato puts its own in place of [`RulesGate`]; what it
/// allows runs, so it is as trusted as the program.
///
/// ```
/// use jaato_approval::{Gate, RulesGate};
/// use jaato_policy::{Call, Decision, Outcome, Rules};
///
/// /// Asks about each call that the rules would allow, but for tools that change nothing.
/// struct Careful;
///
/// impl Gate for Careful {
///     fn decide(&self, rules: &Rules, call: &Call<'_>) -> Decision {
///         let decision = RulesGate.decide(rules, call);
///         match decision.outcome {
///             Outcome::Allow if !call.annotations.read_only => {
///                 Decision { outcome: Outcome::Ask, ..decision }
///             }
///             Outcome::Allow | Outcome::Ask | Outcome::Deny => decision,
///         }
///     }
/// }
/// ```
pub trait Gate: Send + Sync {
    /// Decides about a call. Must not block: it is asked while the rules are locked.
    fn decide(&self, rules: &Rules, call: &Call<'_>) -> Decision {
        decide(rules, call)
    }

    /// Returns where calls run, as far as it is known.
    fn place(&self) -> CallPlace {
        CallPlace::default()
    }

    /// Asks the execution environment where paths lead, one answer for each. `None` if there is
    /// none: rules then see paths as they are written.
    fn resolve<'a>(
        &'a self,
        paths: &'a [PathBuf],
    ) -> BoxFuture<'a, Option<Vec<Option<ResolvedPath>>>> {
        let _ = paths;
        Box::pin(std::future::ready(None))
    }

    /// Returns the names that a pattern of a shell may stand for; `None` if that is unknown, or if
    /// they are too many.
    fn expand(&self, pattern: &Path) -> Option<Vec<PathBuf>> {
        let _ = pattern;
        None
    }

    /// Tells whether the repository of the working directory configures nothing that `git` runs
    /// when it only reads.
    fn repository_is_plain(&self) -> bool {
        false
    }
}

/// Decides by the rules alone, and knows nothing of where calls run.
#[derive(Debug, Clone, Copy, Default)]
pub struct RulesGate;

impl Gate for RulesGate {}

/// Where calls run, as rules see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallPlace {
    /// Where relative paths start.
    pub directory: Option<PathBuf>,
    /// What `~` stands for.
    pub home: Option<PathBuf>,
    /// Whether the person trusts the workspace.
    pub workspace: WorkspaceTrust,
    /// The workspace's root.
    pub root: Option<PathBuf>,
    /// The folders with jaato's own files.
    pub own_folders: Vec<PathBuf>,
    /// What the execution environment is called, where it is not this machine.
    pub environment: Option<String>,
}

impl Default for CallPlace {
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
