//! A host that stores images.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use jaato_loader::{EngineServiceAnswer, EngineServices, ServiceCaller};
use jaato_types::{Error, ErrorKind, Frame};
use parking_lot::Mutex;
use serde_json::{Value, json};

/// The bytes of each blob by its number, shared by all calls of a session.
#[derive(Default, Clone)]
pub struct FakeBlobs(Arc<Mutex<Vec<Vec<u8>>>>);

impl FakeBlobs {
    /// Returns the size of each blob, in order.
    pub fn sizes(&self) -> Vec<usize> {
        self.0.lock().iter().map(Vec::len).collect()
    }

    fn put_blob(&self, frame: &[u8]) -> Result<EngineServiceAnswer, Error> {
        let frame = Frame::parse(frame).unwrap();
        let request: Value = frame.json().unwrap();
        assert!(request["mime_type"].is_string(), "{request}");
        let mut kept = self.0.lock();
        kept.push(frame.bytes.to_vec());
        let id = format!("b-{}", kept.len() - 1);
        Ok(EngineServiceAnswer::Frame(Frame::write(&json!({ "blob": id })).unwrap()))
    }

    fn get(&self, frame: &[u8]) -> Result<EngineServiceAnswer, Error> {
        let request: Value = Frame::read(frame).unwrap();
        let kept = self.0.lock();
        let id = request["blob"].as_str().and_then(|id| id.strip_prefix("b-"));
        let bytes = id.and_then(|id| kept.get(id.parse::<usize>().ok()?));
        let none = || Error::new(ErrorKind::NotFound, format!("no blob {request}"));
        let stream = futures_util::stream::iter([Ok(bytes.ok_or_else(none)?.clone())]);
        Ok(EngineServiceAnswer::Stream(Box::new(stream)))
    }
}

impl EngineServices for FakeBlobs {
    fn call(
        &self,
        _caller: ServiceCaller,
        operation: &str,
        frame: Vec<u8>,
    ) -> BoxFuture<'static, Result<EngineServiceAnswer, Error>> {
        let served = match operation {
            "blob.put" => self.put_blob(&frame),
            "blob.get" => self.get(&frame),
            other => {
                let text = format!("this host has no service `{other}`");
                Err(Error::new(ErrorKind::UnknownOperation, text))
            }
        };
        Box::pin(std::future::ready(served))
    }
}
