//! One end of the socket between host and worker. Sends whole messages from any thread, in order.
//!
//! Bytes that the socket does not take at once are queued here, so that no sender blocks. If the
//! other end does not read and the queue grows too large, the link closes.

use std::io::ErrorKind::WouldBlock;
use std::io::{self, Write as _};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use parking_lot::{Mutex, MutexGuard};
use rustix::buffer::spare_capacity;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::Notify;

use super::wire::{
    HEADER_BYTES, LinkMessageFlag, LinkMessageHeader, LinkMessageKind, MalformedLinkMessage,
};
use crate::platform::register_interest;

/// Maximum bytes queued for an end that does not read.
pub const WAITING_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Maximum bytes per read. The rest of a larger message is read in one go after its header.
const READ_BYTES: usize = 64 * 1024;

/// A received message.
#[derive(Debug)]
pub struct LinkMessage {
    /// The kind of message.
    pub kind: LinkMessageKind,
    /// The kind of payload.
    pub flag: LinkMessageFlag,
    /// The number of the call or the request.
    pub id: u64,
    /// The payload.
    pub payload: Vec<u8>,
}

/// One end of the socket.
#[derive(Debug)]
pub struct WorkerLink {
    socket: UnixStream,
    out: Mutex<LinkSendQueue>,
    /// Wakes the task that writes queued bytes.
    waiting: Notify,
}

#[derive(Debug, Default)]
struct LinkSendQueue {
    bytes: Vec<u8>,
    written: usize,
    closed: bool,
    /// The other end did not read.
    given_up: bool,
}

impl LinkSendQueue {
    /// Refuses everything and discards queued bytes.
    fn close(&mut self, given_up: bool) {
        *self = Self { closed: true, given_up: given_up || self.given_up, ..Self::default() };
    }
}

impl WorkerLink {
    /// Takes an end of a socket pair and makes it non-blocking. [`WorkerLink::write_queued_bytes`]
    /// must run concurrently.
    ///
    /// # Errors
    /// If the system refuses that.
    pub fn new(socket: UnixStream) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        Ok(Self { socket, out: Mutex::default(), waiting: Notify::new() })
    }

    /// Sends a message whose payload is `head` and `frame`. Returns false if the other end is gone.
    pub fn send_message(
        &self,
        kind: LinkMessageKind,
        flag: LinkMessageFlag,
        id: u64,
        head: &[u8],
        frame: &[u8],
    ) -> bool {
        let header =
            LinkMessageHeader { kind, flag, id, length: head.len() + frame.len() }.encode();
        let out = self.out.lock();
        if out.closed {
            return false;
        }
        let mut sent = 0;
        if out.bytes.is_empty() {
            let parts = [&header, head, frame].map(io::IoSlice::new);
            match (&self.socket).write_vectored(&parts) {
                Ok(written) => sent = written,
                Err(error) if error.kind() == WouldBlock => {}
                Err(_) => {
                    drop(out);
                    self.shut_down();
                    return false;
                }
            }
        }
        self.queue_rest(out, [&header, head, frame], sent)
    }

    /// Queues the bytes that the socket did not take. Returns false if the queue is too large.
    fn queue_rest(
        &self,
        mut out: MutexGuard<'_, LinkSendQueue>,
        parts: [&[u8]; 3],
        mut sent: usize,
    ) -> bool {
        let mut rest = false;
        for part in parts {
            let taken = sent.min(part.len());
            sent -= taken;
            out.bytes.extend_from_slice(&part[taken..]);
            rest |= taken < part.len();
        }
        if out.bytes.len() - out.written > WAITING_BYTES_MAX {
            out.close(true);
        }
        let open = !out.closed;
        drop(out);
        if rest || !open {
            self.waiting.notify_one();
        }
        open
    }

    /// Returns the number of bytes queued for the other end.
    pub fn queued_bytes(&self) -> usize {
        let out = self.out.lock();
        out.bytes.len() - out.written
    }

    /// Refuses all further messages.
    pub fn close(&self) {
        self.out.lock().close(false);
        self.waiting.notify_one();
    }

    /// Closes this end because the other cannot be written to. Also stops reading, because no
    /// answer to an unsent message can arrive.
    fn shut_down(&self) {
        self.close();
        // Fails only if the socket is disconnected.
        let _ = self.socket.shutdown(Shutdown::Both);
    }

    /// Writes queued bytes until the other end is gone or this one is closed. Returns true if it
    /// gave up because the other end does not read.
    pub async fn write_queued_bytes(&self) -> bool {
        if self.write_queue().await.is_err() {
            self.shut_down();
        }
        self.out.lock().given_up
    }

    async fn write_queue(&self) -> io::Result<()> {
        // Created early, because the process may run out of descriptors later.
        let mut socket = OwnedFd::from(self.socket.try_clone()?);
        while !self.out.lock().closed {
            self.waiting.notified().await;
            socket = self.write_all(socket).await?;
        }
        Ok(())
    }

    fn has_queued_bytes(&self) -> bool {
        !self.out.lock().bytes.is_empty()
    }

    /// Writes queued bytes. Returns the descriptor that it used for waiting.
    async fn write_all(&self, socket: OwnedFd) -> io::Result<OwnedFd> {
        if !self.has_queued_bytes() {
            return Ok(socket);
        }
        let outgoing = register_interest(socket, Interest::WRITABLE)?;
        while self.has_queued_bytes() {
            if let Ok(failed) = outgoing.writable().await?.try_io(|_| self.write_some()) {
                failed?;
            }
        }
        Ok(outgoing.into_inner())
    }

    fn write_some(&self) -> io::Result<()> {
        let mut out = self.out.lock();
        out.written += (&self.socket).write(&out.bytes[out.written..])?;
        if out.written == out.bytes.len() {
            (out.bytes, out.written) = (Vec::new(), 0);
        } else if out.written > out.bytes.len() / 2 {
            let written = std::mem::take(&mut out.written);
            out.bytes.drain(..written);
        }
        Ok(())
    }
}

