//! Errors of requests: kinds, retry classes, texts and hints.

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use jaato_types::Retry;

use crate::MaskedUrl;

/// A failed request. Its text is for users and holds no secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HttpError {
    /// The client is offline, so nothing was tried.
    Offline {
        /// The requested URL.
        url: MaskedUrl,
    },
    /// The URL cannot be parsed, or is neither `http` nor `https`.
    BadUrl {
        /// The given URL.
        url: MaskedUrl,
        /// The problem.
        reason: String,
    },
    /// A variable that names a proxy is invalid.
    BadProxy {
        /// The variable.
        variable: String,
        /// Its value.
        value: MaskedUrl,
        /// The problem.
        reason: String,
    },
    /// The client could not be set up, usually because the root certificates are missing.
    SetUp {
        /// The reason.
        reason: String,
    },
    /// No address was found for the host's name.
    Lookup {
        /// The requested URL.
        url: MaskedUrl,
        /// The proxy on the way, if any.
        proxy: Option<MaskedUrl>,
    },
    /// The host is not on the public internet, and the client may only reach public servers.
    NotPublic {
        /// The requested URL.
        url: MaskedUrl,
        /// The address that was refused, if the name was looked up.
        address: Option<IpAddr>,
    },
    /// No connection could be established.
    Connect {
        /// The requested URL.
        url: MaskedUrl,
        /// The proxy on the way, if any.
        proxy: Option<MaskedUrl>,
        /// Why.
        reason: String,
        /// Whether the address is on this machine and nothing listens there.
        is_nobody_here: bool,
    },
    /// No secure connection could be established, or the certificate is not trusted.
    Tls {
        /// The requested URL.
        url: MaskedUrl,
        /// Why.
        reason: String,
    },
    /// Nothing happened for too long.
    Timeout {
        /// The requested URL.
        url: MaskedUrl,
        /// What the request was waiting for.
        phase: RequestPhase,
        /// How long it waited.
        after: Duration,
    },
    /// The server sent a redirect that is not followed.
    Redirect {
        /// The requested URL.
        url: MaskedUrl,
        /// Why not.
        problem: RedirectProblem,
    },
    /// The server's answer was not a success.
    Status {
        /// The requested URL.
        url: MaskedUrl,
        /// The status code.
        status: u16,
        /// How long the server asks to wait.
        retry_after: Option<Duration>,
    },
    /// The body is larger than the request allows.
    TooLarge {
        /// The requested URL.
        url: MaskedUrl,
        /// The limit.
        bytes_max: u64,
    },
    /// The connection ended before the whole body arrived.
    Truncated {
        /// The requested URL.
        url: MaskedUrl,
        /// Bytes of the body received.
        received: u64,
        /// Bytes announced.
        expected: Option<u64>,
    },
    /// The connection broke, or the received data is not HTTP.
    Transfer {
        /// The requested URL.
        url: MaskedUrl,
        /// Why.
        reason: String,
    },
}

/// The kind of an [`HttpError`], for code to branch on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "each is documented at the variant of HttpError of its name")]
pub enum HttpErrorKind {
    Offline,
    BadUrl,
    BadProxy,
    SetUp,
    Lookup,
    NotPublic,
    Connect,
    Tls,
    Timeout,
    Redirect,
    Status,
    TooLarge,
    Truncated,
    Transfer,
}

/// The phase of a request that timed out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestPhase {
    /// Name lookup, connection and TLS.
    Connect,
    /// The status line and the headers.
    Answer,
    /// The next bytes of the body.
    Body,
}

/// Why a redirect was not followed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RedirectProblem {
    /// It leads back to an earlier URL.
    #[error("redirects in a circle")]
    Loop,
    /// There were more than this many.
    #[error("redirects more than {0} times")]
    TooMany(usize),
    /// It leads from `https` to `http`.
    #[error("redirects to `{0}`, which would leave https")]
    Downgrade(MaskedUrl),
    /// The request is not a plain read, so its body must not be sent elsewhere.
    #[error("redirects to `{0}`, but only read requests follow redirects")]
    NotARead(MaskedUrl),
    /// Its target is missing or cannot be parsed.
    #[error("redirects to `{0}`, which is not a usable url")]
    BadTarget(MaskedUrl),
    /// The request must go only to its own server.
    #[error("redirects to `{0}`, but a request with a credential follows no redirect")]
    Refused(MaskedUrl),
}

impl HttpError {
    /// Returns the kind.
    pub fn kind(&self) -> HttpErrorKind {
        match self {
            Self::Offline { .. } => HttpErrorKind::Offline,
            Self::BadUrl { .. } => HttpErrorKind::BadUrl,
            Self::BadProxy { .. } => HttpErrorKind::BadProxy,
            Self::SetUp { .. } => HttpErrorKind::SetUp,
            Self::Lookup { .. } => HttpErrorKind::Lookup,
            Self::NotPublic { .. } => HttpErrorKind::NotPublic,
            Self::Connect { .. } => HttpErrorKind::Connect,
            Self::Tls { .. } => HttpErrorKind::Tls,
            Self::Timeout { .. } => HttpErrorKind::Timeout,
            Self::Redirect { .. } => HttpErrorKind::Redirect,
            Self::Status { .. } => HttpErrorKind::Status,
            Self::TooLarge { .. } => HttpErrorKind::TooLarge,
            Self::Truncated { .. } => HttpErrorKind::Truncated,
            Self::Transfer { .. } => HttpErrorKind::Transfer,
        }
    }

