//! The service `output`: what is too large for the model, kept where the session works.

use std::sync::Arc;

use jaato_environments::KeptOutput;
use jaato_instances::OutputSink;
use jaato_loader::{Caller, CallerKind};
use jaato_types::service::{OUTPUT, OutputAnswer, OutputWrite};
use jaato_types::{Delta, Error, ErrorKind, Frame};

use super::{Answer, Service, bad_request, frame, ready};
use crate::call::Call;

/// The output file of a tool call.
pub struct Output;

impl Service for Output {
    fn has(&self, operation: &str) -> bool {
        operation == OUTPUT
    }

    fn is_for(&self, _call: &Call, caller: &Caller) -> bool {
        caller.kind == CallerKind::Call
    }

    fn call(&self, call: &Call, _operation: &str, request: Vec<u8>) -> Answer {
        let parsed = Frame::parse(&request).map_err(bad_request).and_then(|parsed| {
            let write: Option<OutputWrite> = parsed.json().map_err(bad_request)?;
            Ok((write.unwrap_or_default(), parsed.bytes.to_vec()))
        });
        let Some(id) = call.site.call.clone() else {
            let text = "only a tool call has an output";
            return ready(Err(Error::new(ErrorKind::Unavailable, text)));
        };
        let (output, shared, tell) =
            (Arc::clone(&call.output), Arc::clone(&call.shared), Arc::clone(&call.tell));
        let environment = call.site.environment.clone();
        Box::pin(async move {
            let (write, bytes) = parsed?;
            if write.live && !bytes.is_empty() {
                tell(Delta::output(String::from_utf8_lossy(&bytes).into_owned()));
            }
            let mut output = output.lock().await;
            if output.is_none() {
                let name = format!("{id}-output.txt");
                let there = environment.and_then(|it| it.keep_output(name.clone(), tell));
                let made: Box<dyn OutputSink> = match there {
                    Some(made) => made.await?,
                    None => Box::new(KeptOutput::here(&shared.outputs, &name).await?),
                };
                *output = Some(made);
            }
            let Some(output) = output.as_mut() else { unreachable!("made above") };
            output.write(&bytes).await?;
            frame(&OutputAnswer::new(output.path(), output.bytes()))
        })
    }
}
