//! Lets users watch sessions and type into them.

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::terminal::{TerminalScreen, TerminalUserAction};

use crate::session::ShellSession;
use crate::shells::ShellRegistry;

/// The minimum time between two screens that a user watches: 30 per second.
const FRAME: Duration = Duration::from_millis(33);

/// Shows the screen to users. If no one watches, this has no effect.
pub async fn show_screen(session: &ShellSession) {
    let (screen, ansi) = {
        let live = session.lock_live();
        let cursor = live.screen.cursor();
        let screen = TerminalScreen {
            terminal: 0,
            name: session.id.clone(),
            command: session.command.clone(),
            rows: live.screen.rows(),
            columns: live.screen.columns(),
            cursor: cursor.is_visible.then_some((cursor.row, cursor.column)),
            is_full_screen: live.screen.is_full_screen(),
            lines: live.screen.visible_lines(),
            is_alive: live.end.is_none(),
        };
        (screen, live.screen.ansi_text())
    };
    // The news report who watches.
    let _ = session.program_control().show_screen(screen, &ansi).await;
}

/// Follows the news about users until the host ends them.
pub async fn follow_user_actions(shells: Arc<ShellRegistry>) {
    if let Ok(mut news) = shells.home.terminal_news().await {
        while let Ok(Some(news)) = news.next().await {
            handle_user_action(&shells, &news);
        }
    }
    shells.record_watch_end();
}

fn handle_user_action(shells: &Arc<ShellRegistry>, news: &TerminalUserAction) {
    let find = |terminal: u64| {
        let is_it = |session: &Arc<ShellSession>| {
            session.program_control().terminal_number() == Some(terminal)
        };
        shells.list_sessions().into_iter().find(is_it)
    };
    match news {
        TerminalUserAction::Watched { terminal, watchers } => {
            let Some(session) = find(*terminal) else { return };
            session.watchers.store(*watchers, SeqCst);
            // Wakes the task that shows the screen, so that it ends if no one watches.
            session.notify_change();
            if *watchers > 0 && !session.is_shown_live.swap(true, SeqCst) {
                let host = shells.home.clone();
                shells.home.spawn(async move { show_live_changes(&session, &host).await });
            }
        }
        // The number and timing of keys stay private, because they may form a password.
        TerminalUserAction::Typed { terminal, .. } => {
            let Some(session) = find(*terminal) else { return };
            session.record_input();
            if !std::mem::replace(&mut session.lock_live().typed_by_person, true) {
                shells.trace.write_line(format_args!("person: id={}", session.id));
            }
            session.notify_change();
        }
        TerminalUserAction::Unknown => {}
    }
}

/// Shows each change while a user watches and the program runs.
async fn show_live_changes(session: &ShellSession, host: &Reporter) {
    let _wanted = session.read_without_pauses();
    let mut changes = session.change_receiver();
    loop {
        changes.borrow_and_update();
        if !session.is_watched() || !session.is_alive() {
            session.is_shown_live.store(false, SeqCst);
            // A user who joined at this moment found the flag set, so no other task was started.
            if !session.is_alive()
                || !session.is_watched()
                || session.is_shown_live.swap(true, SeqCst)
            {
                return;
            }
        }
        show_screen(session).await;
        if host.sleep(FRAME).await.is_err() || changes.changed().await.is_err() {
            return;
        }
    }
}
