//! Execution environments: made ready when a tool first needs one, shared by sessions, taken down
//! with the last.
//!
//! A session has one environment. Whatever its tools ask of files, programs and terminals goes to
//! that plugin; what runs or is open has a number, which only its own session may name.
//!
//! Invariants: an environment is set up once at a time and torn down once; one whose worker died is
//! set up anew, and the session is told; resources close before the environment, in reverse order.

mod describe;
mod lent;
mod member;
mod outputs;
mod resources;
mod scope;
mod stream;

use std::collections::HashMap;
use std::sync::Arc;

use jaato_types::{Error, ErrorKind, SessionId};
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Map, Value};

pub use describe::EnvironmentListed;
pub use member::{Member, is_operation};
pub use outputs::{KeptOutput, SessionOutputs};
pub use resources::{
    Asker, Asking, Making, Resources, SavedResources, is_operation as is_resource_operation,
};
pub use scope::{Choice, Scope};

use crate::host::Host;

/// Lines of what went wrong at the end of resources and environments that are kept for a person;
/// all are in the log.
const PROBLEMS_MAX: usize = 64;

/// The environments of all sessions.
#[derive(Default)]
pub struct Environments {
    members: Mutex<HashMap<SessionId, Arc<Member>>>,
    problems: Mutex<Vec<String>>,
}

/// An execution environment that several sessions may share: each that is started with it joins it.
/// It is set up when a tool first needs it, and taken down when the last session that joined has
/// ended.
#[derive(Clone)]
pub struct SharedEnvironment(pub(crate) Arc<Scope>);

impl Environments {
    /// Lets a session join an environment.
    pub(crate) fn join(&self, session: &SessionId, scope: Arc<Scope>) {
        let member = Arc::new(Member::new(scope, session.clone()));
        self.lock().insert(session.clone(), member);
    }

    /// Returns what a session has.
    pub(crate) fn of(&self, session: &SessionId) -> Option<Arc<Member>> {
        self.lock().get(session).cloned()
    }

    /// Closes what a session's plugins keep open, while they and the environment are still there.
    pub(crate) async fn close_resources(&self, host: &Arc<Host>, session: &SessionId) {
        let Some(member) = self.of(session) else { return };
        self.record(host, member.close_resources().await);
    }

    /// Notes what went wrong when resources were closed or environments taken down.
    pub(crate) fn record(&self, host: &Host, problems: Vec<String>) {
        for problem in problems {
            host.log.line(1, "host", &problem);
            let mut told = self.problems.lock();
            if told.len() < PROBLEMS_MAX {
                told.push(problem);
            }
        }
    }

    /// Gives what went wrong so far.
    pub(crate) fn take_problems(&self) -> Vec<String> {
        std::mem::take(&mut *self.problems.lock())
    }

    /// Ends what a session has in its environment, and the environment with its last session.
    pub(crate) async fn leave(&self, host: &Arc<Host>, session: &SessionId) {
        let member = self.lock().remove(session);
        if let Some(member) = member {
            member.leave(host).await;
        }
    }

    /// Ends all of them.
    pub(crate) async fn close(&self, host: &Arc<Host>) {
        let sessions: Vec<_> = self.lock().keys().cloned().collect();
        for session in sessions {
            self.close_resources(host, &session).await;
            self.leave(host, &session).await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Arc<Member>>> {
        self.members.lock()
    }
}

/// Finds the plugin of an environment that a person named.
pub(crate) fn choose(
    host: &Host,
    name: &str,
    options: Map<String, Value>,
) -> Result<Choice, Error> {
    let registry = host.registry();
    let Some(entry) = registry.environment(name) else {
        let known: Vec<_> = registry.environments().collect();
        let text = format!("no plugin offers the execution environment `{name}`");
        let hint = if known.is_empty() {
            "`jaato doctor` tells where plugins are looked for".to_owned()
        } else {
            format!(
                "known environments are: {}; in a checkout, `cargo xtask build-plugins` builds all that are shipped",
                known.join(", ")
            )
        };
        return Err(Error::new(ErrorKind::Configuration, text).with_hint(hint));
    };
    Ok(Choice { name: name.to_owned(), plugin: entry.candidate.manifest.name.clone(), options })
}
