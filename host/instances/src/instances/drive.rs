//! Waits for a call on an instance: its emissions and its answer.

use jaato_loader::RunningCall;
use jaato_session::Cancel;
use jaato_types::{Delta, Error, ErrorKind, Frame, FrameError};

/// Reads a call's emissions until its answer arrives. A cancel ends it at once.
pub async fn drive_call(
    mut running: RunningCall,
    cancel: &Cancel,
    mut take: impl FnMut(Delta),
) -> Result<Vec<u8>, Error> {
    let work = async {
        while let Some(emission) = running.next_emission().await {
            match Frame::read::<Delta>(&emission) {
                Ok(delta) => take(delta),
                Err(error) => return Err(misbehaved_error(error)),
            }
        }
        running.answer().await
    };
    tokio::select! {
        biased;
        () = cancel.cancelled() => Err(Error::cancelled()),
        answer = work => answer,
    }
}

/// Returns the error for an answer that cannot be parsed.
pub fn misbehaved_error(error: FrameError) -> Error {
    Error::new(ErrorKind::PluginMisbehaved, format!("the answer is invalid: {error}"))
}

/// Returns the error for an answer of a plugin that cannot be parsed.
pub fn invalid_answer_error(plugin: &str) -> impl Fn(FrameError) -> Error {
    move |error| blame_plugin(plugin, misbehaved_error(error))
}

/// Names the plugin in an error that is its fault. Other errors are its answers.
pub fn blame_plugin(plugin: &str, error: Error) -> Error {
    let is_fault = matches!(error.kind, ErrorKind::PluginPanicked | ErrorKind::PluginMisbehaved);
    if !is_fault || error.message.contains(&format!("`{plugin}`")) {
        return error;
    }
    Error { message: format!("plugin `{plugin}`: {}", error.message), ..error }
}
