//! The host's end of the socket.
//!
//! No client can delay the session. A client gets the newest screen after it has received the
//! previous one, lines have a maximum length, the number of clients is limited, and a client that
//! is silent or does not read is disconnected.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::FutureExt as _;
use jaato_config::trust::is_session_process;
use jaato_types::SessionId;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{sleep, timeout};

use super::board_terminal::ScreenContent;
use super::{SharedTerminals, TYPE_MAX, TerminalViewer};
use crate::join::SocketFolders;
use crate::join::line::{self, SocketLineReader};
use crate::join::protocol::{JoinReply, JoinRequest, REQUEST_BYTES_MAX, TYPED_BYTES_MAX};
use crate::join::socket_folder::own_user;

/// Maximum number of clients. A further one is refused.
pub(crate) const CLIENTS_MAX: usize = 32;

/// How long a client may take to send its request.
const WISH_MAX: Duration = Duration::from_secs(10);

/// How long a client may read nothing, because its window is stopped or no one is there.
const TAKES_NOTHING_MAX: Duration = Duration::from_secs(60);

/// The minimum time between two screens.
const SCREEN_EVERY: Duration = Duration::from_millis(33);

/// Number of input pieces queued for a program that does not read.
const TYPED_WAITING_MAX: usize = 16;

/// How long a program may take to read the input of a client that has gone.
const HAND_OVER_MAX: Duration = Duration::from_secs(1);

/// How long clients have at the end to receive the final message.
const FAREWELL_MAX: Duration = Duration::from_millis(200);

/// The pause after a connection could not be accepted, for example because no descriptor is left.
const AFTER_TROUBLE: Duration = Duration::from_millis(100);

/// A listening socket. Dropping it removes the socket.
pub(crate) struct TerminalServer {
    path: PathBuf,
    task: JoinHandle<()>,
    stop: Arc<Semaphore>,
}

impl TerminalServer {
    /// Begins to listen.
    ///
    /// # Errors
    /// If no folder can be used, or the system creates no socket.
    pub(crate) fn start(
        door: &SocketFolders,
        board: Weak<SharedTerminals>,
        runtime: &Handle,
    ) -> io::Result<Self> {
        let _entered = runtime.enter();
        let folder = door.open_or_create()?;
        let mut number = [0; 4];
        getrandom::fill(&mut number).map_err(|error| io::Error::other(error.to_string()))?;
        let number = u32::from_le_bytes(number);
        let name = format!("{}-{number:08x}", std::process::id());
        let (making, path) = (folder.join(&name), folder.join(format!("{name}.sock")));
        let listener = UnixListener::bind(&making)?;
        // The socket gets its name after it is private and listening, so that one that refuses
        // connections belongs to a dead host.
        let named = fs::set_permissions(&making, fs::Permissions::from_mode(0o600))
            .and_then(|()| fs::rename(&making, &path));
        if let Err(error) = named {
            // Remove what a failed start left, if possible.
            let _ = fs::remove_file(&making);
            return Err(error);
        }
        let stop = Arc::new(Semaphore::new(0));
        let task = runtime.spawn(accept_clients(listener, board, Arc::clone(&stop)));
        Ok(Self { path, task, stop })
    }

    /// Stops accepting clients and gives the connected ones a moment to receive the final message.
    pub(crate) async fn close(mut self) {
        self.remove_socket();
        self.stop.close();
        // Slower clients find a closed socket.
        let _ = timeout(FAREWELL_MAX, &mut self.task).await;
    }

    fn remove_socket(&self) {
        // If the file is gone, it was mistaken for a dead host's, or its folder was cleared.
        let _ = fs::remove_file(&self.path);
    }
}

impl Drop for TerminalServer {
    fn drop(&mut self) {
        self.remove_socket();
        self.task.abort();
    }
}

