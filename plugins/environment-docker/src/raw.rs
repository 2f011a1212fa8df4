//! A raw stream of a terminal's bytes.
//!
//! Bollard expects frames even in a terminal's output, which has no frames, and would drop a chunk
//! that begins with byte 0, 1 or 2. This module therefore writes this one request itself.

use std::io;
use std::pin::Pin;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, UnixStream};

use crate::address::EngineAddress;
use crate::link::EngineInputStream;

/// The maximum size of the head of a response. Engines send a few hundred bytes.
const HEAD_BYTES_MAX: usize = 16 * 1024;

/// The output of a terminal.
pub type TerminalReader = Pin<Box<dyn AsyncRead + Send>>;

/// The reason why the engine did not switch protocols.
#[derive(Debug)]
pub enum UpgradeFailure {
    /// The connection failed.
    Io(io::Error),
    /// The engine refused, with a status and a text.
    Refused(u16, String),
}

impl From<io::Error> for UpgradeFailure {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Starts a command that was created with a terminal. Returns both directions.
pub async fn start_exec_on_terminal(
    address: &EngineAddress,
    exec: &str,
) -> Result<(TerminalReader, EngineInputStream), UpgradeFailure> {
    let (mut reader, mut writer): (TerminalReader, EngineInputStream) = match address {
        EngineAddress::Unix(path) => {
            let stream = UnixStream::connect(path).await?;
            let (reader, writer) = stream.into_split();
            (Box::pin(reader), Box::pin(writer))
        }
        EngineAddress::Tcp(host) => {
            let (reader, writer) = TcpStream::connect(host).await?.into_split();
            (Box::pin(reader), Box::pin(writer))
        }
    };
    let body = r#"{"Detach":false,"Tty":true}"#;
    let head = format!(
        "POST /exec/{exec}/start HTTP/1.1\r\nHost: docker\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    writer.write_all(head.as_bytes()).await?;
    writer.flush().await?;
    let status = read_status(&mut reader).await?;
    if status == 101 || status == 200 {
        return Ok((reader, writer));
    }
    // The engine keeps the connection open after its text, so there is only one read.
    let mut said = vec![0; HEAD_BYTES_MAX];
    let length = reader.read(&mut said).await?;
    Err(UpgradeFailure::Refused(status, String::from_utf8_lossy(&said[..length]).into_owned()))
}

/// Reads byte by byte, because the bytes after the head belong to the terminal.
async fn read_status(reader: &mut TerminalReader) -> io::Result<u16> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() >= HEAD_BYTES_MAX {
            return Err(io::ErrorKind::InvalidData.into());
        }
        head.push(reader.read_u8().await?);
    }
    let text = String::from_utf8_lossy(&head);
    let status = text.split_whitespace().nth(1).and_then(|word| word.parse().ok());
    status.ok_or_else(|| io::ErrorKind::InvalidData.into())
}
