//! The fake host as a host that is checked.

use jaato_types::{Error, ErrorKind};

use super::call::Call;
use super::grants::Grants;
use super::host::FakeHost;
use super::services::{Reply, ServiceRequest};
use super::stream::FakeStream;
use crate::host_conformance::{Body, CallUnderTest, Ended, HostUnderTest, TestReply, test_service};

impl FakeHost {
    /// Adds the services that [`crate::host_conformance`] asks for, and grants everything.
    #[must_use]
    pub fn with_test_services(self) -> Self {
        self.shared().services.grants(Grants::list_all);
        let names = ["test.echo", "test.never", "test.panic", "test.stream", "test.head"];
        names.into_iter().fold(self, |host, name| host.with_service(name, test_answer))
    }
}

fn test_answer(request: &ServiceRequest) -> jaato_types::Result<Reply> {
    let bug = |error: jaato_types::FrameError| Error::new(ErrorKind::HostBug, error.to_string());
    let frame = jaato_types::Frame::write_with_bytes(&request.json, &request.bytes).map_err(bug)?;
    match test_service(&request.operation, &frame) {
        TestReply::Frame(_) => Ok(Reply::Bytes(request.json.clone(), request.bytes.clone())),
        TestReply::Never => Ok(Reply::Never),
        TestReply::Stream { pieces, ends } => {
            let stream = FakeStream::open();
            pieces.into_iter().for_each(|piece| stream.push(piece));
            if ends {
                stream.finish();
            }
            Ok(Reply::Stream(stream))
        }
        TestReply::Head { head, piece } => {
            Ok(Reply::StreamWith(head.into(), FakeStream::of([piece])))
        }
        TestReply::Panic => {
            panic!("the service `{}` panics, as the check wants it", request.operation)
        }
        TestReply::Unknown => {
            let text = format!("this host has no service `{}`", request.operation);
            Err(Error::new(ErrorKind::UnknownOperation, text))
        }
    }
}

impl HostUnderTest for FakeHost {
    fn start(&self, body: Body) -> Box<dyn CallUnderTest> {
        let read = |frame: &[u8]| Ok(frame.to_vec());
        Box::new(Call::start(self.shared(), read, |context, given| {
            context.run_into(body, given);
            Ok(())
        }))
    }
}

impl CallUnderTest for Call<Vec<u8>> {
    fn cancel(self: Box<Self>) {
        let _ = Call::cancel(*self);
    }

    fn wait(self: Box<Self>) -> Ended {
        self.wait_raw()
    }
}
