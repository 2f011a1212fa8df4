//! Tests the board and its socket without an environment, with fake terminals and a paused clock.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::{BoxFuture, FutureExt as _};
use jaato_config::UserFolders;
use jaato_log::Log;
use jaato_session::{Cancel, EventEmitter, EventSink, NoAnswer, PermissionAsker, UserAsker};
use jaato_types::permission_prompt::{PermissionAnswer, PermissionPrompt};
use jaato_types::terminal::{TerminalScreen, TerminalState, TerminalUserAction};
use jaato_types::{Error, Event, EventEnvelope, Frame, PluginName, SessionId};
use parking_lot::Mutex;
use tokio::runtime::Handle;

use crate::board::board_terminal::{SCREEN_EVERY, TYPED_EVERY};
use crate::board::{SessionAudience, SessionTerminals, SharedTerminals, TYPE_MAX};
use crate::join::{JoinReply, SocketFolders, find_terminals, join_terminal};

/// The events that a session's follower has seen.
#[derive(Default)]
struct RecordedEvents(Mutex<Vec<Event>>);

impl EventSink for RecordedEvents {
    fn receive_event(&self, envelope: EventEnvelope) {
        self.0.lock().push(envelope.event);
    }
}

impl RecordedEvents {
    /// Returns screens by their first lines, and the amounts of input.
    fn take(&self) -> Vec<String> {
        let events = std::mem::take(&mut *self.0.lock());
        let told = |event| match event {
            Event::TerminalScreen { lines, is_alive, .. } => {
                format!("{}{}", lines.concat(), if is_alive { "" } else { " ended" })
            }
            Event::TerminalTyped { bytes, .. } => format!("typed {bytes}"),
            other => format!("{other:?}"),
        };
        events.into_iter().map(told).collect()
    }
}

struct AbsentUser;

impl UserAsker for AbsentUser {}

impl PermissionAsker for AbsentUser {
    fn unavailable_reason(&self) -> Option<String> {
        Some("nobody".to_owned())
    }

    fn ask_permission<'a>(
        &'a self,
        _session: &'a SessionId,
        _prompt: &'a PermissionPrompt,
    ) -> BoxFuture<'a, Result<PermissionAnswer, NoAnswer>> {
        std::future::ready(Err(NoAnswer::new("nobody"))).boxed()
    }
}

/// A terminal that records its input. Its space, echo and answers are configurable.
struct RecordingTerminals {
    answers: Mutex<bool>,
    bytes: Mutex<Vec<u8>>,
    room: Mutex<usize>,
    shows: Mutex<bool>,
}

impl Default for RecordingTerminals {
    fn default() -> Self {
        let (room, shows, answers) = (Mutex::new(usize::MAX), Mutex::new(true), Mutex::new(true));
        Self { answers, bytes: Mutex::default(), room, shows }
    }
}

impl SessionTerminals for RecordingTerminals {
    fn write(
        &self,
        _session: &SessionId,
        _terminal: u64,
        bytes: Vec<u8>,
        _longest: Duration,
    ) -> BoxFuture<'static, Result<usize, Error>> {
        let mut room = self.room.lock();
        let taken = bytes.len().min(*room);
        *room -= taken;
        self.bytes.lock().extend(&bytes[..taken]);
        if !*self.answers.lock() {
            return std::future::pending().boxed();
        }
        std::future::ready(Ok(taken)).boxed()
    }

    fn state(
        &self,
        _session: &SessionId,
        _terminal: u64,
    ) -> BoxFuture<'static, Result<TerminalState, Error>> {
        let state = TerminalState { echoes: Some(*self.shows.lock()), ..TerminalState::default() };
        std::future::ready(Ok(state)).boxed()
    }

    fn terminal_end(
        &self,
        _session: &SessionId,
        _plugin: &PluginName,
        _terminal: u64,
    ) -> Option<Cancel> {
        None
    }
}

