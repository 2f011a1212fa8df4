//! Answers the operation by which the host asks for what a plugin keeps.

use jaato_types::resources::{ResourceAction, ResourceRequest};
use jaato_types::{Error, ErrorKind, Frame, Result};
use serde_json::Value;

use super::{Kept, Resources};
use crate::context::Cx;
use crate::instance::{bad_frame, value_frame};
use crate::state::State;

/// Answers one request.
pub(crate) async fn answer<S: State>(cx: &Cx<S>, frame: &[u8]) -> Result<Vec<u8>> {
    let request: ResourceRequest = Frame::read(frame).map_err(bad_frame)?;
    let Some(resources) = cx.state().resources() else {
        let text = "the plugin shows no resources: its state has no `resources`";
        return Err(Error::new(ErrorKind::UnknownOperation, text));
    };
    let ResourceRequest { action, name, number, operation, arguments, saved, .. } = request;
    match action {
        ResourceAction::Create => {
            let new = S::create_resource(cx, &name, saved).await?;
            value_frame(&resources.put_new(&name, new))
        }
        ResourceAction::Call => {
            let kept = find(resources, &name, number)?;
            value_frame(&kept.erased.call(&operation, arguments).await?)
        }
        ResourceAction::Close => {
            if let Some(kept) = resources.take(number) {
                kept.erased.close().await?;
            }
            value_frame(&Value::Null)
        }
        ResourceAction::Save => value_frame(&find(resources, &name, number)?.erased.save().await?),
    }
}

fn find(resources: &Resources, name: &str, number: u64) -> Result<Kept> {
    resources.by_number(number).ok_or_else(|| {
        Error::new(ErrorKind::NotFound, format!("the plugin keeps no resource `{name}` any more"))
    })
}
