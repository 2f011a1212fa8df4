//! The services `session.open`, `send`, `wait`, `events`, `cancel` and `close`: child sessions.

use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use jaato_loader::{Frames, Served};
use jaato_types::child::{
    CHILD_WAIT_MS_MAX, ChildDone, ChildOpen, ChildRef, ChildSend, ChildWait, SESSION_CANCEL,
    SESSION_CLOSE, SESSION_EVENTS, SESSION_OPEN, SESSION_SEND, SESSION_WAIT,
};
use jaato_types::{Error, ErrorKind, Frame};
use serde::de::DeserializeOwned;

use super::{Answer, Service, bad_request, frame, ready};
use crate::call::Call;

/// Child sessions.
pub struct Children;

const OPERATIONS: [&str; 6] =
    [SESSION_OPEN, SESSION_SEND, SESSION_WAIT, SESSION_EVENTS, SESSION_CANCEL, SESSION_CLOSE];

impl Service for Children {
    fn has(&self, operation: &str) -> bool {
        OPERATIONS.contains(&operation)
    }

    fn call(&self, call: &Call, operation: &str, request: Vec<u8>) -> Answer {
        match operation {
            SESSION_WAIT => wait(call, &request),
            SESSION_EVENTS => ready(events(call, &request)),
            operation => ready(at_once(call, operation, &request)),
        }
    }
}

fn read<T: DeserializeOwned>(request: &[u8]) -> Result<T, Error> {
    Frame::read(request).map_err(bad_request)
}

fn at_once(call: &Call, operation: &str, request: &[u8]) -> Result<Served, Error> {
    let children = &call.children;
    match operation {
        SESSION_OPEN => {
            let asked: ChildOpen = read(request)?;
            return frame(&children.open(
                &call.shared,
                (&call.site.session, &call.site.hold),
                &asked,
            )?);
        }
        SESSION_SEND => {
            let ChildSend { session, text } = read(request)?;
            children.send(session, text)?;
        }
        SESSION_CANCEL => children.cancel(read::<ChildRef>(request)?.session)?,
        _ => children.close(read::<ChildRef>(request)?.session)?,
    }
    frame(&ChildDone::default())
}

fn wait(call: &Call, request: &[u8]) -> Answer {
    let asked = read::<ChildWait>(request).and_then(|asked| {
        let state = call.children.state(asked.session)?;
        Ok((asked.wait_ms, state))
    });
    let (wait_ms, mut state) = match asked {
        Ok(asked) => asked,
        Err(error) => return ready(Err(error)),
    };
    let wait_ms = if wait_ms == 0 { CHILD_WAIT_MS_MAX } else { wait_ms.min(CHILD_WAIT_MS_MAX) };
    Box::pin(async move {
        let idle = state.wait_for(|state| !state.is_running);
        let ended = tokio::time::timeout(Duration::from_millis(wait_ms), idle).await;
        if let Ok(Err(_)) = ended {
            return Err(Error::new(ErrorKind::Unavailable, "the child session is over"));
        }
        drop(ended);
        let told = state.borrow().clone();
        frame(&told)
    })
}

fn events(call: &Call, request: &[u8]) -> Result<Served, Error> {
    let followed = call.children.follow(read::<ChildRef>(request)?.session)?;
    let envelopes = stream::unfold(followed, |mut followed| async move {
        let envelope = followed.recv().await?;
        Some((envelope, followed))
    });
    let frames = envelopes.map(|envelope| {
        Frame::write(&envelope).map_err(|error| Error::new(ErrorKind::HostBug, error.to_string()))
    });
    Ok(Served::Stream(Box::new(Frames(Box::pin(frames)))))
}
