//! The service `model.complete`, with which a plugin asks a model outside the conversation.

use std::sync::Arc;

use futures_util::stream;
use jaato_loader::{EngineServiceAnswer, FrameStream};
use jaato_session::{AnsweringModel, AskingPlugin, PieceSink, SessionHandle};
use jaato_types::model::{ModelAnswer, ModelComplete, ModelPiece};
use jaato_types::{Error, ErrorKind, Frame};
use serde::Serialize;
use tokio::sync::mpsc;

use super::{ServiceFuture, encode_answer};
use crate::call::ServiceCall;
use crate::detached::DetachedWork;

jaato_types::model_operations!(bodies);

fn complete(
    call: &ServiceCall,
    request: ModelComplete,
) -> Result<ServiceFuture<EngineServiceAnswer>, Error> {
    let asked = ModelQuestion::new(call, request)?;
    if asked.request.stream {
        return Ok(Box::pin(std::future::ready(Ok(asked.stream_answer()))));
    }
    let answering = asked.start_request(Arc::new(|_| {}));
    Ok(Box::pin(async move { encode_answer(answering.await?) }))
}

/// A parsed request.
struct ModelQuestion {
    session: SessionHandle,
    asker: AskingPlugin,
    request: ModelComplete,
    other: Option<AnsweringModel>,
}

impl ModelQuestion {
    fn new(call: &ServiceCall, request: ModelComplete) -> Result<Self, Error> {
        let sessions = &call.shared.sessions;
        let session = sessions.find(&call.site.session)?;
        let other = match &request.model {
            Some(name) => Some(sessions.answering_model(name, &call.site.session)?),
            None => None,
        };
        let (plugin, parent) = (call.plugin.clone(), call.site.call.clone());
        let asker = AskingPlugin { plugin, parent, hold: call.site.hold.clone() };
        Ok(Self { session, asker, request, other })
    }

    fn start_request(self, take: PieceSink) -> DetachedWork<ModelAnswer> {
        let Self { session, asker, request, other } = self;
        DetachedWork::start(|cancel| async move {
            session.ask_model(&asker, request, other, take, &cancel).await
        })
    }

    /// Streams the pieces of the answer, and then the whole answer.
    fn stream_answer(self) -> EngineServiceAnswer {
        // Bounded by the length of an answer.
        let (pieces, taken) = mpsc::unbounded_channel();
        let sink: PieceSink = Arc::new(move |delta| {
            // If the receiver is gone, the plugin has dropped the request.
            let _ = pieces.send(ModelPiece::delta(delta));
        });
        let answering = Some(self.start_request(sink));
        let frames = stream::unfold((taken, answering), |(mut taken, answering)| async move {
            let mut answering = answering?;
            // The channel closes when the request ends, so all pieces come before the whole answer.
            if let Some(piece) = taken.recv().await {
                return Some((piece_frame(&piece), (taken, Some(answering))));
            }
            let answer = (&mut answering).await;
            let last = answer.and_then(|answer| piece_frame(&ModelPiece::answer(answer)));
            Some((last, (taken, None)))
        });
        EngineServiceAnswer::Stream(Box::new(FrameStream(Box::pin(frames))))
    }
}

fn piece_frame(piece: &impl Serialize) -> Result<Vec<u8>, Error> {
    Frame::write(piece).map_err(|error| Error::new(ErrorKind::LimitReached, error.to_string()))
}
