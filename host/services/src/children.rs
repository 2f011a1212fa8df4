//! Child sessions of one call or instance: opened, used, and ended together with it.
//!
//! Each child runs in its own task, which owns its session. Dropping the children closes the
//! channels of the tasks, which then cancel the running turn, close the session and end.

use std::collections::BTreeMap;
use std::future::pending;
use std::sync::{Arc, Weak};
use std::time::Duration;

use jaato_session::{
    AgentTask, AgentTurn, Cancel, DeadlineHold, EventSink, Inbox, Session, TurnReport,
};
use jaato_types::child::{CHILD_EVENTS_MAX, ChildOpen, ChildState, ChildTurn, OpenedChild};
use jaato_types::{Error, ErrorKind, Event, EventEnvelope, PluginName, Result, SessionId};
use parking_lot::Mutex;
use tokio::sync::{mpsc, watch};

use crate::shared::SharedServices;

/// Maximum number of messages queued for a child's next turn.
const WAITING_MAX: usize = 16;

/// The children of one call or instance.
#[derive(Default)]
pub struct ChildSessions(Mutex<OpenedChildren>);

#[derive(Default)]
struct OpenedChildren {
    last: u64,
    living: BTreeMap<u64, ChildSessionHandle>,
}

/// A child, as its opener holds it.
struct ChildSessionHandle {
    says: mpsc::Sender<String>,
    inbox: Inbox,
    state: Arc<watch::Sender<ChildState>>,
    /// Cancels the running turn.
    turn: Arc<Mutex<Cancel>>,
    followers: Arc<ChildEventFollowers>,
}

/// The followers of a child's events.
#[derive(Default)]
pub struct ChildEventFollowers {
    plugins: Mutex<Vec<mpsc::Sender<EventEnvelope>>>,
    /// The task of the opener for the running turn.
    task: Mutex<Weak<AgentTask>>,
}

impl ChildEventFollowers {
    fn subscribe(&self) -> mpsc::Receiver<EventEnvelope> {
        let (sender, receiver) = mpsc::channel(CHILD_EVENTS_MAX);
        self.plugins.lock().push(sender);
        receiver
    }

    fn show_in_task(&self, task: &Arc<AgentTask>) {
        *self.task.lock() = Arc::downgrade(task);
    }
}

impl EventSink for ChildEventFollowers {
    fn receive_event(&self, envelope: EventEnvelope) {
        if let Event::ToolCallStarted { name, .. } = &envelope.event
            && let Some(task) = self.task.lock().upgrade()
        {
            task.add_line(name.as_str());
        }
        let mut followers = self.plugins.lock();
        // A follower that does not read loses events, but does not block the child.
        followers.retain(|to| {
            !matches!(to.try_send(envelope.clone()), Err(mpsc::error::TrySendError::Closed(_)))
        });
    }
}

/// What opens a child.
pub struct ChildOpener<'a> {
    /// The session.
    pub session: &'a SessionId,
    /// Pauses the deadline of the call that opens the child.
    pub hold: &'a DeadlineHold,
    /// The plugin whose instance opens the child. Each turn of the child is then a task of the
    /// session. `None` for a child of a call, which waits for it.
    pub by: Option<PluginName>,
}

impl ChildSessions {
    /// Opens a child of a session.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub fn open(
        &self,
        shared: &Arc<SharedServices>,
        opener: &ChildOpener<'_>,
        asked: &ChildOpen,
    ) -> Result<OpenedChild> {
        let followers = Arc::<ChildEventFollowers>::default();
        let (parent, hold) = (opener.session, opener.hold);
        let session = shared.sessions.open(parent, asked, hold, Arc::clone(&followers) as _)?;
        let (id, model) = (session.id().clone(), session.facts().model);
        let (says, said) = mpsc::channel(WAITING_MAX);
        let state = Arc::new(watch::Sender::new(ChildState::default()));
        let tells = Arc::clone(&state);
        let turn = Arc::<Mutex<Cancel>>::default();
        let child = ChildSessionHandle {
            says,
            inbox: session.inbox(),
            state,
            turn: Arc::clone(&turn),
            followers,
        };
        let agent = opener.by.clone().map(|by| ChildAgent {
            opener: parent.clone(),
            name: asked.name.clone(),
            by,
            followers: Arc::clone(&child.followers),
        });
        let running = ChildSessionTask {
            session,
            said,
            tells,
            turn,
            shared: Arc::clone(shared),
            hold: hold.clone(),
            agent,
            turn_ms_max: asked.turn_ms_max,
        };
        tokio::spawn(running.run());
        let mut opened = self.0.lock();
        opened.last += 1;
        let number = opened.last;
        opened.living.insert(number, child);
        Ok(OpenedChild::new(number, id.as_str(), model))
    }

    /// Sends a message to a child.
    ///
    /// # Errors
    /// `not_found`, `invalid_arguments` if the text is empty, or `limit_reached` if too many
    /// messages wait.
    pub fn send(&self, number: u64, text: String) -> Result<()> {
        if text.trim().is_empty() {
            return Err(Error::new(ErrorKind::InvalidArguments, "the message is empty"));
        }
        self.with_child(number, |child| {
            if child.state.borrow().is_running {
                return child.inbox.send_message(text);
            }
            child.says.try_send(text).map_err(|_| {
                let text = format!("{WAITING_MAX} messages are already waiting for the child");
                Error::new(ErrorKind::LimitReached, text).temporary()
            })?;
            // From here, a waiting caller waits for this turn.
            child.state.send_modify(|state| state.is_running = true);
            Ok(())
        })
    }

    /// Returns a receiver for a child's state.
    ///
    /// # Errors
    /// `not_found`.
    pub fn state(&self, number: u64) -> Result<watch::Receiver<ChildState>> {
        self.with_child(number, |child| Ok(child.state.subscribe()))
    }

    /// Follows a child's events.
    ///
    /// # Errors
    /// `not_found`.
    pub fn follow_events(&self, number: u64) -> Result<mpsc::Receiver<EventEnvelope>> {
        self.with_child(number, |child| Ok(child.followers.subscribe()))
    }

    /// Cancels a child's running turn.
    ///
    /// # Errors
    /// `not_found`.
    pub fn cancel(&self, number: u64) -> Result<()> {
        self.with_child(number, |child| {
            child.turn.lock().cancel();
            Ok(())
        })
    }

    /// Ends a child.
    ///
    /// # Errors
    /// `not_found`.
    pub fn close(&self, number: u64) -> Result<()> {
        // The child's task sees that its channel is closed.
        self.0.lock().living.remove(&number).map(drop).ok_or_else(|| child_not_found_error(number))
    }

    fn with_child<T>(
        &self,
        number: u64,
        work: impl FnOnce(&ChildSessionHandle) -> Result<T>,
    ) -> Result<T> {
        let opened = self.0.lock();
        opened.living.get(&number).map_or_else(|| Err(child_not_found_error(number)), work)
    }
}