/// Reads messages from a link. Use one reader per end.
#[derive(Debug, Default)]
pub struct LinkReader {
    /// The socket, registered only for reading, so that reads by the other end do not wake this
    /// reader.
    incoming: Option<AsyncFd<OwnedFd>>,
    buffer: Vec<u8>,
    /// Bytes at the start of the buffer that were already returned.
    read: usize,
}

impl LinkReader {
    /// Waits for the next message, or returns `None` at the end. Cancel safe.
    ///
    /// # Errors
    /// If the socket fails, ends in the middle of a message, or delivers an invalid message.
    ///
    /// # Panics
    /// Outside of a runtime with I/O enabled.
    pub async fn next_message(
        &mut self,
        link: &WorkerLink,
    ) -> Result<Option<LinkMessage>, MalformedLinkMessage> {
        loop {
            if let Some(message) = self.take_message()? {
                return Ok(Some(message));
            }
            if self.read_more(link).await? {
                return Ok(None);
            }
        }
    }

    /// Waits for more bytes. Returns true at the end of the stream. Cancel safe.
    pub(super) async fn read_more(
        &mut self,
        link: &WorkerLink,
    ) -> Result<bool, MalformedLinkMessage> {
        let failed = |error: io::Error| MalformedLinkMessage(error.to_string());
        let incoming = match &self.incoming {
            Some(incoming) => incoming,
            None => {
                let socket = link.socket.try_clone().map_err(failed)?;
                let incoming = register_interest(socket.into(), Interest::READABLE);
                self.incoming.insert(incoming.map_err(failed)?)
            }
        };
        loop {
            let mut ready = incoming.readable().await.map_err(failed)?;
            // If nothing was there, the loop waits again.
            let read =
                ready.try_io(|_| read_available(&mut self.buffer, &mut self.read, &link.socket));
            if let Ok(read) = read {
                return self.is_end_of_stream(read);
            }
        }
    }

    /// Returns true if the result of a read marks the end.
    fn is_end_of_stream(&self, read: io::Result<usize>) -> Result<bool, MalformedLinkMessage> {
        match read {
            Ok(0) if self.unread_bytes().is_empty() => Ok(true),
            Ok(0) => Err(MalformedLinkMessage(format!(
                "the end after {} bytes of a message",
                self.unread_bytes().len()
            ))),
            Ok(_) => Ok(false),
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Ok(true),
            Err(error) => Err(MalformedLinkMessage(error.to_string())),
        }
    }

    /// Returns the number of bytes of an incomplete message.
    pub(super) fn incomplete_bytes(&self) -> usize {
        self.unread_bytes().len()
    }

    fn unread_bytes(&self) -> &[u8] {
        &self.buffer[self.read..]
    }

    /// Takes the next message if it is complete.
    pub(super) fn take_message(&mut self) -> Result<Option<LinkMessage>, MalformedLinkMessage> {
        let Some((header, rest)) = self.unread_bytes().split_first_chunk::<HEADER_BYTES>() else {
            return Ok(None);
        };
        let LinkMessageHeader { kind, flag, id, length } = LinkMessageHeader::decode(header)?;
        let Some(payload) = rest.get(..length) else { return Ok(None) };
        let ends_here = self.read + HEADER_BYTES + length == self.buffer.len();
        let payload = if length >= READ_BYTES && self.read == 0 && ends_here {
            // A large message that came alone keeps its memory.
            let mut payload = std::mem::take(&mut self.buffer);
            payload.drain(..HEADER_BYTES);
            payload
        } else {
            let payload = payload.to_vec();
            self.read += HEADER_BYTES + length;
            payload
        };
        if ends_here {
            self.read = 0;
            self.buffer.clear();
            // One large message must not hold its memory forever.
            self.buffer.shrink_to(READ_BYTES);
        }
        Ok(Some(LinkMessage { kind, flag, id, payload }))
    }
}