struct TerminalsFixture {
    board: Arc<SharedTerminals>,
    seen: Arc<RecordedEvents>,
    noted: Arc<RecordingTerminals>,
    session: SessionId,
    plugin: PluginName,
}

impl TerminalsFixture {
    fn new(door: Option<SocketFolders>) -> Self {
        let board = SharedTerminals::new(Handle::current(), door, Log::in_folder(None));
        let (seen, noted) =
            (Arc::<RecordedEvents>::default(), Arc::<RecordingTerminals>::default());
        board.set_sessions(Arc::clone(&noted) as Arc<dyn SessionTerminals>);
        let session = SessionId::from("s");
        let emitter = EventEmitter::new(session.clone(), Arc::clone(&seen) as Arc<dyn EventSink>);
        board.add_session(&session, SessionAudience { emitter, asker: Arc::new(AbsentUser) });
        Self { board, seen, noted, session, plugin: PluginName::from("tool-x") }
    }

    fn show_screen(&self, text: &str) -> u32 {
        self.show_one(1, text, true, &Cancel::new())
    }

    fn show_one(&self, terminal: u64, text: &str, is_alive: bool, over: &Cancel) -> u32 {
        let screen = TerminalScreen {
            terminal,
            name: format!("session_{terminal}"),
            rows: 2,
            columns: 9,
            lines: vec![text.to_owned()],
            is_alive,
            ..TerminalScreen::default()
        };
        let ansi = text.to_owned();
        self.board.show_screen(&self.session, &self.plugin, over, (screen, ansi)).unwrap().watchers
    }
}

