//! The services `tasks.*` for background tool calls.

use jaato_session::SessionHandle;
use jaato_types::Error;
use jaato_types::tasks::{
    TaskCancel, TaskFacts, TaskRead, TaskReadAnswer, TaskStart, TaskStartAnswer, TasksAnswer,
};

use super::ServiceFuture;
use crate::call::ServiceCall;
use crate::detached::DetachedWork;

jaato_types::task_operations!(bodies);

fn start_task(
    call: &ServiceCall,
    asked: TaskStart,
) -> Result<ServiceFuture<TaskStartAnswer>, Error> {
    let session = session(call)?;
    call.count_made_call()?;
    let origin = call.origin();
    let starting =
        DetachedWork::start(
            |cancel| async move { session.start_task(asked, &origin, &cancel).await },
        );
    Ok(Box::pin(async move { Ok(TaskStartAnswer::new(starting.await?)) }))
}

fn list(call: &ServiceCall) -> Result<TasksAnswer, Error> {
    session(call)?.list_tasks().map(TasksAnswer::new)
}

fn read(call: &ServiceCall, asked: TaskRead) -> Result<ServiceFuture<TaskReadAnswer>, Error> {
    let session = session(call)?;
    // It only waits and reads, so it may be polled on the plugin's thread.
    Ok(Box::pin(async move { session.read_task(&asked).await }))
}

fn cancel(call: &ServiceCall, asked: TaskCancel) -> Result<TaskFacts, Error> {
    session(call)?.cancel_task(&asked.task_id)
}

fn session(call: &ServiceCall) -> Result<SessionHandle, Error> {
    call.shared.sessions.find(&call.site.session)
}