/// Reads available bytes into the buffer, after removing the bytes already returned.
fn read_available(
    buffer: &mut Vec<u8>,
    handed_out: &mut usize,
    socket: &UnixStream,
) -> io::Result<usize> {
    buffer.drain(..std::mem::take(handed_out));
    let wanted = match buffer.first_chunk::<4>() {
        Some(length) => u32::from_le_bytes(*length) as usize + HEADER_BYTES,
        None => 0,
    };
    // A length that is too large is rejected as soon as the whole header arrives.
    let room = wanted.saturating_sub(buffer.len());
    buffer.reserve_exact(room.clamp(READ_BYTES, super::wire::PAYLOAD_BYTES_MAX));
    // Reads into uninitialized memory, because a message may arrive byte by byte.
    Ok(rustix::io::read(socket, spare_capacity(buffer))?)
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::sync::Arc;

    use super::*;

    fn link_pair() -> (Arc<WorkerLink>, Arc<WorkerLink>) {
        let (a, b) = UnixStream::pair().unwrap();
        (Arc::new(WorkerLink::new(a).unwrap()), Arc::new(WorkerLink::new(b).unwrap()))
    }

    #[tokio::test]
    async fn messages_of_every_size_arrive_whole_and_in_order() {
        let (host, worker) = link_pair();
        let writing = tokio::spawn({
            let host = Arc::clone(&host);
            async move { host.write_queued_bytes().await }
        });
        let sizes = [0, 1, 15, 65_520, 65_536, 1_000_000, 3, 8 * 1024 * 1024];
        for (id, size) in sizes.into_iter().enumerate() {
            assert!(host.send_message(
                LinkMessageKind::Emit,
                LinkMessageFlag::Frame,
                id as u64,
                b"ab",
                &vec![7; size]
            ));
        }
        let mut reader = LinkReader::default();
        for (id, size) in sizes.into_iter().enumerate() {
            let message = reader.next_message(&worker).await.unwrap().unwrap();
            assert_eq!((message.kind, message.id), (LinkMessageKind::Emit, id as u64));
            assert_eq!(message.payload.len(), size + 2);
            assert!(
                message.payload.starts_with(b"ab")
                    && message.payload.ends_with(&[7][..size.min(1)])
            );
        }
        let room = reader.buffer.capacity();
        assert!(room <= 2 * READ_BYTES, "{room}");
        host.close();
        writing.await.unwrap();
        drop(host);
        assert!(reader.next_message(&worker).await.unwrap().is_none());
        assert!(!worker.send_message(LinkMessageKind::Emit, LinkMessageFlag::Frame, 0, b"", b""));
    }

    #[tokio::test]
    async fn connection_that_ends_inside_a_message_is_an_error() {
        let (host, worker) = link_pair();
        let header = LinkMessageHeader {
            kind: LinkMessageKind::Emit,
            flag: LinkMessageFlag::Frame,
            id: 0,
            length: 10,
        }
        .encode();
        (&host.socket).write_all(&header).unwrap();
        (&host.socket).write_all(b"only").unwrap();
        drop(host);
        let error = LinkReader::default().next_message(&worker).await.unwrap_err();
        assert_eq!(error.0, "the end after 20 bytes of a message");
    }

    #[tokio::test]
    async fn reading_stops_when_the_peer_cannot_be_written_to() {
        let (host, worker) = link_pair();
        worker.socket.shutdown(Shutdown::Read).unwrap();
        assert!(!host.send_message(LinkMessageKind::Call, LinkMessageFlag::Frame, 1, b"", b"{}"));
        assert!(LinkReader::default().next_message(&host).await.unwrap().is_none());
        // The same if the failure is detected later.
        let (host, worker) = link_pair();
        let writing = tokio::spawn({
            let host = Arc::clone(&host);
            async move { host.write_queued_bytes().await }
        });
        assert!(host.send_message(
            LinkMessageKind::Call,
            LinkMessageFlag::Frame,
            1,
            b"",
            &vec![0; 8 * 1024 * 1024]
        ));
        worker.socket.shutdown(Shutdown::Read).unwrap();
        // Free space wakes the writer.
        let mut taken = vec![0; 8 * 1024 * 1024];
        while (&worker.socket).read(&mut taken).unwrap() > 0 {}
        assert!(LinkReader::default().next_message(&host).await.unwrap().is_none());
        assert!(!writing.await.unwrap());
    }

    #[tokio::test]
    async fn link_to_a_peer_that_does_not_read_is_closed() {
        let (host, _worker) = link_pair();
        let writing = tokio::spawn({
            let host = Arc::clone(&host);
            async move { host.write_queued_bytes().await }
        });
        let piece = vec![0; 8 * 1024 * 1024];
        let sent = (0..100)
            .take_while(|_| {
                host.send_message(LinkMessageKind::Emit, LinkMessageFlag::Frame, 0, b"", &piece)
            })
            .count();
        assert!((7..=9).contains(&sent), "{sent}");
        assert!(writing.await.unwrap());
    }
}