async fn accept_clients(
    listener: UnixListener,
    board: Weak<SharedTerminals>,
    stop: Arc<Semaphore>,
) {
    let places = Arc::new(Semaphore::new(CLIENTS_MAX));
    let mut clients = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            // The semaphore has no permits, so this ends when it is closed.
            _ = stop.acquire() => break,
            Some(_) = clients.join_next() => continue,
        };
        let Ok((stream, _)) = accepted else {
            sleep(AFTER_TROUBLE).await;
            continue;
        };
        if !is_own_user(&stream) {
            // Send nothing, so that the peer only finds a closed socket.
            continue;
        }
        let place = Arc::clone(&places).try_acquire_owned();
        let board = board.clone();
        clients.spawn(async move {
            let (from, mut to) = stream.into_split();
            let served = match &place {
                Ok(_) => serve_client(from, &mut to, &board).await,
                Err(_) => Err(format!("{CLIENTS_MAX} clients are already connected")),
            };
            if let Err(message) = served {
                // A client that does not read the reply finds a closed socket.
                let refused = JoinReply::Refused { message };
                let _ = timeout(WISH_MAX, line::write_line(&mut to, &refused)).await;
            }
        });
    }
    drop(listener);
    while clients.join_next().await.is_some() {}
}

/// Returns true if the peer is the same user and not a program of a session.
fn is_own_user(stream: &UnixStream) -> bool {
    let Ok(peer) = stream.peer_cred() else { return false };
    let is_of_session =
        peer.pid().and_then(|pid| u32::try_from(pid).ok()).is_some_and(is_session_process);
    peer.uid() == own_user() && !is_of_session
}

/// Serves a client until it ends.
///
/// # Errors
/// The message for the client.
async fn serve_client(
    from: OwnedReadHalf,
    to: &mut OwnedWriteHalf,
    board: &Weak<SharedTerminals>,
) -> Result<(), String> {
    let mut lines = SocketLineReader::new(from, REQUEST_BYTES_MAX);
    let Ok(first) = timeout(WISH_MAX, read_request(&mut lines)).await else {
        return Err(format!("no request came within {} s", WISH_MAX.as_secs()));
    };
    let Some(board) = board.upgrade() else { return Ok(()) };
    match first? {
        None => Ok(()),
        Some(JoinRequest::List) => {
            let reply = JoinReply::Terminals { terminals: board.list_terminals() };
            // A client that is gone needs no list.
            let _ = timeout(TAKES_NOTHING_MAX, line::write_line(to, &reply)).await;
            Ok(())
        }
        Some(JoinRequest::Attach { session, terminal, types }) => {
            let found = board.find_terminal(&SessionId::from(session.as_str()), terminal);
            let Some(shown) = found else {
                return Err(format!("session `{session}` does not show terminal {terminal}"));
            };
            let look = board.attach_viewer(shown, types);
            show_to_client(&mut lines, to, &board, &look, types).await
        }
        Some(JoinRequest::Type { .. }) => Err("a terminal must be shown before typing".into()),
    }
}

/// Shows a terminal to a client, and types its input, until one of them ends.
async fn show_to_client(
    lines: &mut SocketLineReader<OwnedReadHalf>,
    to: &mut OwnedWriteHalf,
    board: &Arc<SharedTerminals>,
    look: &TerminalViewer,
    types: bool,
) -> Result<(), String> {
    let (typed, to_type) = mpsc::channel(TYPED_WAITING_MAX);
    let (say, said) = mpsc::channel(TYPED_WAITING_MAX);
    let mut hear_and_type = pin!(async {
        let mut handing_over = pin!(forward_input(board, look, to_type, say.clone()).fuse());
        let heard = tokio::select! {
            heard = receive_input(lines, typed, say, types) => heard,
            () = &mut handing_over => Ok(()),
        };
        // Input from before the client left is still typed, unless the program does not read.
        let _ = timeout(HAND_OVER_MAX, handing_over).await;
        heard
    });
    tokio::select! {
        heard = &mut hear_and_type => heard,
        shown = send_screens(to, look, said) => {
            // A client that does not read has gone, or cannot be told anything.
            if shown.is_err() {
                let _ = timeout(HAND_OVER_MAX, hear_and_type).await;
            }
            Ok(())
        }
    }
}

