//! The place on this machine to which a person's browser comes back: a port of 127.0.0.1, open for
//! as long as the login takes.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt as _};
use jaato_plugin_sdk::{Error, ErrorKind, Result};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use url::Url;

use super::consent::{Consent, Visit};

/// How long a person may take to log in.
const LOGIN_TIME: Duration = Duration::from_secs(5 * 60);
/// How long a browser may take to say what it wants.
const REQUEST_TIME: Duration = Duration::from_secs(10);
/// Bytes of a request that are read: a code may be long.
const REQUEST_BYTES_MAX: usize = 32 * 1024;
/// Connections at a time: browsers open some in advance.
const CONNECTIONS_MAX: usize = 16;
/// Where the browser comes back to.
const PATH: &str = "/callback";

/// Shows a page to the person: opens their browser, or prints where it is. Where their browser is
/// on another machine, they may give the address that it came back to; else it gives nothing.
pub type Show = Arc<dyn Fn(String) -> BoxFuture<'static, Result<Option<String>>> + Send + Sync>;

/// Brings a person to a page by their browser.
pub struct BrowserConsent(pub Show);

struct Listening {
    listener: TcpListener,
    redirect_uri: String,
    show: Show,
}

impl Consent for BrowserConsent {
    fn begin(&self, port: Option<u16>) -> BoxFuture<'static, Result<Box<dyn Visit>>> {
        let show = Arc::clone(&self.0);
        async move {
            let taken = |error: std::io::Error| {
                let port = port.map(|port| format!(" {port}")).unwrap_or_default();
                let text =
                    format!("the port{port} for the answer of the login is not to be had: {error}");
                Error::new(ErrorKind::Conflict, text)
            };
            let listener = TcpListener::bind(("127.0.0.1", port.unwrap_or(0))).await;
            let listener = listener.map_err(taken)?;
            let port = listener.local_addr().map_err(taken)?.port();
            let redirect_uri = format!("http://127.0.0.1:{port}{PATH}");
            Ok(Box::new(Listening { listener, redirect_uri, show }) as Box<dyn Visit>)
        }
        .boxed()
    }
}

impl Visit for Listening {
    fn redirect_uri(&self) -> &str {
        &self.redirect_uri
    }

    fn visit(self: Box<Self>, page: String) -> BoxFuture<'static, Result<String>> {
        async move {
            let state = Url::parse(&page).ok().and_then(|page| state_of(&page));
            let late = || {
                let text = format!("nobody logged in within {} minutes", LOGIN_TIME.as_secs() / 60);
                Err(Error::new(ErrorKind::Timeout, text))
            };
            let answered = async {
                let given = (self.show)(page);
                let came = answer(&self.listener, &self.redirect_uri, state.as_deref());
                tokio::pin!(came);
                tokio::select! {
                    given = given => match given? {
                        Some(back) => Ok(back.trim().to_owned()),
                        None => came.await,
                    },
                    back = &mut came => back,
                }
            };
            tokio::time::timeout(LOGIN_TIME, answered).await.unwrap_or_else(|_| late())
        }
        .boxed()
    }
}

/// Waits until a browser comes back from this login. Whatever else comes is sent away.
async fn answer(listener: &TcpListener, redirect: &str, state: Option<&str>) -> Result<String> {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            Ok((stream, _)) = listener.accept(), if connections.len() < CONNECTIONS_MAX => {
                let (redirect, state) = (redirect.to_owned(), state.map(str::to_owned));
                let served = serve(stream, redirect, state);
                connections.spawn(async move {
                    tokio::time::timeout(REQUEST_TIME, served).await.ok().flatten()
                });
            }
            Some(Ok(Some(back))) = connections.join_next() => return Ok(back),
            else => {
                let text = "the port for the answer of the login was lost";
                return Err(Error::new(ErrorKind::Io, text));
            }
        }
    }
}

/// Answers one request; returns where it came back to, if it is the answer of this login.
async fn serve(mut stream: TcpStream, redirect: String, state: Option<String>) -> Option<String> {
    let mut read = Vec::new();
    let mut piece = [0; 4096];
    while !read.windows(4).any(|end| end == b"\r\n\r\n") {
        let count = stream.read(&mut piece).await.ok().filter(|&count| count > 0)?;
        read.extend_from_slice(&piece[..count]);
        if read.len() > REQUEST_BYTES_MAX {
            return None;
        }
    }
    let head = String::from_utf8_lossy(&read);
    let target = head.strip_prefix("GET ").and_then(|rest| rest.split(' ').next());
    let query = target.and_then(|target| target.strip_prefix(PATH)?.strip_prefix('?'));
    let back = query.map(|query| format!("{redirect}?{query}"));
    let back = back.filter(|back| {
        let given = Url::parse(back).ok().and_then(|back| state_of(&back));
        given.is_some() && given == state
    });
    let (status, text) = match back {
        Some(_) => ("200 OK", "jaato has the answer. You may close this page."),
        None => ("404 Not Found", "jaato does not wait for this."),
    };
    let length = text.len();
    let answer = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: {length}\r\n\
         cache-control: no-store\r\nreferrer-policy: no-referrer\r\nconnection: close\r\n\r\n{text}"
    );
    // A browser that is gone has sent what it had to.
    let _ = stream.write_all(answer.as_bytes()).await;
    let _ = stream.shutdown().await;
    back
}

fn state_of(url: &Url) -> Option<String> {
    url.query_pairs().find(|(key, _)| key == "state").map(|(_, value)| value.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn get(address: &str, target: &str) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!("GET {target} HTTP/1.1\r\nhost: x\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    #[tokio::test]
    async fn only_the_answer_of_this_login_ends_it() {
        let (shown, showing) = tokio::sync::oneshot::channel();
        let shown = Arc::new(parking_lot::Mutex::new(Some(shown)));
        let show: Show = Arc::new(move |page| {
            let _ = shown.lock().take().unwrap().send(page);
            async { Ok(None) }.boxed()
        });
        let visit = BrowserConsent(show).begin(None).await.unwrap();
        let redirect = visit.redirect_uri().to_owned();
        let address = redirect["http://".len()..].split('/').next().unwrap().to_owned();
        let going = tokio::spawn(visit.visit("https://as.example/a?state=s".to_owned()));
        assert_eq!(showing.await.unwrap(), "https://as.example/a?state=s");
        // A connection that says nothing keeps nobody waiting.
        let _silent = TcpStream::connect(&address).await.unwrap();
        assert!(get(&address, "/favicon.ico").await.starts_with("HTTP/1.1 404"));
        assert!(get(&address, "/callback?code=evil&state=t").await.starts_with("HTTP/1.1 404"));
        assert!(get(&address, "/callback?code=c&state=s").await.starts_with("HTTP/1.1 200"));
        assert_eq!(going.await.unwrap().unwrap(), format!("{redirect}?code=c&state=s"));
        let port: u16 = address.split(':').nth(1).unwrap().parse().unwrap();
        let held = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let taken = held.local_addr().unwrap().port();
        let typed: Show =
            Arc::new(|_| async { Ok(Some(" http://x/?code=c \n".to_owned())) }.boxed());
        assert!(BrowserConsent(Arc::clone(&typed)).begin(Some(taken)).await.is_err());
        assert_ne!(port, taken);
        // A browser of another machine: the person says where it came back to.
        let visit = BrowserConsent(typed).begin(None).await.unwrap();
        let back = visit.visit("https://as.example/a?state=s".to_owned()).await.unwrap();
        assert_eq!(back, "http://x/?code=c");
    }
}
