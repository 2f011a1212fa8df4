//! A proxy between a client and the engine. Closing it makes the engine unavailable for the client.

use std::path::PathBuf;

use environment_docker::EngineAddress;
use tempfile::TempDir;
use tokio::net::{TcpStream, UnixListener, UnixStream};
use tokio::task::{JoinHandle, JoinSet};

/// A socket that leads to the engine while this exists.
pub struct EngineGate {
    folder: TempDir,
    keeper: JoinHandle<()>,
}

impl EngineGate {
    /// Opens a gate to the engine.
    pub fn open(address: EngineAddress) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join("engine.sock")).unwrap();
        let keeper = tokio::spawn(async move {
            let mut passing = JoinSet::new();
            loop {
                let (client, _) = listener.accept().await.unwrap();
                passing.spawn(forward_client(client, address.clone()));
            }
        });
        Self { folder, keeper }
    }

    /// Returns the address for clients.
    pub fn address(&self) -> EngineAddress {
        EngineAddress::Unix(self.path())
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("engine.sock")
    }

    /// Breaks all connections and removes the socket.
    pub async fn close(&mut self) {
        std::fs::remove_file(self.path()).unwrap();
        self.keeper.abort();
        assert!((&mut self.keeper).await.unwrap_err().is_cancelled());
    }
}

async fn forward_client(mut client: UnixStream, address: EngineAddress) {
    // Either side may close the connection at any time.
    match address {
        EngineAddress::Unix(path) => {
            let mut engine = UnixStream::connect(path).await.unwrap();
            let _ = tokio::io::copy_bidirectional(&mut client, &mut engine).await;
        }
        EngineAddress::Tcp(host) => {
            let mut engine = TcpStream::connect(host).await.unwrap();
            let _ = tokio::io::copy_bidirectional(&mut client, &mut engine).await;
        }
    }
}
