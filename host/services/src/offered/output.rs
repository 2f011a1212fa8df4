//! The service `output`, which receives long texts of a tool call's result piece by piece.

use jaato_types::service::{OutputAnswer, OutputWrite};
use jaato_types::{Error, ErrorKind};

use super::ServiceFuture;
use crate::call::ServiceCall;

jaato_types::output_operations!(bodies);

fn output(
    call: &ServiceCall,
    write: Option<OutputWrite>,
    bytes: Vec<u8>,
) -> Result<ServiceFuture<OutputAnswer>, Error> {
    let Some(streamed) = call.site.streamed.clone() else {
        let text = "only a tool call has an output";
        return Err(Error::new(ErrorKind::Unavailable, text));
    };
    let write = write.unwrap_or_default();
    Ok(Box::pin(async move { streamed.push(&write, &bytes).await.map(OutputAnswer::new) }))
}