fn child_not_found_error(number: u64) -> Error {
    Error::new(ErrorKind::NotFound, format!("unknown child session {number}"))
        .with_hint("open a new one: a child ends with the call or the instance that opened it")
}

/// A child, as its task holds it.
struct ChildSessionTask {
    session: Session,
    said: mpsc::Receiver<String>,
    tells: Arc<watch::Sender<ChildState>>,
    turn: Arc<Mutex<Cancel>>,
    shared: Arc<SharedServices>,
    /// Pauses the deadline of the call that opened it while a turn runs.
    hold: DeadlineHold,
    /// Set if each turn is a task of the opener.
    agent: Option<ChildAgent>,
    turn_ms_max: Option<u64>,
}

/// A child whose turns are tasks of its opener.
struct ChildAgent {
    opener: SessionId,
    name: String,
    by: PluginName,
    followers: Arc<ChildEventFollowers>,
}

impl ChildSessionTask {
    async fn run(mut self) {
        let wake = self.session.wake_waiter();
        loop {
            let message = tokio::select! {
                biased;
                said = self.said.recv() => match said {
                    Some(text) => Some(text),
                    None => break,
                },
                () = wake.wait_for_wake() => None,
            };
            let (report, is_over) = self.run_turn(message).await;
            // Messages that came too late for this turn begin the next one.
            let is_running = self.session.inbox().waiting_count() > 0 || !self.said.is_empty();
            self.tells.send_modify(|state| {
                state.is_running = is_running;
                state.turns += 1;
                state.last = Some(child_turn(report));
            });
            if is_over {
                break;
            }
        }
        self.session.handle().notify_end().await;
        let id = self.session.id().clone();
        drop(self.session);
        self.shared.sessions.close(&id).await;
    }

    /// Runs one turn, with a message or because something woke the child. Returns its report, and
    /// true if the child was closed during it.
    async fn run_turn(&mut self, message: Option<String>) -> (TurnReport, bool) {
        let cancel = Cancel::new();
        *self.turn.lock() = cancel.clone();
        self.tells.send_modify(|state| state.is_running = true);
        let task = self.begin_task(&cancel, message.as_deref().unwrap_or_default());
        let _deadline = self.turn_ms_max.map(|turn_ms_max| {
            let text = "the turn has reached its time limit `max_seconds`";
            let error = Error::new(ErrorKind::LimitReached, text);
            cancel.cancel_after(Duration::from_millis(turn_ms_max), error)
        });
        let inbox = self.session.inbox();
        // A turn has its own limits.
        let held = self.hold.pause();
        let mut is_over = false;
        let report = {
            let turn = async {
                match message {
                    Some(text) => self.session.run_turn(text, &cancel).await,
                    None => self.session.run_woken_turn(&cancel).await,
                }
            };
            tokio::pin!(turn);
            loop {
                let heard =
                    async { if is_over { pending().await } else { self.said.recv().await } };
                tokio::select! {
                    biased;
                    report = &mut turn => break report,
                    said = heard => match said {
                        // Sent before the turn was known to run. It is lost only if 64 messages
                        // already wait for the model, and the next `send` then fails.
                        Some(text) => drop(inbox.send_message(text)),
                        None => {
                            is_over = true;
                            cancel.cancel();
                        }
                    },
                }
            }
        };
        drop(held);
        if let Some(task) = task {
            task.end_with_report(&report).await;
        }
        (report, is_over)
    }

    /// Begins the task of the opener for a turn. The task shows the tools that the child calls.
    fn begin_task(&self, stop: &Cancel, message: &str) -> Option<Arc<AgentTask>> {
        let agent = self.agent.as_ref()?;
        let turn = AgentTurn {
            agent: agent.name.clone(),
            session: self.session.id().clone(),
            by: agent.by.clone(),
            stop: stop.clone(),
        };
        // Without its opener, the child ends within moments.
        let opener = self.shared.sessions.find(&agent.opener).ok()?;
        let task = Arc::new(opener.begin_agent_task(turn, message).ok()?);
        agent.followers.show_in_task(&task);
        Some(task)
    }
}

fn child_turn(report: TurnReport) -> ChildTurn {
    let mut turn = ChildTurn::new(report.outcome, report.text);
    (turn.usage, turn.steps, turn.error) = (report.usage, report.steps, report.error);
    turn
}