/// Receives a client's input.
async fn receive_input(
    lines: &mut SocketLineReader<OwnedReadHalf>,
    typed: mpsc::Sender<Vec<u8>>,
    say: mpsc::Sender<JoinReply>,
    types: bool,
) -> Result<(), String> {
    loop {
        let bytes = match read_request(lines).await? {
            None => break,
            Some(JoinRequest::Type { bytes }) if types => bytes,
            Some(JoinRequest::Type { .. }) => return Err("it was joined only for viewing".into()),
            Some(JoinRequest::List | JoinRequest::Attach { .. }) => {
                return Err("one connection shows one terminal".into());
            }
        };
        if bytes.len() > TYPED_BYTES_MAX {
            return Err(format!("more than {TYPED_BYTES_MAX} bytes were typed at once"));
        }
        // Longer than a program may take to read it, so that a Ctrl-C after a large paste is not
        // lost.
        if typed.send_timeout(bytes, TYPE_MAX * 2).await.is_err() {
            let message = "the program does not read its input".to_owned();
            // One such message is enough.
            let _ = say.try_send(JoinReply::NotTyped { message });
        }
    }
    Ok(())
}

/// Types the received input in order, until the client sends no more.
async fn forward_input(
    board: &Arc<SharedTerminals>,
    look: &TerminalViewer,
    mut to_type: mpsc::Receiver<Vec<u8>>,
    say: mpsc::Sender<JoinReply>,
) {
    let mut longest = TYPE_MAX;
    while let Some(bytes) = to_type.recv().await {
        longest = match board.type_into(&look.shown, bytes, longest).await {
            Ok(()) => TYPE_MAX,
            Err(error) => {
                // As above.
                let _ = say.try_send(JoinReply::NotTyped { message: error.message });
                // Do not wait for the queued input again, because a Ctrl-C may be part of it.
                Duration::ZERO
            }
        };
    }
}

/// Sends the newest screen as fast as the client reads, and other messages.
async fn send_screens(
    to: &mut OwnedWriteHalf,
    look: &TerminalViewer,
    mut said: mpsc::Receiver<JoinReply>,
) -> io::Result<()> {
    let mut newest = look.shown.subscribe_to_screens();
    send_reply(to, &JoinReply::Attached { terminal: look.shown.list_entry() }).await?;
    loop {
        let picture = Arc::clone(&newest.borrow_and_update());
        let ScreenContent { screen, ansi, is_last } = &*picture;
        send_reply(to, &JoinReply::Screen { screen: screen.clone(), ansi: ansi.clone() }).await?;
        if *is_last {
            return send_reply(to, &JoinReply::Ended).await;
        }
        sleep(SCREEN_EVERY).await;
        loop {
            tokio::select! {
                changed = newest.changed() => match changed {
                    Ok(()) => break,
                    Err(_) => return send_reply(to, &JoinReply::Ended).await,
                },
                Some(reply) = said.recv() => send_reply(to, &reply).await?,
            }
        }
    }
}

async fn send_reply(to: &mut OwnedWriteHalf, reply: &JoinReply) -> io::Result<()> {
    let late = |_| io::Error::from(io::ErrorKind::TimedOut);
    timeout(TAKES_NOTHING_MAX, line::write_line(to, reply)).await.map_err(late)?
}

/// Reads the next request. Returns `None` if the client is gone.
async fn read_request(
    lines: &mut SocketLineReader<OwnedReadHalf>,
) -> Result<Option<JoinRequest>, String> {
    let line = match lines.next().await {
        Ok(Some(line)) => line,
        Err(error) if error.kind() == io::ErrorKind::InvalidData => return Err(error.to_string()),
        Ok(None) | Err(_) => return Ok(None),
    };
    let request = serde_json::from_slice(&line);
    request.map(Some).map_err(|_| "this host does not know the request".to_owned())
}
