//! A server on loopback that answers as the vendors do, and sees when requests come and clients go.
//!
//! A thread a connection, which is kept alive. The path tells the protocol; what is no question for
//! an answer is not found. Nothing of it is counted as jaato's.

use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use parking_lot::Mutex;

use super::wire::{Protocol, Saying};
use crate::bench::agent::server::read_request;

/// Every protocol that is spoken here.
const PROTOCOLS: [Protocol; 5] = [
    Protocol::ChatCompletions,
    Protocol::Responses,
    Protocol::Messages,
    Protocol::GenerateContent,
    Protocol::OllamaChat,
];

/// What the models say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Play {
    /// A text in so many pieces, to each request.
    Text { pieces: usize },
    /// A call and a word, by turns.
    CallAndWord,
    /// A beginning, and nothing behind it.
    Hang,
}

/// A request that was answered.
#[derive(Debug, Clone, Copy)]
pub struct Seen {
    /// When its last byte was there.
    pub asked: Instant,
    /// How long its body is.
    pub bytes: usize,
    /// When its answer was about to be written.
    pub answered: Instant,
}

/// The server. It ends when it is dropped.
pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    begun: Receiver<()>,
    gone: Receiver<Instant>,
    accepting: Option<JoinHandle<()>>,
}

struct Shared {
    play: Mutex<Play>,
    seen: Mutex<Vec<Seen>>,
    begun: Mutex<Sender<()>>,
    gone: Mutex<Sender<Instant>>,
    closing: AtomicBool,
}

