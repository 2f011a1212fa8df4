//! Downloads a file from a URL, with ranges to resume a broken connection.

use jaato_http::{
    ByteRange, ExchangeLimits, HttpError, OutgoingRequest, RequestPhase, Response, header,
};
use jaato_types::Asset;
use tokio::sync::mpsc;

use crate::event::ProgressMeter;
use crate::fetch::{Fetcher, SourceFailure, SourceOutcome};
use crate::partial::{PartialFile, WriteRefusal};
use crate::{AssetError, AssetEvent, AssetReporter, blocking};

/// Maximum number of consecutive attempts without any data.
const FRUITLESS_TRIES_MAX: u32 = 3;

/// Maximum number of attempts for one file, however much arrives.
const TRIES_MAX: u32 = 100;

/// Number of blocks queued between the network and the disk.
const QUEUE_BLOCKS: usize = 16;

/// Returns a URL's name for the user: its host.
pub(crate) fn url_label(url: &str) -> String {
    let request = OutgoingRequest::get(url);
    let host = request.ok().and_then(|request| request.url.host_str().map(str::to_owned));
    host.unwrap_or_else(|| "a url".to_owned())
}

/// Downloads all missing bytes from `url`.
pub(crate) async fn fetch_url(
    fetcher: &Fetcher,
    url: &str,
    asset: &Asset,
    mut partial: PartialFile,
    report: &AssetReporter,
) -> SourceOutcome {
    let mut meter = ProgressMeter::new(report, asset.bytes);
    let mut fruitless = 0;
    for _ in 0..TRIES_MAX {
        let before = partial.stored_bytes();
        let (back, result) = try_download(fetcher, url, asset, partial, &mut meter).await;
        let Some(back) = back else { return (None, result.map_err(DownloadProblem::into_failure)) };
        partial = back;
        let error = match result {
            Ok(()) => return (Some(partial), Ok(())),
            Err(DownloadProblem::Lost(error)) => error,
            Err(other) => return (Some(partial), Err(other.into_failure())),
        };
        fruitless = if partial.stored_bytes() > before { 1 } else { fruitless + 1 };
        if fruitless >= FRUITLESS_TRIES_MAX {
            return (Some(partial), Err(SourceFailure::Source(error.to_string())));
        }
        report(AssetEvent::Interrupted { from: url_label(url), reason: error.to_string() });
        tokio::time::sleep(fetcher.settings.retry_wait * 2_u32.pow(fruitless - 1)).await;
    }
    let reason = format!("the connection broke {TRIES_MAX} times");
    (Some(partial), Err(SourceFailure::Source(reason)))
}

/// Why one attempt did not deliver everything.
enum DownloadProblem {
    /// The connection broke, and may be resumed.
    Lost(HttpError),
    /// This source failed.
    Source(String),
    /// No source would help.
    Stop(AssetError),
}

impl DownloadProblem {
    fn into_failure(self) -> SourceFailure {
        match self {
            Self::Lost(error) => SourceFailure::Source(error.to_string()),
            Self::Source(reason) => SourceFailure::Source(reason),
            Self::Stop(error) => SourceFailure::Stop(error),
        }
    }

    /// An unreachable or silent server is abandoned at once, because the next source is faster than
    /// a second attempt.
    fn from_http(error: HttpError) -> Self {
        match error {
            HttpError::Truncated { .. }
            | HttpError::Transfer { .. }
            | HttpError::Timeout { phase: RequestPhase::Body, .. } => Self::Lost(error),
            _ => Self::Source(error.to_string()),
        }
    }
}

async fn try_download(
    fetcher: &Fetcher,
    url: &str,
    asset: &Asset,
    partial: PartialFile,
    meter: &mut ProgressMeter,
) -> (Option<PartialFile>, Result<(), DownloadProblem>) {
    match request_bytes(fetcher, url, asset, partial.stored_bytes()).await {
        Ok((response, at)) => write_body(response, at, asset.bytes, partial, meter).await,
        Err(trouble) => (Some(partial), Err(trouble)),
    }
}

