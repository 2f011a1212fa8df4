//! The client's end: finds the hosts of the same user, lists their terminals, and follows one.

use std::fs;
use std::io;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jaato_config::UserFolders;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::timeout;

use super::line::{self, SocketLineReader};
use super::protocol::{JoinReply, JoinRequest, JoinableTerminal, REPLY_BYTES_MAX, TYPED_BYTES_MAX};
use super::socket_folder::{SocketFolders, own_user};

/// How long a host may take to answer.
const ANSWER_MAX: Duration = Duration::from_secs(5);

/// The extension of sockets.
const ENDING: &str = ".sock";

/// Maximum number of sockets to ask: far more than a user has hosts.
const HOSTS_MAX: usize = 1024;

/// A terminal and its socket.
#[derive(Debug, Clone)]
pub struct FoundTerminal {
    /// The terminal's entry from its host.
    pub listed: JoinableTerminal,
    socket: PathBuf,
}

/// The result of a search.
#[derive(Debug, Default)]
pub struct TerminalSearchResult {
    /// The terminals of all hosts of this user, by session and number.
    pub terminals: Vec<FoundTerminal>,
    /// Hosts that did not answer, one line each.
    pub problems: Vec<String>,
}

/// A terminal that the client follows.
pub struct JoinedTerminal {
    from: SocketLineReader<OwnedReadHalf>,
    to: OwnedWriteHalf,
}

/// Finds the terminals of all hosts of this user. Removes the socket of a dead host.
pub async fn find_terminals(folders: &UserFolders) -> TerminalSearchResult {
    find_in(&SocketFolders::from_folders(folders)).await
}

/// Joins a terminal to look at it, or to type there as well.
///
/// # Errors
/// If its host does not answer.
pub async fn join_terminal(found: &FoundTerminal, types: bool) -> io::Result<JoinedTerminal> {
    let (from, mut to) = connect_to_own_socket(&found.socket).await?.into_split();
    let JoinableTerminal { session, terminal, .. } = &found.listed;
    let request = JoinRequest::Attach { session: session.clone(), terminal: *terminal, types };
    with_timeout(line::write_line(&mut to, &request)).await?;
    Ok(JoinedTerminal { from: SocketLineReader::new(from, REPLY_BYTES_MAX), to })
}

impl JoinedTerminal {
    /// Waits for the host's next message. Returns `None` if the host is gone. Cancel safe.
    ///
    /// # Errors
    /// If the message cannot be parsed.
    pub async fn next(&mut self) -> io::Result<Option<JoinReply>> {
        let Some(line) = self.from.next().await? else { return Ok(None) };
        Ok(Some(serde_json::from_slice(&line)?))
    }

    /// Types bytes.
    ///
    /// # Errors
    /// If the host is gone, or does not read.
    pub async fn type_bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        for piece in bytes.chunks(TYPED_BYTES_MAX) {
            let request = JoinRequest::Type { bytes: piece.to_vec() };
            with_timeout(line::write_line(&mut self.to, &request)).await?;
        }
        Ok(())
    }
}

pub(crate) async fn find_in(door: &SocketFolders) -> TerminalSearchResult {
    let mut found = TerminalSearchResult::default();
    for socket in door.existing_folders().into_iter().flat_map(list_sockets).take(HOSTS_MAX) {
        match list_terminals(&socket).await {
            Ok(terminals) => found.terminals.extend(
                terminals
                    .into_iter()
                    .map(|listed| FoundTerminal { listed, socket: socket.clone() }),
            ),
            // No one listens, so the host is dead. A living host would have removed the socket.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                // Another process may have removed it.
                let _ = fs::remove_file(&socket);
            }
            // The host has ended.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => found.problems.push(format!("`{}`: {error}", socket.display())),
        }
    }
    let key = |it: &FoundTerminal| (it.listed.session.clone(), it.listed.terminal);
    found.terminals.sort_by_key(key);
    found
}

fn list_sockets(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let is_socket = |entry: &fs::DirEntry| {
        let name = entry.file_name();
        entry.file_type().is_ok_and(|kind| kind.is_socket())
            && name.to_str().is_some_and(|name| name.ends_with(ENDING))
    };
    let mut sockets: Vec<_> = entries.filter(is_socket).map(|entry| entry.path()).collect();
    sockets.sort();
    sockets
}

async fn list_terminals(socket: &Path) -> io::Result<Vec<JoinableTerminal>> {
    let (from, mut to) = connect_to_own_socket(socket).await?.into_split();
    with_timeout(line::write_line(&mut to, &JoinRequest::List)).await?;
    let mut lines = SocketLineReader::new(from, REPLY_BYTES_MAX);
    let Some(line) = with_timeout(lines.next()).await? else { return Ok(Vec::new()) };
    match serde_json::from_slice(&line)? {
        JoinReply::Terminals { terminals } => Ok(terminals),
        JoinReply::Refused { message } => Err(io::Error::other(message)),
        JoinReply::Attached { .. }
        | JoinReply::Screen { .. }
        | JoinReply::NotTyped { .. }
        | JoinReply::Ended
        | JoinReply::Unknown => Err(io::Error::other("it sent an unknown answer")),
    }
}

/// Connects to a socket, but only if it belongs to this user.
async fn connect_to_own_socket(socket: &Path) -> io::Result<UnixStream> {
    let stream = with_timeout(UnixStream::connect(socket)).await?;
    let peer = stream.peer_cred()?.uid();
    if peer != own_user() {
        return Err(io::Error::other(format!("user {peer} listens there")));
    }
    Ok(stream)
}

async fn with_timeout<T>(work: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    let late = || {
        let text = format!("its host does not answer within {} s", ANSWER_MAX.as_secs());
        io::Error::new(io::ErrorKind::TimedOut, text)
    };
    timeout(ANSWER_MAX, work).await.map_err(|_| late())?
}
