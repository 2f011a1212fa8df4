//! The plugin's state: its sessions, with their limits and their end.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jaato_plugin_sdk::prelude::*;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::mpsc;

use crate::backend::{self, BackendName, ProgramStart, StartedProgram};
use crate::command::ParsedCommandLine;
use crate::config::{self, InteractiveShellSettings};
use crate::marks::MarkNonce;
use crate::session::ShellSession;
use crate::trace::{self, TraceLog};
use crate::{reaper, start, watch_sessions};

/// The maximum number of ended sessions that can still be read. The oldest is removed first.
const ENDED_MAX: usize = 16;

/// The maximum number of automatically closed sessions whose reason is remembered.
const REAPED_MAX: usize = 16;

/// The plugin's state.
pub struct InteractiveShellPlugin(pub Arc<ShellRegistry>);

/// The state that the plugin's tasks share.
pub struct ShellRegistry {
    /// The host, for tasks that outlive calls.
    pub home: Home,
    /// The user's settings.
    pub settings: InteractiveShellSettings,
    /// The trace log.
    pub trace: TraceLog,
    /// The nonce in the marks of jaato's own shells.
    pub nonce: MarkNonce,
    /// The shell that reads command lines, once it was requested.
    pub shell: tokio::sync::OnceCell<start::EnvironmentShell>,
    table: Mutex<SessionTable>,
}

#[derive(Default)]
struct SessionTable {
    sessions: BTreeMap<u64, Arc<ShellSession>>,
    /// The number of sessions so far, which is each session's key in the list.
    last: u64,
    /// The number of the next `session_N`.
    next_name: u64,
    /// The number of sessions that are being started.
    starting: usize,
    /// Names of sessions that are not in the list yet.
    named: Vec<String>,
    /// Automatically closed sessions, with the reason.
    reaped: Vec<(String, String)>,
    is_reaping: bool,
    is_watching: bool,
    /// The backend of the last started program.
    backend: Option<BackendName>,
}

/// A reserved place in the session limit, held during a start.
struct SessionReservation<'a>(&'a ShellRegistry);

impl State for InteractiveShellPlugin {
    async fn create(home: &Home, _saved: Option<Value>) -> Result<Self> {
        let settings = InteractiveShellSettings::read_from_host(home).await?;
        let trace = TraceLog::open(
            settings.agent.as_deref(),
            trace::TraceLocation::from_settings(
                settings.is_traced,
                std::env::var_os(trace::VARIABLE),
            ),
            &std::env::temp_dir(),
        );
        let backend = backend::preferred_backend().as_str();
        let InteractiveShellSettings { sessions_max, lifetime, idle, .. } = &settings;
        trace.write_line(format_args!(
            "initialize: max_sessions={sessions_max}, max_lifetime={}, max_idle={}, backend={backend}, \
             msys2=False",
            lifetime.as_secs_f64(),
            idle.as_secs_f64()
        ));
        let inner = ShellRegistry {
            home: home.clone(),
            settings,
            trace,
            nonce: new_mark_nonce()?,
            shell: tokio::sync::OnceCell::new(),
            table: Mutex::default(),
        };
        Ok(Self(Arc::new(inner)))
    }

    async fn close(&self) {
        for session in self.0.list_sessions() {
            // The program's stream ends with the instance even if this fails.
            let _ = session.program_control().end().await;
        }
        self.0.trace.write_line("shutdown: all sessions closed");
    }

    fn describe(description: &mut Description) {
        description.config_schema = config::config_schema();
    }
}

/// Creates a nonce that no program can guess.
fn new_mark_nonce() -> Result<MarkNonce> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)
        .map_err(|error| Error::new(ErrorKind::Io, format!("no random numbers: {error}")))?;
    let word: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let Some(nonce) = MarkNonce::new(&word) else { unreachable!("hexadecimal digits are plain") };
    Ok(nonce)
}

