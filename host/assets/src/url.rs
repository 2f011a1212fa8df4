//! A file behind a URL: ranges, and a broken connection made again where it broke.

use jaato_http::{ByteRange, HttpError, Limits, Phase, Request, Response, header};
use jaato_types::Asset;
use tokio::sync::mpsc;

use crate::event::Meter;
use crate::fetch::{Failure, Fetcher, Outcome};
use crate::partial::{Partial, Refused};
use crate::{AssetError, Event, Report, blocking};

/// Most tries in a row in which nothing arrives.
const FRUITLESS_TRIES_MAX: u32 = 3;

/// Most tries of one file, however much arrives.
const TRIES_MAX: u32 = 100;

/// Blocks that wait between the network and the disk.
const QUEUE_BLOCKS: usize = 16;

/// What people call a URL: its host.
pub(crate) fn label(url: &str) -> String {
    let request = Request::get(url);
    let host = request.ok().and_then(|request| request.url.host_str().map(str::to_owned));
    host.unwrap_or_else(|| "a url".to_owned())
}

/// Takes all that is missing from `url`.
pub(crate) async fn fetch(
    fetcher: &Fetcher,
    url: &str,
    asset: &Asset,
    mut partial: Partial,
    report: &Report,
) -> Outcome {
    let mut meter = Meter::new(report, asset.bytes);
    let mut fruitless = 0;
    for _ in 0..TRIES_MAX {
        let before = partial.length();
        let (back, result) = once(fetcher, url, asset, partial, &mut meter).await;
        let Some(back) = back else { return (None, result.map_err(Trouble::into_failure)) };
        partial = back;
        let error = match result {
            Ok(()) => return (Some(partial), Ok(())),
            Err(Trouble::Lost(error)) => error,
            Err(other) => return (Some(partial), Err(other.into_failure())),
        };
        fruitless = if partial.length() > before { 1 } else { fruitless + 1 };
        if fruitless >= FRUITLESS_TRIES_MAX {
            return (Some(partial), Err(Failure::Source(error.to_string())));
        }
        report(Event::Interrupted { from: label(url), reason: error.to_string() });
        tokio::time::sleep(fetcher.settings.retry_wait * 2_u32.pow(fruitless - 1)).await;
    }
    let reason = format!("the connection broke {TRIES_MAX} times");
    (Some(partial), Err(Failure::Source(reason)))
}

/// Why one try did not bring everything.
enum Trouble {
    /// The connection broke on the way: it may be made again.
    Lost(HttpError),
    /// This source will not do.
    Source(String),
    /// No source would help.
    Stop(AssetError),
}

impl Trouble {
    fn into_failure(self) -> Failure {
        match self {
            Self::Lost(error) => Failure::Source(error.to_string()),
            Self::Source(reason) => Failure::Source(reason),
            Self::Stop(error) => Failure::Stop(error),
        }
    }

    /// One that cannot be reached or gives no answer is left at once: the next source is nearer
    /// than a second try.
    fn of_http(error: HttpError) -> Self {
        match error {
            HttpError::Truncated { .. }
            | HttpError::Transfer { .. }
            | HttpError::Timeout { phase: Phase::Body, .. } => Self::Lost(error),
            _ => Self::Source(error.to_string()),
        }
    }
}

async fn once(
    fetcher: &Fetcher,
    url: &str,
    asset: &Asset,
    partial: Partial,
    meter: &mut Meter,
) -> (Option<Partial>, Result<(), Trouble>) {
    match ask(fetcher, url, asset, partial.length()).await {
        Ok((response, at)) => take(response, at, asset.bytes, partial, meter).await,
        Err(trouble) => (Some(partial), Err(trouble)),
    }
}

/// Asks for what is missing. Returns the answer and where its first byte belongs.
async fn ask(
    fetcher: &Fetcher,
    url: &str,
    asset: &Asset,
    have: u64,
) -> Result<(Response, u64), Trouble> {
    let mut request = Request::get(url).map_err(Trouble::of_http)?;
    let identity = header::HeaderValue::from_static("identity");
    request.headers.insert(header::ACCEPT_ENCODING, identity);
    // One byte more than the whole, so that a longer file is seen as such.
    request.limits = Limits { body_bytes_max: asset.bytes + 1, ..Limits::default() };
    if have > 0 {
        request.range = ByteRange::From(have);
    }
    let response = fetcher.client.send(request).await.map_err(Trouble::of_http)?;
    let wrong = |bytes: u64| {
        Trouble::Source(format!("its file has {bytes} bytes, expected {}", asset.bytes))
    };
    match response.status().as_u16() {
        // A server without ranges begins at the beginning; what is there is passed over.
        200 => match response.content_length() {
            Some(bytes) if bytes != asset.bytes => Err(wrong(bytes)),
            _ => Ok((response, 0)),
        },
        206 if have > 0 => match response.content_range() {
            Some(part) if part.total.is_some_and(|total| total != asset.bytes) => {
                Err(wrong(part.total.unwrap_or_default()))
            }
            Some(part) if part.first == have => Ok((response, have)),
            _ => Err(Trouble::Source("it sent another range than asked for".to_owned())),
        },
        416 => Err(Trouble::Source(format!("its file is shorter than {} bytes", have + 1))),
        _ => match response.require_success() {
            Ok(other) => {
                Err(Trouble::Source(format!("it answered {} without a file", other.status())))
            }
            Err(error) => Err(Trouble::Source(error.to_string())),
        },
    }
}

/// Moves the body into the file. The disk works on a thread of its own, which ends when this
/// future is dropped: its queue closes then.
async fn take(
    mut response: Response,
    at: u64,
    total: u64,
    mut partial: Partial,
    meter: &mut Meter,
) -> (Option<Partial>, Result<(), Trouble>) {
    let have = partial.length();
    let (sender, mut queue) = mpsc::channel::<jaato_http::Bytes>(QUEUE_BLOCKS);
    let writer = blocking::run(move |_| {
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
            let block = match response.chunk().await {
                Ok(Some(block)) => block,
                Ok(None) => return (at, Ok(())),
                Err(error) => return (at, Err(error)),
            };
            at += block.len() as u64;
            meter.at(at.clamp(have, total));
            if sender.send(block).await.is_err() {
                return (at, Ok(()));
            }
        }
    };
    let ((came, read), written) = tokio::join!(reader, writer);
    let (partial, written) = match written {
        Ok(written) => written,
        Err(error) => return (None, Err(Trouble::Stop(error))),
    };
    let result = match (written, read) {
        (Err(Refused::Disk(error)), _) => Err(Trouble::Stop(error)),
        (Err(Refused::TooMuch), _) => {
            Err(Trouble::Source(format!("its file has more than {total} bytes")))
        }
        (Ok(()), Err(error)) => Err(Trouble::of_http(error)),
        (Ok(()), Ok(())) if partial.missing() > 0 => {
            Err(Trouble::Source(format!("its file has {came} bytes, expected {total}")))
        }
        (Ok(()), Ok(())) => Ok(()),
    };
    (Some(partial), result)
}
