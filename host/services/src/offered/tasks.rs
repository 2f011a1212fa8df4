//! The services `tasks.*`: calls that run on beside the conversation.

use jaato_session::SessionHandle;
use jaato_types::tasks::{
    TASKS_CANCEL, TASKS_LIST, TASKS_READ, TASKS_START, TaskCancel, TaskRead, TaskStart,
    TaskStarted, TasksAnswer,
};
use jaato_types::{Error, Frame};

use super::{Answer, Service, bad_request, frame, ready};
use crate::call::Call;
use crate::detached::Detached;

/// Tasks.
pub struct Tasks;

impl Service for Tasks {
    fn has(&self, operation: &str) -> bool {
        [TASKS_START, TASKS_LIST, TASKS_READ, TASKS_CANCEL].contains(&operation)
    }

    fn call(&self, call: &Call, operation: &str, request: Vec<u8>) -> Answer {
        let session = match call.shared.sessions.find(&call.site.session) {
            Ok(session) => session,
            Err(error) => return ready(Err(error)),
        };
        let answer = match operation {
            TASKS_START => start(call, session, &request),
            TASKS_READ => read(session, &request),
            TASKS_CANCEL => Frame::read::<TaskCancel>(&request)
                .map_err(bad_request)
                .and_then(|asked| session.cancel_task(&asked.task_id))
                .map(|facts| ready(frame(&facts))),
            _ => session.tasks().map(|tasks| ready(frame(&TasksAnswer::new(tasks)))),
        };
        answer.unwrap_or_else(|error| ready(Err(error)))
    }
}

fn start(call: &Call, session: SessionHandle, request: &[u8]) -> Result<Answer, Error> {
    let asked: TaskStart = Frame::read(request).map_err(bad_request)?;
    call.count_made_call()?;
    let origin = call.origin();
    let starting =
        Detached::start(|cancel| async move { session.start_task(asked, &origin, &cancel).await });
    Ok(Box::pin(async move { frame(&TaskStarted::new(starting.await?)) }))
}

fn read(session: SessionHandle, request: &[u8]) -> Result<Answer, Error> {
    let asked: TaskRead = Frame::read(request).map_err(bad_request)?;
    // It only waits and reads: it may be polled where the plugin is.
    Ok(Box::pin(async move { frame(&session.read_task(&asked).await?) }))
}