#[tokio::test(start_paused = true)]
async fn at_most_ten_screens_a_second_are_sent_including_the_last() {
    let bench = TerminalsFixture::new(None);
    for number in 0..=100 {
        bench.show_screen(&number.to_string());
        tokio::time::sleep(Duration::from_millis(9)).await;
    }
    tokio::time::sleep(SCREEN_EVERY).await;
    let told = bench.seen.take();
    assert!((10..=12).contains(&told.len()), "{told:?}");
    assert_eq!((told[0].as_str(), told.last().unwrap().as_str()), ("0", "100"));
    // An unchanged screen is not an event.
    bench.show_screen("100");
    tokio::time::sleep(SCREEN_EVERY * 2).await;
    assert_eq!(bench.seen.take(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn last_screen_is_sent_when_the_terminal_ends() {
    let bench = TerminalsFixture::new(None);
    bench.show_screen("a");
    bench.show_screen("b");
    bench.board.remove_terminal(&bench.session, 1);
    assert_eq!(bench.seen.take(), ["a", "b ended"]);
    tokio::time::sleep(SCREEN_EVERY * 2).await;
    assert_eq!(bench.seen.take(), Vec::<String>::new());
    assert_eq!(bench.board.list_terminals().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn screen_after_the_end_is_sent_but_not_listed() {
    let bench = TerminalsFixture::new(None);
    let over = Cancel::new();
    bench.show_one(1, "a", true, &over);
    over.cancel();
    bench.board.remove_terminal(&bench.session, 1);
    bench.seen.take();
    bench.show_one(1, "late", true, &over);
    bench.show_one(1, "last", false, &over);
    assert_eq!(bench.seen.take(), ["last ended"]);
    assert_eq!(bench.board.list_terminals().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn ended_session_removes_its_terminals() {
    let bench = TerminalsFixture::new(None);
    bench.show_one(1, "a", true, &Cancel::new());
    bench.show_one(2, "b", true, &Cancel::new());
    assert_eq!(bench.board.list_terminals().len(), 2);
    bench.board.remove_session(&bench.session);
    assert_eq!(bench.board.list_terminals().len(), 0);
    assert_eq!(bench.seen.take(), ["a", "b", "a ended", "b ended"]);
}

#[tokio::test(start_paused = true)]
async fn ended_program_cancels_a_prompt_about_its_terminal() {
    let bench = TerminalsFixture::new(None);
    let over = Cancel::new();
    bench.show_one(1, "a", true, &over);
    assert!(!over.is_cancelled());
    bench.show_one(1, "a", false, &over);
    assert!(over.is_cancelled());
    assert!(!bench.board.list_terminals()[0].is_alive);
}

#[tokio::test(start_paused = true)]
async fn plugin_receives_the_number_of_watchers_and_typed_bytes() {
    let bench = TerminalsFixture::new(None);
    bench.show_screen("a");
    let shown = bench.board.find_terminal(&bench.session, 1).unwrap();
    let first = bench.board.attach_viewer(Arc::clone(&shown), false);
    // A late reader learns who is already there.
    let mut news = bench.board.open_user_actions(&bench.session, &bench.plugin).unwrap();
    let mut next = async || {
        let frame = news.next().await.unwrap().unwrap();
        Frame::read::<TerminalUserAction>(&frame).unwrap()
    };
    assert_eq!(next().await, TerminalUserAction::Watched { terminal: 1, watchers: 1 });
    let second = bench.board.attach_viewer(Arc::clone(&shown), true);
    assert_eq!(bench.show_screen("b"), 2);
    assert!(shown.has_typers());
    drop(second);
    assert!(!shown.has_typers());
    // News is not queued. Only the newest value or the sum of each is kept.
    for bytes in [b"ab".as_slice(), b"c"] {
        bench.board.type_into(&shown, bytes.to_vec(), TYPE_MAX).await.unwrap();
    }
    assert_eq!(next().await, TerminalUserAction::Watched { terminal: 1, watchers: 1 });
    assert_eq!(next().await, TerminalUserAction::Typed { terminal: 1, bytes: 3 });
    // The reader learns that a user types before the program has the input.
    *bench.noted.answers.lock() = false;
    let typing = bench.board.type_into(&shown, b"d".to_vec(), TYPE_MAX);
    assert!(typing.now_or_never().is_none());
    assert_eq!(next().await, TerminalUserAction::Typed { terminal: 1, bytes: 0 });
    *bench.noted.answers.lock() = true;
    drop(first);
    assert_eq!(next().await, TerminalUserAction::Watched { terminal: 1, watchers: 0 });
    assert_eq!(*bench.noted.bytes.lock(), b"abcd");
    // Another plugin of the session learns nothing.
    let mut others =
        bench.board.open_user_actions(&bench.session, &PluginName::from("tool-y")).unwrap();
    bench.board.type_into(&shown, b"d".to_vec(), TYPE_MAX).await.unwrap();
    assert!(others.next().now_or_never().is_none());
}

#[tokio::test(start_paused = true)]
async fn typing_is_reported_once_a_second_and_not_per_key() {
    let bench = TerminalsFixture::new(None);
    bench.show_screen("a");
    let shown = bench.board.find_terminal(&bench.session, 1).unwrap();
    for _ in 0..5 {
        bench.board.type_into(&shown, b"k".to_vec(), TYPE_MAX).await.unwrap();
    }
    assert_eq!(bench.seen.take(), ["a", "typed 1"]);
    tokio::time::sleep(TYPED_EVERY * 2).await;
    assert_eq!(bench.seen.take(), ["typed 4"]);
}

#[tokio::test(start_paused = true)]
async fn hidden_typing_is_reported_without_its_length() {
    let bench = TerminalsFixture::new(None);
    bench.show_screen("Password:");
    let shown = bench.board.find_terminal(&bench.session, 1).unwrap();
    let mut news = bench.board.open_user_actions(&bench.session, &bench.plugin).unwrap();
    *bench.noted.shows.lock() = false;
    for key in [b"h", b"u", b"n", b"\r"] {
        bench.board.type_into(&shown, key.to_vec(), TYPE_MAX).await.unwrap();
    }
    *bench.noted.shows.lock() = true;
    bench.board.type_into(&shown, b"ls\r".to_vec(), TYPE_MAX).await.unwrap();
    assert_eq!(bench.seen.take(), ["Password:", "typed 0"]);
    tokio::time::sleep(TYPED_EVERY * 2).await;
    assert_eq!(bench.seen.take(), ["typed 3"]);
    assert_eq!(*bench.noted.bytes.lock(), b"hun\rls\r");
    let frame = news.next().await.unwrap().unwrap();
    let typed = TerminalUserAction::Typed { terminal: 1, bytes: 3 };
    assert_eq!(Frame::read::<TerminalUserAction>(&frame).unwrap(), typed);
}

#[tokio::test(start_paused = true)]
async fn input_that_the_program_does_not_read_is_an_error_and_not_counted() {
    let bench = TerminalsFixture::new(None);
    bench.show_screen("a");
    let shown = bench.board.find_terminal(&bench.session, 1).unwrap();
    *bench.noted.room.lock() = 3;
    let error = bench.board.type_into(&shown, b"four".to_vec(), TYPE_MAX).await.unwrap_err();
    assert_eq!(error.message, "the program does not read its input");
    assert!(bench.board.type_into(&shown, b"more".to_vec(), TYPE_MAX).await.is_err());
    assert!(bench.board.write(&bench.session, 1, b"secret".to_vec()).await.is_err());
    assert_eq!(bench.seen.take(), ["a", "typed 3"]);
    assert_eq!(*bench.noted.bytes.lock(), b"fou");
}

#[tokio::test]
async fn streams_of_user_actions_per_plugin_are_limited() {
    let bench = TerminalsFixture::new(None);
    let news = || bench.board.open_user_actions(&bench.session, &bench.plugin);
    let held: Vec<_> = (0..4).map(|_| news().unwrap()).collect();
    assert!(news().is_err());
    drop(held);
    assert!(news().is_ok());
}

fn user_folders(root: &Path) -> UserFolders {
    UserFolders::under_root(root)
}

#[tokio::test]
async fn terminal_is_joined_through_a_socket_and_its_end_is_reported() {
    let root = tempfile::tempdir().unwrap();
    let folders = user_folders(root.path());
    let bench = TerminalsFixture::new(Some(SocketFolders::from_folders(&folders)));
    assert!(find_terminals(&folders).await.terminals.is_empty());
    assert!(!bench.board.is_joinable());
    bench.show_screen("first");
    assert!(bench.board.is_joinable());
    let found = find_terminals(&folders).await;
    assert_eq!(found.problems, Vec::<String>::new());
    let [found] = &found.terminals[..] else { panic!("{found:?}") };
    assert_eq!(found.listed.full_name(), "s/session_1");
    let mut joined = join_terminal(found, true).await.unwrap();
    assert!(matches!(joined.next().await, Ok(Some(JoinReply::Attached { .. }))));
    let mut screens = Vec::new();
    loop {
        match joined.next().await.unwrap() {
            Some(JoinReply::Screen { screen, .. }) if screen.lines == ["first"] => {
                joined.type_bytes(&[b'x'; 5000]).await.unwrap();
                while bench.noted.bytes.lock().len() < 5000 {
                    tokio::task::yield_now().await;
                }
                bench.show_screen("second");
            }
            Some(JoinReply::Screen { screen, .. }) if screen.is_alive => {
                screens.push(screen.lines.concat());
                bench.board.remove_terminal(&bench.session, 1);
            }
            Some(JoinReply::Screen { screen, .. }) => screens.push(screen.lines.concat()),
            Some(JoinReply::Ended) => break,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(screens, ["second", "second"]);
    bench.board.close().await;
    assert_eq!(std::fs::read_dir(root.path().join("runtime")).unwrap().count(), 0);
    assert!(!bench.board.is_joinable());
}