/// Requests the missing bytes. Returns the answer and the position of its first byte.
async fn request_bytes(
    fetcher: &Fetcher,
    url: &str,
    asset: &Asset,
    have: u64,
) -> Result<(Response, u64), DownloadProblem> {
    let mut request = OutgoingRequest::get(url).map_err(DownloadProblem::from_http)?;
    let identity = header::HeaderValue::from_static("identity");
    request.headers.insert(header::ACCEPT_ENCODING, identity);
    // One byte more than the total, to detect a longer file.
    request.limits =
        ExchangeLimits { body_bytes_max: asset.bytes + 1, ..ExchangeLimits::default() };
    if have > 0 {
        request.range = ByteRange::From(have);
    }
    let response = fetcher.client.send(request).await.map_err(DownloadProblem::from_http)?;
    let wrong = |bytes: u64| {
        DownloadProblem::Source(format!("its file has {bytes} bytes, expected {}", asset.bytes))
    };
    match response.status().as_u16() {
        // A server without ranges starts at the start, and existing data is skipped.
        200 => match response.content_length() {
            Some(bytes) if bytes != asset.bytes => Err(wrong(bytes)),
            _ => Ok((response, 0)),
        },
        206 if have > 0 => match response.content_range() {
            Some(part) if part.total.is_some_and(|total| total != asset.bytes) => {
                Err(wrong(part.total.unwrap_or_default()))
            }
            Some(part) if part.first == have => Ok((response, have)),
            _ => Err(DownloadProblem::Source("it sent another range than requested".to_owned())),
        },
        416 => Err(DownloadProblem::Source(format!("its file is shorter than {} bytes", have + 1))),
        _ => match response.require_success() {
            Ok(other) => Err(DownloadProblem::Source(format!(
                "it answered {} without a file",
                other.status()
            ))),
            Err(error) => Err(DownloadProblem::Source(error.to_string())),
        },
    }
}

/// Writes the body to the file. The disk has its own thread, which ends when this future is dropped
/// because that closes its queue.
async fn write_body(
    mut response: Response,
    at: u64,
    total: u64,
    mut partial: PartialFile,
    meter: &mut ProgressMeter,
) -> (Option<PartialFile>, Result<(), DownloadProblem>) {
    let have = partial.stored_bytes();
    let (sender, mut queue) = mpsc::channel::<jaato_http::Bytes>(QUEUE_BLOCKS);
    let writer = blocking::run_blocking(move |_| {
        let mut at = at;
        while let Some(block) = queue.blocking_recv() {
            if let Err(refused) = partial.write(at, &block) {
                return (partial, Err(refused));
            }
            at += block.len() as u64;
        }
        (partial, Ok(()))
    });
    let reader = async move {
        let mut at = at;
        loop {
            let block = match response.next_chunk().await {
                Ok(Some(block)) => block,
                Ok(None) => return (at, Ok(())),
                Err(error) => return (at, Err(error)),
            };
            at += block.len() as u64;
            meter.report_progress(at.clamp(have, total));
            if sender.send(block).await.is_err() {
                return (at, Ok(()));
            }
        }
    };
    let ((came, read), written) = tokio::join!(reader, writer);
    let (partial, written) = match written {
        Ok(written) => written,
        Err(error) => return (None, Err(DownloadProblem::Stop(error))),
    };
    let result = match (written, read) {
        (Err(WriteRefusal::Disk(error)), _) => Err(DownloadProblem::Stop(error)),
        (Err(WriteRefusal::TooMuch), _) => {
            Err(DownloadProblem::Source(format!("its file has more than {total} bytes")))
        }
        (Ok(()), Err(error)) => Err(DownloadProblem::from_http(error)),
        (Ok(()), Ok(())) if partial.missing_bytes() > 0 => {
            Err(DownloadProblem::Source(format!("its file has {came} bytes, expected {total}")))
        }
        (Ok(()), Ok(())) => Ok(()),
    };
    (Some(partial), result)
}