impl ShellRegistry {
    /// Starts a program in a new session.
    ///
    /// # Errors
    /// `limit_reached` if too many sessions run, `not_found` if the program does not exist.
    pub async fn spawn_session(
        self: &Arc<Self>,
        command: &str,
        parsed: ParsedCommandLine,
        name: Option<&str>,
        size: (u16, u16),
    ) -> Result<Arc<ShellSession>> {
        let place = self.reserve_session()?;
        let shell = start::environment_shell(self).await?;
        let program = parsed.program().unwrap_or("sh").to_owned();
        let start = ProgramStart {
            directory: self.settings.directory.clone(),
            rows: size.0,
            columns: size.1,
            label: command.to_owned(),
            ..start::program_start(parsed, shell, &self.nonce)
        };
        let StartedProgram { backend, control, events } =
            match backend::start_in_best_backend(&self.home, &start).await {
                Ok(started) => started,
                Err(error) => {
                    // The error message contains the whole command, so it is left out.
                    self.trace.write_line(format_args!(
                        "spawn: cmd={program}, error={}",
                        error.kind.name()
                    ));
                    return Err(start::missing_program_error(error, command));
                }
            };
        let id = self.unused_session_name(name);
        self.trace.write_line(format_args!(
            "spawn: id={id}, cmd={program}, backend={}",
            backend.as_str()
        ));
        let (session, replies) =
            ShellSession::new(id, command.to_owned(), backend, control, size, &self.nonce);
        let session = Arc::new(session);
        self.lock_sessions().backend = Some(backend);
        self.insert_session(&session);
        drop(place);
        self.start_background_tasks(&session, events, replies);
        Ok(session)
    }

    /// Starts the background tasks of a session.
    fn start_background_tasks(
        self: &Arc<Self>,
        session: &Arc<ShellSession>,
        events: Box<dyn backend::BackendEvents>,
        mut replies: mpsc::Receiver<Vec<u8>>,
    ) {
        let (reader, host) = (Arc::clone(session), self.home.clone());
        let inner = Arc::clone(self);
        self.home.spawn(async move {
            reader.read_events(events, &host).await;
            let end = reader.lock_live().end.as_ref().map_or_else(String::new, ToString::to_string);
            inner.trace.write_line(format_args!("end: id={}, {end}", reader.id));
            watch_sessions::show_screen(&reader).await;
        });
        let typist = Arc::downgrade(session);
        self.home.spawn(async move {
            while let Some(bytes) = replies.recv().await {
                let Some(session) = typist.upgrade() else { return };
                session.send_reply(&bytes).await;
            }
        });
        let (is_reaping, is_watching) = {
            let mut table = self.lock_sessions();
            let before = (table.is_reaping, table.is_watching);
            (table.is_reaping, table.is_watching) = (true, true);
            before
        };
        if !is_reaping {
            self.home.spawn(reaper::run_reaper(Arc::clone(self)));
        }
        if !is_watching && session.backend == BackendName::Pty {
            self.home.spawn(watch_sessions::follow_user_actions(Arc::clone(self)));
        }
    }

    /// Finds a session.
    ///
    /// # Errors
    /// `not_found`, which lists the existing sessions.
    pub fn session_by_id(&self, id: &str) -> Result<Arc<ShellSession>> {
        let table = self.lock_sessions();
        if let Some(session) = table.sessions.values().find(|session| session.id == id) {
            return Ok(Arc::clone(session));
        }
        let mut text = format!("no session with id `{id}`");
        if let Some((_, why)) = table.reaped.iter().rev().find(|reaped| reaped.0 == id) {
            text += &format!(": it was closed {why}");
        }
        let ids: Vec<_> = table.sessions.values().map(|session| session.id.as_str()).collect();
        let hint = if ids.is_empty() {
            "no session is active; use shell_spawn to start one".to_owned()
        } else {
            format!("there are {}; use shell_list to see all sessions", ids.join(", "))
        };
        Err(Error::new(ErrorKind::NotFound, text).with_hint(hint))
    }

    /// Returns the backend of the last program, or the preferred one.
    pub fn current_backend(&self) -> BackendName {
        self.lock_sessions().backend.unwrap_or_else(backend::preferred_backend)
    }