impl Server {
    /// Starts one at a free port.
    pub fn start() -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("listening")?;
        let address = listener.local_addr().context("listening")?;
        let ((begun_sender, begun), (gone_sender, gone)) = (channel(), channel());
        let shared = Arc::new(Shared {
            play: Mutex::new(Play::Text { pieces: 1 }),
            seen: Mutex::default(),
            begun: Mutex::new(begun_sender),
            gone: Mutex::new(gone_sender),
            closing: AtomicBool::new(false),
        });
        let accepting = Arc::clone(&shared);
        let accepting = std::thread::spawn(move || accept(&listener, &accepting));
        Ok(Self { address, shared, begun, gone, accepting: Some(accepting) })
    }

    /// Where it is.
    pub fn root_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Begins another play.
    pub fn play(&self, play: Play) {
        *self.shared.play.lock() = play;
        self.shared.seen.lock().clear();
        self.begun.try_iter().for_each(drop);
        self.gone.try_iter().for_each(drop);
    }

    /// Takes the requests that were answered since the play began.
    pub fn take_seen(&self) -> Vec<Seen> {
        std::mem::take(&mut *self.shared.seen.lock())
    }

    /// Waits until an answer hangs.
    pub fn wait_until_begun(&self, within: Duration) -> Result<()> {
        let waited = self.begun.recv_timeout(within);
        waited.ok().with_context(|| format!("no request came within {within:?}"))
    }

    /// Waits until the client of an answer that hangs has gone; says when it went.
    pub fn wait_until_gone(&self, within: Duration) -> Result<Instant> {
        let waited = self.gone.recv_timeout(within);
        waited.ok().with_context(|| format!("the connection was still open after {within:?}"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.closing.store(true, Ordering::SeqCst);
        // Wakes the thread that accepts; where that fails, it has ended already.
        let _ = TcpStream::connect(self.address);
        if let Some(accepting) = self.accepting.take() {
            // It has nothing to tell; a connection's thread ends with its client.
            let _ = accepting.join();
        }
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for stream in listener.incoming() {
        if shared.closing.load(Ordering::SeqCst) {
            return;
        }
        let Ok(stream) = stream else { continue };
        let shared = Arc::clone(shared);
        std::thread::spawn(move || {
            if let Err(error) = serve(&stream, &shared) {
                // A client that goes away in the middle is what one of the benches is about.
                if error.downcast_ref::<std::io::Error>().is_none() {
                    eprintln!("the scripted server: {error:#}");
                }
            }
        });
    }
}

/// Answers one request after the other until the client closes.
fn serve(stream: &TcpStream, shared: &Shared) -> Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = std::io::BufReader::new(stream);
    let mut stream = stream;
    while let Some(request) = read_request(&mut reader)? {
        let asked = Instant::now();
        let path = request.target.split('?').next().unwrap_or_default();
        let Some(protocol) = PROTOCOLS.iter().find(|one| path.ends_with(one.path())) else {
            stream.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")?;
            continue;
        };
        let play = *shared.play.lock();
        let saying = saying(play, shared.seen.lock().len());
        let bytes = response(*protocol, saying);
        // Before the answer, which may be the last that the client waits for.
        let (length, answered) = (request.body.len(), Instant::now());
        shared.seen.lock().push(Seen { asked, bytes: length, answered });
        stream.write_all(&bytes)?;
        if saying == Saying::Beginning {
            // A bench that gave up does not listen.
            let _ = shared.begun.lock().send(());
            let end = std::io::copy(&mut reader, &mut std::io::sink());
            let _ = shared.gone.lock().send(Instant::now());
            end?;
            return Ok(());
        }
    }
    Ok(())
}

fn saying(play: Play, answered_before: usize) -> Saying {
    match play {
        Play::Text { pieces } => Saying::Text { pieces },
        Play::CallAndWord if answered_before.is_multiple_of(2) => Saying::Call,
        Play::CallAndWord => Saying::Text { pieces: 1 },
        Play::Hang => Saying::Beginning,
    }
}

/// Each event is a chunk of its own, as if it had come by itself; all of them are written at once,
/// so that each run reads the same bytes in the same pieces.
fn response(protocol: Protocol, saying: Saying) -> Vec<u8> {
    let kind = protocol.content_type();
    let head =
        format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ntransfer-encoding: chunked\r\n\r\n");
    let chunk = |event: &String| format!("{:x}\r\n{event}\r\n", event.len());
    let mut text = head;
    text.extend(protocol.written(saying).iter().map(chunk));
    if saying != Saying::Beginning {
        text.push_str("0\r\n\r\n");
    }
    text.into_bytes()
}

/// How long each request took to come behind the call that it answers, with its length.
pub fn waits_behind_calls(seen: &[Seen]) -> Result<Vec<(Duration, usize)>> {
    if seen.len() < 2 || !seen.len().is_multiple_of(2) {
        bail!("{} requests are no calls and words by turns", seen.len());
    }
    let wait = |pair: &[Seen]| (pair[1].asked - pair[0].answered, pair[1].bytes);
    Ok(seen.chunks(2).map(wait).collect())
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn the_path_tells_the_protocol_and_a_call_comes_before_a_word() {
        let server = Server::start().unwrap();
        server.play(Play::CallAndWord);
        let mut stream = TcpStream::connect(server.address).unwrap();
        for path in ["/v1/models", "/v1/messages", "/v1/messages?x=1"] {
            write!(stream, "POST {path} HTTP/1.1\r\ncontent-length: 2\r\n\r\n{{}}").unwrap();
        }
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let places = ["404 Not Found", "tool_use", "text_delta"].map(|word| text.find(word));
        assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{text}");
        let waits = waits_behind_calls(&server.take_seen()).unwrap();
        assert_eq!(waits.iter().map(|(_, bytes)| *bytes).collect::<Vec<_>>(), [2]);
        assert!(waits_behind_calls(&[]).is_err());
    }

    #[test]
    fn who_goes_while_an_answer_hangs_is_seen_to_go() {
        let server = Server::start().unwrap();
        server.play(Play::Hang);
        let mut stream = TcpStream::connect(server.address).unwrap();
        write!(stream, "POST /api/chat HTTP/1.1\r\ncontent-length: 0\r\n\r\n").unwrap();
        server.wait_until_begun(Duration::from_secs(60)).unwrap();
        let before = Instant::now();
        drop(stream);
        assert!(server.wait_until_gone(Duration::from_secs(60)).unwrap() >= before);
    }
}
