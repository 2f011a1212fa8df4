//! Execution environments: made ready when a tool first needs one, shared by sessions, taken down
//! with the last.
//!
//! A session has one environment. Whatever its tools ask of files, programs and terminals goes to
//! that plugin; what runs or is open has a number, which only its own session may name.
//!
//! Invariants: an environment is set up once at a time and torn down once; one whose worker died is
//! set up anew, and the session is told; resources close before the environment, in reverse order.

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
use jaato_terminals::Terminals;
use jaato_types::{Description, Error, ErrorKind, PluginName, SessionId};
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Map, Value};

pub use describe::EnvironmentListed;
pub use member::{LimitsOfAll, Member, is_operation};
pub use outputs::SessionOutputs;
pub use resources::{Resources, is_operation as is_resource_operation};
pub use scope::{Choice, Scope};

use access::SessionEnvironment;
use options::Options;
use terminals::EnvironmentTerminals;

use crate::outputs::Outputs;
use crate::processes::Processes;

/// Lines of what went wrong at the end of resources and environments that are kept for a person;
/// all are in the log.
const PROBLEMS_MAX: usize = 64;

/// The environments of all sessions.
pub struct Environments {
    /// Calls the environments' plugins.
    plugins: Arc<PluginCaller>,
    /// What people see and join.
    terminals: Arc<Terminals>,
    /// Files for outputs on this machine.
    outputs: Arc<Outputs>,
    /// Programs of this machine, as environments prepare them.
    processes: Arc<Processes>,
    members: Mutex<HashMap<SessionId, Arc<Member>>>,
    problems: Mutex<Vec<String>>,
}

/// An execution environment that several sessions may share: each that is started with it joins it.
/// It is set up when a tool first needs it, and taken down when the last session that joined has
/// ended.
#[derive(Clone)]
pub struct SharedEnvironment(Arc<Scope>);

impl Environments {
    /// Begins with no session. The terminals of all are from here on those that people see.
    pub fn new(
        plugins: Arc<PluginCaller>,
        terminals: Arc<Terminals>,
        outputs: Arc<Outputs>,
        processes: Arc<Processes>,
    ) -> Arc<Self> {
        let (members, problems) = (Mutex::default(), Mutex::default());
        let own = Arc::new(Self { plugins, terminals, outputs, processes, members, problems });
        let sessions = EnvironmentTerminals::of(&own);
        own.terminals.set_sessions(Arc::new(sessions));
        own
    }

    /// Lets a session join an environment.
    fn join(&self, session: &SessionId, scope: Arc<Scope>) {
        let member = Arc::new(Member::new(scope, session.clone()));
        self.lock().insert(session.clone(), member);
    }

    /// Returns what a session has.
    fn of(&self, session: &SessionId) -> Option<Arc<Member>> {
        self.lock().get(session).cloned()
    }

    /// Closes what a session's plugins keep open, while they and the environment are still there.
    pub async fn close_resources(&self, session: &SessionId) {
        let Some(member) = self.of(session) else { return };
        self.record(member.close_resources().await);
    }

    /// Notes what went wrong when resources were closed or environments taken down.
    fn record(&self, problems: Vec<String>) {
        for problem in problems {
            self.plugins.log.line(1, "host", &problem);
            let mut told = self.problems.lock();
            if told.len() < PROBLEMS_MAX {
                told.push(problem);
            }
        }
    }

    /// Gives what went wrong so far.
    pub fn take_problems(&self) -> Vec<String> {
        std::mem::take(&mut *self.problems.lock())
    }

    /// Ends what a session has in its environment, and the environment with its last session.
    pub async fn leave(self: &Arc<Self>, session: &SessionId) {
        let member = self.lock().remove(session);
        if let Some(member) = member {
            member.leave(self).await;
        }
    }

    /// Ends all of them.
    pub async fn close(self: &Arc<Self>) {
        let sessions: Vec<_> = self.lock().keys().cloned().collect();
        for session in sessions {
            self.close_resources(&session).await;
            self.leave(&session).await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Arc<Member>>> {
        self.members.lock()
    }
}

/// Finds the plugin of an environment that a person named, and checks the options.
fn choose(host: &Environments, name: &str, options: Map<String, Value>) -> Result<Choice, Error> {
    let plugin = with_options_of(host, name, |plugin, known| {
        known.check(&options)?;
        Ok(plugin.clone())
    })?;
    Ok(Choice { name: name.to_owned(), plugin, options })
}

/// Finds the plugin of an environment that a person named, and what it says of its settings.
fn with_options_of<T>(
    host: &Environments,
    name: &str,
    work: impl FnOnce(&PluginName, &Options<'_>) -> Result<T, Error>,
) -> Result<T, Error> {
    let registry = host.plugins.registry();
    let Some(entry) = registry.environment(name) else {
        let known: Vec<_> = registry.environments().collect();
        let text = format!("no plugin offers the execution environment `{name}`");
        let hint = if known.is_empty() {
            "`jaato doctor` shows where jaato looks for plugins".to_owned()
        } else {
            format!(
                "known environments are: {}; in a checkout, `cargo xtask build-plugins` builds all that are shipped",
                known.join(", ")
            )
        };
        return Err(Error::new(ErrorKind::Configuration, text).with_hint(hint));
    };
    let none = Description::default();
    let described = entry.description().unwrap_or(&none);
    work(&entry.candidate.manifest.name, &Options::of(name, described))
}
