//! Closes sessions that exceed their lifetime or their idle time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use jaato_plugin_sdk::prelude::*;

use crate::close;
use crate::session::ShellSession;
use crate::shells::ShellRegistry;

/// The minimum interval between two checks, so that the loop does not spin.
const LOOK_MIN: Duration = Duration::from_millis(10);

/// Closes expired sessions until no session is left.
pub async fn run_reaper(shells: Arc<ShellRegistry>) {
    while let Some(next) = shells.next_expiry() {
        if shells.home.sleep(next.max(LOOK_MIN)).await.is_err() {
            return;
        }
        let now = Instant::now();
        for session in shells.list_sessions() {
            if shells.session_expiry(&session) <= now {
                close_if_expired(&shells, session, now);
            }
        }
    }
}

fn close_if_expired(shells: &Arc<ShellRegistry>, session: Arc<ShellSession>, now: Instant) {
    let settings = &shells.settings;
    let is_old = session.is_alive() && session.begun + settings.lifetime <= now;
    let why = if is_old {
        format!("after {} s, the maximum lifetime of a session", settings.lifetime.as_secs_f64())
    } else {
        format!("after {} s without use", settings.idle.as_secs_f64())
    };
    shells.trace.write_line(format_args!("reap: id={}, {why}", session.id));
    shells.remove_expired_session(&session, &why);
    shells.home.log(LogLevel::Debug, format_args!("session `{}` was closed {why}", session.id));
    let host = shells.home.clone();
    // Runs in a separate task, because a program may take a second to end.
    shells.home.spawn(async move {
        // If the program ended on its own, its result listed the processes that it left running.
        // They continue.
        if session.is_alive() {
            // If this fails, the processes end with the host.
            let _ = close::close_session(&session, &host).await;
        }
    });
}
