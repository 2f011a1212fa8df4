//! The subagents of a session: opened, used, and restored after the session continues.

use std::sync::Arc;

use jaato_plugin_sdk::child::{ChildOpen, ChildSession, ChildState};
use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::{schemars, serde_json};
use jiff::Timestamp;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::activity::AgentActivities;
use crate::config::Config;
use crate::profiles::Profiles;
use crate::worktree::{self, Worktree};
use crate::{command, user_commands};

/// A subagent, as the session's saved state keeps it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SavedSubagent {
    /// The id by which the model names it, which users see as its name.
    pub id: String,
    /// The profile that it was spawned with.
    pub profile: Option<String>,
    /// How its session was opened.
    pub open: ChildOpen,
    pub session_id: String,
    /// The folder in which it works, if it has one of its own.
    #[serde(default)]
    pub worktree: Option<Worktree>,
    pub created_at: Timestamp,
}

/// A subagent of this session.
struct Subagent {
    saved: SavedSubagent,
    /// `None` after the session has continued in a new process, until a message opens it again.
    child: Option<Arc<ChildSession>>,
}

/// The subagents of a session.
pub struct Subagents {
    home: Home,
    agents: Mutex<Vec<Subagent>>,
    /// How many there have been, for the next id.
    spawned: Mutex<u64>,
    /// What the running ones do.
    pub activities: Arc<AgentActivities>,
}

/// How a message reached a subagent.
pub enum MessageDelivery {
    /// It was idle, and a turn begins.
    Dispatched,
    /// The message joins its running turn.
    Queued,
}

impl Subagents {
    /// Restores the subagents of an earlier process, without opening them.
    pub fn restore_subagents(home: Home, saved: Vec<SavedSubagent>) -> Self {
        let spawned = saved.len() as u64;
        let agents = saved.into_iter().map(|saved| Subagent { saved, child: None }).collect();
        Self {
            home,
            agents: Mutex::new(agents),
            spawned: Mutex::new(spawned),
            activities: Arc::default(),
        }
    }

    /// Returns what the session's state saves.
    pub fn saved_subagents(&self) -> Vec<SavedSubagent> {
        self.agents.lock().iter().map(|agent| agent.saved.clone()).collect()
    }

    /// Returns an unused id: the wanted name, with a number if it is taken, or `subagent_N`.
    pub fn new_id(&self, name: Option<&str>) -> String {
        let mut spawned = self.spawned.lock();
        *spawned += 1;
        let is_taken = |id: &str| self.agents.lock().iter().any(|agent| agent.saved.id == id);
        let wanted = name.map(to_valid_id).unwrap_or_else(|| format!("subagent_{spawned}"));
        if !is_taken(&wanted) {
            return wanted;
        }
        let numbered = (*spawned..).map(|number| format!("{wanted}_{number}"));
        numbered.into_iter().find(|id| !is_taken(id)).unwrap_or(wanted)
    }

    /// Opens a subagent and gives it its task.
    ///
    /// # Errors
    /// If its session cannot be opened.
    pub async fn spawn_subagent(
        &self,
        profile: Option<String>,
        open: ChildOpen,
        worktree: Option<Worktree>,
        task: String,
    ) -> Result<SavedSubagent> {
        let child = self.open_child_session(&open).await?;
        let saved = SavedSubagent {
            id: open.name.clone(),
            profile,
            session_id: child.opened().session_id.clone(),
            open,
            worktree,
            created_at: Timestamp::now(),
        };
        child.send(task).await?;
        self.agents.lock().push(Subagent { saved: saved.clone(), child: Some(child) });
        Ok(saved)
    }

    /// Sends a message to a subagent, and opens it again if it is saved only.
    ///
    /// # Errors
    /// `not_found` if there is no such subagent. Otherwise why the message cannot be sent.
    pub async fn send_message(&self, id: &str, message: String) -> Result<MessageDelivery> {
        let child = match self.child_session(id)? {
            Some(child) => child,
            None => self.reopen_child_session(id).await?,
        };
        let is_running = child.state(1).await?.is_running;
        child.send(message).await?;
        Ok(if is_running { MessageDelivery::Queued } else { MessageDelivery::Dispatched })
    }

    /// Cancels the running turn of a subagent. Returns false if none runs.
    ///
    /// # Errors
    /// `not_found` if there is no such subagent.
    pub async fn cancel_turn(&self, id: &str) -> Result<bool> {
        let Some(child) = self.child_session(id)? else { return Ok(false) };
        if !child.state(1).await?.is_running {
            return Ok(false);
        }
        child.cancel().await?;
        Ok(true)
    }

    /// Returns the folder of a subagent, if it has one of its own.
    ///
    /// # Errors
    /// `not_found` if there is no such subagent.
    pub fn find_worktree(&self, id: &str) -> Result<Option<Worktree>> {
        let agents = self.agents.lock();
        let agent = agents.iter().find(|agent| agent.saved.id == id);
        agent.map(|agent| agent.saved.worktree.clone()).ok_or_else(|| unknown_subagent_error(id))
    }

