//! The services `session.open`, `send`, `wait`, `events`, `cancel` and `close`: child sessions.

use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use jaato_loader::{EngineServiceAnswer, FrameStream};
use jaato_types::child::{
    CHILD_WAIT_MS_MAX, ChildEmptyAnswer, ChildOpen, ChildRef, ChildSend, ChildState, ChildWait,
    OpenedChild,
};
use jaato_types::{Error, ErrorKind, Frame};

use super::{ServiceFuture, host_bug_error};
use crate::call::ServiceCall;
use crate::children::ChildOpener;

jaato_types::child_operations!(bodies);

fn open(call: &ServiceCall, asked: ChildOpen) -> Result<OpenedChild, Error> {
    // A call waits for its own children. Those of the instance outlive the call that asks for them.
    let by = call.is_instance.then(|| call.plugin.clone());
    let opener = ChildOpener { session: &call.site.session, hold: &call.site.hold, by };
    call.children.open(&call.shared, &opener, &asked)
}

fn send(call: &ServiceCall, asked: ChildSend) -> Result<ChildEmptyAnswer, Error> {
    call.children.send(asked.session, asked.text).map(|()| ChildEmptyAnswer::default())
}

fn cancel(call: &ServiceCall, asked: ChildRef) -> Result<ChildEmptyAnswer, Error> {
    call.children.cancel(asked.session).map(|()| ChildEmptyAnswer::default())
}

fn close(call: &ServiceCall, asked: ChildRef) -> Result<ChildEmptyAnswer, Error> {
    call.children.close(asked.session).map(|()| ChildEmptyAnswer::default())
}

fn wait(call: &ServiceCall, asked: ChildWait) -> Result<ServiceFuture<ChildState>, Error> {
    let mut state = call.children.state(asked.session)?;
    let wait_ms = match asked.wait_ms {
        0 => CHILD_WAIT_MS_MAX,
        wait_ms => wait_ms.min(CHILD_WAIT_MS_MAX),
    };
    Ok(Box::pin(async move {
        let idle = state.wait_for(|state| !state.is_running);
        let ended = tokio::time::timeout(Duration::from_millis(wait_ms), idle).await;
        if let Ok(Err(_)) = ended {
            return Err(Error::new(ErrorKind::Unavailable, "the child session is over"));
        }
        drop(ended);
        let state = state.borrow().clone();
        Ok(state)
    }))
}

fn events(call: &ServiceCall, asked: ChildRef) -> Result<EngineServiceAnswer, Error> {
    let followed = call.children.follow_events(asked.session)?;
    let envelopes = stream::unfold(followed, |mut followed| async move {
        let envelope = followed.recv().await?;
        Some((envelope, followed))
    });
    let frames = envelopes.map(|envelope| Frame::write(&envelope).map_err(host_bug_error));
    Ok(EngineServiceAnswer::Stream(Box::new(FrameStream(Box::pin(frames)))))
}