    /// Returns whether the same request may work later.
    pub fn retry(&self) -> Retry {
        match self {
            // The user has to start the server, so waiting does not help.
            Self::Connect { proxy: None, is_nobody_here: true, .. } => Retry::Permanent,
            Self::Lookup { .. }
            | Self::Connect { .. }
            | Self::Timeout { .. }
            | Self::Truncated { .. }
            | Self::Transfer { .. } => Retry::Temporary,
            // Overloaded model servers answer 529.
            Self::Status { status: 408 | 425 | 429 | 500 | 502 | 503 | 504 | 529, .. } => {
                Retry::Temporary
            }
            Self::Offline { .. }
            | Self::BadUrl { .. }
            | Self::BadProxy { .. }
            | Self::SetUp { .. }
            | Self::NotPublic { .. }
            | Self::Tls { .. }
            | Self::Redirect { .. }
            | Self::Status { .. }
            | Self::TooLarge { .. } => Retry::Permanent,
        }
    }

    /// Returns what the user can do about it.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Offline { .. } => "run it without `--offline`",
            Self::BadUrl { .. } => "a URL looks like `https://host/path`",
            Self::BadProxy { .. } => "a proxy looks like `http://host:3128`; unset it for none",
            Self::SetUp { .. } => {
                "install the package `ca-certificates`, or name a file of certificates in `SSL_CERT_FILE`"
            }
            Self::Lookup { proxy: Some(_), .. } | Self::Connect { proxy: Some(_), .. } => {
                "check the proxy in `HTTPS_PROXY` or `HTTP_PROXY`; `NO_PROXY` names hosts to reach directly"
            }
            Self::Lookup { .. } => {
                "check the network and the name; behind a proxy set `HTTPS_PROXY`"
            }
            Self::NotPublic { .. } => {
                "if it should be reached, the user adds the host to `private_hosts` under `[web]` in \
                 their own `config.toml`"
            }
            Self::Connect { .. } => "check that the server runs; behind a proxy set `HTTPS_PROXY`",
            Self::Tls { .. } => {
                "if a proxy inspects traffic, name its certificate in `SSL_CERT_FILE`; a server that \
                 speaks plain http needs `http://`"
            }
            Self::Timeout { phase: RequestPhase::Connect, .. } => {
                "check the network; behind a proxy set `HTTPS_PROXY`"
            }
            Self::Status { status: 407, .. } => {
                "the proxy wants a login: `HTTPS_PROXY=http://user:password@host:port`"
            }
            Self::Redirect {
                problem: RedirectProblem::Refused(_) | RedirectProblem::NotARead(_),
                ..
            } => "if that is the right server, use its url directly",
            Self::Redirect { .. } => "check the url",
            Self::Timeout { .. }
            | Self::Status { .. }
            | Self::TooLarge { .. }
            | Self::Truncated { .. }
            | Self::Transfer { .. } => return None,
        };
        Some(hint.to_owned())
    }
}

impl fmt::Display for HttpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Offline { url } => write!(f, "cannot reach `{url}`: jaato is offline"),
            Self::BadUrl { url, reason } => write!(f, "cannot use the url `{url}`: {reason}"),
            Self::BadProxy { variable, value, reason } => {
                write!(f, "cannot use the proxy `{value}` of the variable `{variable}`: {reason}")
            }
            Self::SetUp { reason } => write!(f, "cannot set up secure connections: {reason}"),
            Self::Lookup { url, proxy: Some(proxy) } => {
                write!(f, "cannot reach `{url}`: no address is known for the proxy `{proxy}`")
            }
            Self::Lookup { url, proxy: None } => {
                write!(f, "cannot reach `{url}`: no address is known for its host")
            }
            Self::NotPublic { url, address: Some(address) } => {
                write!(f, "cannot reach `{url}`: its address {address} is not public")
            }
            Self::NotPublic { url, address: None } => {
                write!(f, "cannot reach `{url}`: its host is not public")
            }
            Self::Connect { url, proxy: Some(proxy), reason, .. } => {
                write!(f, "cannot connect to `{url}` through the proxy `{proxy}`: {reason}")
            }
            Self::Connect { url, proxy: None, reason, .. } => {
                write!(f, "cannot connect to `{url}`: {reason}")
            }
            Self::Tls { url, reason } => {
                write!(f, "cannot connect securely to `{url}`: {reason}")
            }
            Self::Timeout { url, phase, after } => {
                write!(f, "{phase} `{url}` within {}", DisplayedSeconds(*after))
            }
            Self::Redirect { url, problem } => write!(f, "`{url}` {problem}"),
            Self::Status { url, status, .. } => {
                let code = reqwest::StatusCode::from_u16(*status).ok();
                let name = code.and_then(|code| code.canonical_reason()).unwrap_or("unknown");
                write!(f, "`{url}` answered {status} ({})", name.to_lowercase())
            }
            Self::TooLarge { url, bytes_max } => {
                write!(f, "`{url}` sends more than the {bytes_max} bytes allowed")
            }
            Self::Truncated { url, received, expected: Some(expected) } => {
                write!(f, "`{url}` ended after {received} of {expected} bytes")
            }
            Self::Truncated { url, received, expected: None } => {
                write!(f, "`{url}` ended in the middle, after {received} bytes")
            }
            Self::Transfer { url, reason } => {
                write!(f, "the exchange with `{url}` failed: {reason}")
            }
        }
    }
}

impl std::error::Error for HttpError {}

impl fmt::Display for RequestPhase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Connect => "cannot connect to",
            Self::Answer => "no answer from",
            Self::Body => "no more data from",
        })
    }
}

/// A duration for display: `5 s`, `0.2 s`.
struct DisplayedSeconds(Duration);

impl fmt::Display for DisplayedSeconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.subsec_millis() == 0 {
            write!(f, "{} s", self.0.as_secs())
        } else {
            write!(f, "{:.1} s", self.0.as_secs_f64())
        }
    }
}