    /// Closes a subagent for good. Returns true if that cancelled a turn. Its session stays saved.
    ///
    /// # Errors
    /// `not_found` if there is no such subagent.
    pub async fn close_subagent(&self, id: &str) -> Result<bool> {
        let was_running = self.cancel_turn(id).await?;
        let child = self.child_session(id)?;
        self.remove_subagent(id);
        if let Some(child) = child {
            child.close().await?;
        }
        Ok(was_running)
    }

    /// Returns each subagent with the state of its session, `None` if only its record is left.
    pub async fn list_with_states(&self) -> Vec<(SavedSubagent, Option<ChildState>)> {
        let agents: Vec<_> =
            self.agents.lock().iter().map(|it| (it.saved.clone(), it.child.clone())).collect();
        let mut states = Vec::with_capacity(agents.len());
        for (saved, child) in agents {
            let state = match child {
                Some(child) => child.state(1).await.ok(),
                None => None,
            };
            states.push((saved, state));
        }
        states
    }

    /// Returns the id of the session whose subagents these are.
    ///
    /// # Errors
    /// If the host does not say it.
    pub async fn own_session_id(&self) -> Result<String> {
        Ok(self.home.session().await?.session_id)
    }

    fn remove_subagent(&self, id: &str) {
        let mut agents = self.agents.lock();
        if let Some(at) = agents.iter().position(|agent| agent.saved.id == id) {
            let agent = agents.remove(at);
            self.activities.remove_agent(&agent.saved.session_id);
        }
    }

    fn child_session(&self, id: &str) -> Result<Option<Arc<ChildSession>>> {
        let agents = self.agents.lock();
        let agent = agents.iter().find(|agent| agent.saved.id == id);
        agent.map(|agent| agent.child.clone()).ok_or_else(|| unknown_subagent_error(id))
    }

    /// Opens a session, and notes what it does until it ends.
    async fn open_child_session(&self, open: &ChildOpen) -> Result<Arc<ChildSession>> {
        let child = Arc::new(self.home.open_session(open).await?);
        let opened = child.opened();
        let opener = self.own_session_id().await?;
        self.activities.add_agent(&opened.session_id, &open.name, &opener, &opened.model);
        let mut events = child.events().await?;
        let activities = Arc::clone(&self.activities);
        self.home.spawn(async move {
            // The stream ends with the session.
            while let Ok(Some(envelope)) = events.next().await {
                activities.record_event(&envelope);
            }
        });
        Ok(child)
    }

    async fn reopen_child_session(&self, id: &str) -> Result<Arc<ChildSession>> {
        let open = {
            let agents = self.agents.lock();
            let agent = agents.iter().find(|agent| agent.saved.id == id);
            let saved = &agent.ok_or_else(|| unknown_subagent_error(id))?.saved;
            // The model is saved with the session.
            ChildOpen { resume: Some(saved.session_id.clone()), model: None, ..saved.open.clone() }
        };
        let child = self.open_child_session(&open).await?;
        let mut agents = self.agents.lock();
        if let Some(agent) = agents.iter_mut().find(|agent| agent.saved.id == id) {
            agent.child = Some(Arc::clone(&child));
        }
        Ok(child)
    }
}

impl State for Subagents {
    async fn create(home: &Home, saved: Option<Value>) -> Result<Self> {
        let saved = saved.map(serde_json::from_value).transpose();
        let saved = saved.map_err(|error| Error::failed(format!("the saved state: {error}")))?;
        Ok(Self::restore_subagents(home.clone(), saved.unwrap_or_default()))
    }

    async fn save(&self) -> Result<Option<Value>> {
        Ok(serde_json::to_value(self.saved_subagents()).ok())
    }

    fn describe(description: &mut Description) {
        description.services = vec!["session.open".to_owned()];
        description.config_schema = serde_json::to_value(schemars::schema_for!(Config)).ok();
        description.commands = vec![
            command::agents_command(),
            user_commands::profiles_command(),
            worktree::worktree_command(),
        ];
    }

    async fn command(cx: &Cx<Self>, name: &str, arguments: Value) -> Result<Output> {
        match name {
            user_commands::NAME => {
                let profiles = Profiles::load_profiles(cx).await?;
                Ok(Output::text(user_commands::list_profiles(&profiles)))
            }
            command::NAME => command::run_agents_command(cx.state(), &arguments).await,
            worktree::COMMAND => worktree::run_worktree_command(cx, &arguments).await,
            _ => {
                let text = format!("unknown command `{name}`");
                Err(Error::new(ErrorKind::UnknownOperation, text))
            }
        }
    }
}

fn unknown_subagent_error(id: &str) -> Error {
    Error::new(ErrorKind::NotFound, format!("No active session found with ID: {id}"))
        .with_hint("`list_active_subagents` lists the ids")
}

/// Replaces the characters that a child's name cannot have.
fn to_valid_id(name: &str) -> String {
    let valid = |it: char| if it.is_ascii_alphanumeric() || "-_".contains(it) { it } else { '_' };
    name.trim().chars().map(valid).take(40).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_becomes_a_valid_id() {
        assert_eq!(to_valid_id(" Code reviewer/2 "), "Code_reviewer_2");
        assert_eq!(to_valid_id(&"é".repeat(99)), "_".repeat(40));
    }
}
