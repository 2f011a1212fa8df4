//! Execution environments: set up when a tool first needs one, shared by sessions, taken down with
//! the last session.
//!
//! A session has one environment, and all its tools' requests about files, programs and terminals
//! go to that plugin. Every running program and open file has a number that only its own session
//! may use.
//!
//! Invariants: an environment is never set up twice at a time and is torn down once. If its worker
//! died, the environment is set up again, and the session gets a notice. Resources close before the
//! environment, in reverse order.

mod access;
mod describe;
mod member;
mod options;
mod outputs;
mod resources;
mod scope;
mod stream;
mod terminals;

use std::collections::HashMap;
use std::sync::Arc;

use jaato_instances::PluginCaller;
use jaato_terminals::SharedTerminals;
use jaato_types::{Description, Error, ErrorKind, PluginName, SessionId};
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Map, Value};

pub use describe::EnvironmentListing;
pub use member::{EnvironmentMember, SessionFileLimits, is_operation};
pub use outputs::{KeepOutput, KeptOutputs, SessionOutputs};
pub use resources::{EnvironmentResources, is_operation as is_resource_operation};
pub use scope::{EnvironmentChoice, EnvironmentScope};

use access::SessionEnvironment;
pub use options::parse_settings;

use options::EnvironmentOptions;
use terminals::EnvironmentTerminals;

use crate::outputs::OutputFolder;
use crate::processes::ProgramRegistry;

/// Maximum number of close errors that are kept for the user. The log has all of them.
const PROBLEMS_MAX: usize = 64;

/// The environments of all sessions.
pub struct Environments {
    /// Calls the environments' plugins.
    plugins: Arc<PluginCaller>,
    /// The terminals that users see and join.
    terminals: Arc<SharedTerminals>,
    /// Files for outputs on this machine.
    outputs: Arc<OutputFolder>,
    /// Programs on this machine, as prepared by environments.
    processes: Arc<ProgramRegistry>,
    members: Mutex<HashMap<SessionId, Arc<EnvironmentMember>>>,
    problems: Mutex<Vec<String>>,
}

/// An execution environment that several sessions may share by starting with it. It is set up when
/// a tool first needs it, and taken down when the last session ends.
#[derive(Clone)]
pub struct SharedEnvironment(Arc<EnvironmentScope>);

impl Environments {
    /// Creates the environments without any session, and connects `terminals` to them.
    pub fn new(
        plugins: Arc<PluginCaller>,
        terminals: Arc<SharedTerminals>,
        outputs: Arc<OutputFolder>,
        processes: Arc<ProgramRegistry>,
    ) -> Arc<Self> {
        let (members, problems) = (Mutex::default(), Mutex::default());
        let own = Arc::new(Self { plugins, terminals, outputs, processes, members, problems });
        let sessions = EnvironmentTerminals::for_environments(&own);
        own.terminals.set_sessions(Arc::new(sessions));
        own
    }

    /// Adds a session to an environment.
    fn add_member(&self, session: &SessionId, scope: Arc<EnvironmentScope>) {
        let member = Arc::new(EnvironmentMember::new(scope, session.clone()));
        self.lock_members().insert(session.clone(), member);
    }

    /// Returns a session's place in its environment.
    fn member_of(&self, session: &SessionId) -> Option<Arc<EnvironmentMember>> {
        self.lock_members().get(session).cloned()
    }

    /// Closes the resources of a session's plugins while the plugins and the environment still
    /// exist.
    pub async fn close_resources(&self, session: &SessionId) {
        let Some(member) = self.member_of(session) else { return };
        self.record_problems(member.close_resources().await);
    }

    /// Records errors from closing resources and taking down environments.
    fn record_problems(&self, problems: Vec<String>) {
        for problem in problems {
            self.plugins.log.write_line(1, "host", &problem);
            let mut told = self.problems.lock();
            if told.len() < PROBLEMS_MAX {
                told.push(problem);
            }
        }
    }

    /// Returns the errors recorded so far and clears them.
    pub fn take_problems(&self) -> Vec<String> {
        std::mem::take(&mut *self.problems.lock())
    }

    /// Ends what a session has in its environment. The last session also ends the environment.
    pub async fn leave_environment(self: &Arc<Self>, session: &SessionId) {
        let member = self.lock_members().remove(session);
        if let Some(member) = member {
            member.end_membership(self).await;
        }
    }

    /// Ends all environments.
    pub async fn close(self: &Arc<Self>) {
        let sessions: Vec<_> = self.lock_members().keys().cloned().collect();
        for session in sessions {
            self.close_resources(&session).await;
            self.leave_environment(&session).await;
        }
    }

    fn lock_members(&self) -> MutexGuard<'_, HashMap<SessionId, Arc<EnvironmentMember>>> {
        self.members.lock()
    }
}

/// Finds the plugin of the environment that the user named, and checks the options.
fn choose_environment(
    host: &Environments,
    name: &str,
    options: Map<String, Value>,
) -> Result<EnvironmentChoice, Error> {
    let plugin = with_environment_options(host, name, |plugin, known| {
        known.check_options(&options)?;
        Ok(plugin.clone())
    })?;
    Ok(EnvironmentChoice { name: name.to_owned(), plugin, options, directory: None })
}

/// Finds the plugin of the environment that the user named, and the description of its settings.
fn with_environment_options<T>(
    host: &Environments,
    name: &str,
    work: impl FnOnce(&PluginName, &EnvironmentOptions<'_>) -> Result<T, Error>,
) -> Result<T, Error> {
    let registry = host.plugins.registry();
    let Some(entry) = registry.environment(name) else {
        let known: Vec<_> = registry.environments().collect();
        let text = format!("no plugin offers the execution environment `{name}`");
        let hint = if known.is_empty() {
            "`jaato doctor` shows where jaato searches for plugins".to_owned()
        } else {
            format!(
                "known environments are: {}; in a checkout, `cargo xtask build-plugins` builds all shipped ones",
                known.join(", ")
            )
        };
        return Err(Error::new(ErrorKind::Configuration, text).with_hint(hint));
    };
    let none = Description::default();
    let described = entry.description().unwrap_or(&none);
    work(&entry.candidate.manifest.name, &EnvironmentOptions::from_description(name, described))
}