    /// Lists the sessions, oldest first.
    pub fn list_sessions(&self) -> Vec<Arc<ShellSession>> {
        self.lock_sessions().sessions.values().cloned().collect()
    }

    /// Removes a session. Dropping its reader ends the program.
    pub fn remove_session(&self, session: &Arc<ShellSession>) {
        self.lock_sessions().sessions.retain(|_, other| !Arc::ptr_eq(other, session));
    }

    /// Removes an automatically closed session and remembers the reason.
    pub fn remove_expired_session(&self, session: &Arc<ShellSession>, why: &str) {
        self.remove_session(session);
        let mut table = self.lock_sessions();
        if table.reaped.len() == REAPED_MAX {
            table.reaped.remove(0);
        }
        table.reaped.push((session.id.clone(), why.to_owned()));
    }

    /// Returns the time until the reaper's next check. `None` ends the reaper.
    pub fn next_expiry(&self) -> Option<Duration> {
        let mut table = self.lock_sessions();
        let now = Instant::now();
        let expiries = table.sessions.values().map(|session| self.session_expiry(session));
        let next = expiries.min().map(|at| at.saturating_duration_since(now));
        table.is_reaping = next.is_some();
        next
    }

    /// Returns when a session expires if it is not used again.
    pub fn session_expiry(&self, session: &ShellSession) -> Instant {
        let InteractiveShellSettings { lifetime, idle, .. } = self.settings;
        let live = session.lock_live();
        let used = if session.has_waiting_call() { Instant::now() } else { live.used };
        if live.end.is_some() { used + idle } else { (session.begun + lifetime).min(used + idle) }
    }

    /// Records that the task that follows the users' actions has ended.
    pub fn record_watch_end(&self) {
        self.lock_sessions().is_watching = false;
    }

    /// Reserves a place in the session limit.
    fn reserve_session(&self) -> Result<SessionReservation<'_>> {
        let mut table = self.lock_sessions();
        let alive: Vec<_> =
            table.sessions.values().filter(|session| session.is_alive()).map(|s| &s.id).collect();
        let max = self.settings.sessions_max;
        if alive.len() + table.starting >= max {
            let text = format!("the maximum number of sessions is reached: {max}");
            let hint = if alive.is_empty() {
                "wait until the starting sessions are ready".to_owned()
            } else {
                format!("close one of {alive:?} with shell_close first").replace('"', "`")
            };
            return Err(Error::new(ErrorKind::LimitReached, text).with_hint(hint));
        }
        table.starting += 1;
        Ok(SessionReservation(self))
    }

    /// Returns an unused session name.
    fn unused_session_name(&self, wanted: Option<&str>) -> String {
        let mut table = self.lock_sessions();
        let is_taken = |table: &SessionTable, name: &str| {
            table.named.iter().any(|named| named == name)
                || table.sessions.values().any(|session| session.id == name)
        };
        if let Some(wanted) = wanted {
            let mut name = wanted.to_owned();
            let mut number = 0;
            while is_taken(&table, &name) {
                number += 1;
                name = format!("{wanted}_{number}");
            }
            table.named.push(name.clone());
            return name;
        }
        loop {
            let name = format!("session_{}", table.next_name);
            table.next_name += 1;
            if !is_taken(&table, &name) {
                return name;
            }
        }
    }

    fn insert_session(&self, session: &Arc<ShellSession>) {
        let mut table = self.lock_sessions();
        let ended: Vec<_> = table
            .sessions
            .iter()
            .filter(|(_, session)| !session.is_alive())
            .map(|(number, _)| *number)
            .collect();
        let excess = (ended.len() + 1).saturating_sub(ENDED_MAX);
        for number in &ended[..excess] {
            table.sessions.remove(number);
        }
        table.named.retain(|named| *named != session.id);
        table.last += 1;
        let number = table.last;
        table.sessions.insert(number, Arc::clone(session));
    }

    fn lock_sessions(&self) -> MutexGuard<'_, SessionTable> {
        self.table.lock()
    }
}

impl Drop for SessionReservation<'_> {
    fn drop(&mut self) {
        self.0.lock_sessions().starting -= 1;
    }
}
