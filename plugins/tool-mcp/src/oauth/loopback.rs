//! Receives the user's browser after a login, on a port of 127.0.0.1 that is open only during the
//! login.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt as _};
use jaato_plugin_sdk::{Error, ErrorKind, Result};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use url::Url;

use super::consent::{LoginConsent, LoginPageVisit};

/// The time limit of a login.
const LOGIN_TIME: Duration = Duration::from_secs(5 * 60);
/// The time limit for a browser to send its request.
const REQUEST_TIME: Duration = Duration::from_secs(10);
/// The maximum size of a request, because a code may be long.
const REQUEST_BYTES_MAX: usize = 32 * 1024;
/// The maximum number of simultaneous connections. Browsers open some in advance.
const CONNECTIONS_MAX: usize = 16;
/// The path to which the browser returns.
const PATH: &str = "/callback";

/// Shows a page to the user: opens the browser or prints the URL. If the browser runs on another
/// machine, the user can enter the URL to which it returned. Otherwise returns `None`.
pub type LoginPagePresenter =
    Arc<dyn Fn(String) -> BoxFuture<'static, Result<Option<String>>> + Send + Sync>;

/// Brings a user to a page in their browser.
pub struct BrowserConsent(pub LoginPagePresenter);

struct LoopbackListener {
    listener: TcpListener,
    redirect_uri: String,
    show: LoginPagePresenter,
}

impl LoginConsent for BrowserConsent {
    fn begin_visit(
        &self,
        port: Option<u16>,
    ) -> BoxFuture<'static, Result<Box<dyn LoginPageVisit>>> {
        let show = Arc::clone(&self.0);
        async move {
            let taken = |error: std::io::Error| {
                let port = port.map(|port| format!(" {port}")).unwrap_or_default();
                let text = format!("cannot open the port{port} for the login's answer: {error}");
                Error::new(ErrorKind::Conflict, text)
            };
            let listener = TcpListener::bind(("127.0.0.1", port.unwrap_or(0))).await;
            let listener = listener.map_err(taken)?;
            let port = listener.local_addr().map_err(taken)?.port();
            let redirect_uri = format!("http://127.0.0.1:{port}{PATH}");
            Ok(Box::new(LoopbackListener { listener, redirect_uri, show })
                as Box<dyn LoginPageVisit>)
        }
        .boxed()
    }
}

impl LoginPageVisit for LoopbackListener {
    fn redirect_uri(&self) -> &str {
        &self.redirect_uri
    }

    fn visit_page(self: Box<Self>, page: String) -> BoxFuture<'static, Result<String>> {
        async move {
            let state = Url::parse(&page).ok().and_then(|page| state_parameter(&page));
            let late = || {
                let text = format!("no one logged in within {} minutes", LOGIN_TIME.as_secs() / 60);
                Err(Error::new(ErrorKind::Timeout, text))
            };
            let answered = async {
                let given = (self.show)(page);
                let came = wait_for_redirect(&self.listener, &self.redirect_uri, state.as_deref());
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

/// Waits until a browser returns from this login. Other requests get a 404.
async fn wait_for_redirect(
    listener: &TcpListener,
    redirect: &str,
    state: Option<&str>,
) -> Result<String> {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            Ok((stream, _)) = listener.accept(), if connections.len() < CONNECTIONS_MAX => {
                let (redirect, state) = (redirect.to_owned(), state.map(str::to_owned));
                let served = serve_request(stream, redirect, state);
                connections.spawn(async move {
                    tokio::time::timeout(REQUEST_TIME, served).await.ok().flatten()
                });
            }
            Some(Ok(Some(back))) = connections.join_next() => return Ok(back),
            else => {
                let text = "lost the port for the login's answer";
                return Err(Error::new(ErrorKind::Io, text));
            }
        }
    }
}

/// Answers one request. Returns its URL if it is the result of this login.
async fn serve_request(
    mut stream: TcpStream,
    redirect: String,
    state: Option<String>,
) -> Option<String> {
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
        let given = Url::parse(back).ok().and_then(|back| state_parameter(&back));
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
    // If the browser has closed the connection, its request is complete anyway.
    let _ = stream.write_all(answer.as_bytes()).await;
    let _ = stream.shutdown().await;
    back
}

fn state_parameter(url: &Url) -> Option<String> {
    url.query_pairs().find(|(key, _)| key == "state").map(|(_, value)| value.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn http_get(address: &str, target: &str) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!("GET {target} HTTP/1.1\r\nhost: x\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    #[tokio::test]
    async fn login_ends_only_with_its_own_callback() {
        let (shown, showing) = tokio::sync::oneshot::channel();
        let shown = Arc::new(parking_lot::Mutex::new(Some(shown)));
        let show: LoginPagePresenter = Arc::new(move |page| {
            let _ = shown.lock().take().unwrap().send(page);
            async { Ok(None) }.boxed()
        });
        let visit = BrowserConsent(show).begin_visit(None).await.unwrap();
        let redirect = visit.redirect_uri().to_owned();
        let address = redirect["http://".len()..].split('/').next().unwrap().to_owned();
        let going = tokio::spawn(visit.visit_page("https://as.example/a?state=s".to_owned()));
        assert_eq!(showing.await.unwrap(), "https://as.example/a?state=s");
        // A connection that sends nothing does not block others.
        let _silent = TcpStream::connect(&address).await.unwrap();
        assert!(http_get(&address, "/favicon.ico").await.starts_with("HTTP/1.1 404"));
        assert!(
            http_get(&address, "/callback?code=evil&state=t").await.starts_with("HTTP/1.1 404")
        );
        assert!(http_get(&address, "/callback?code=c&state=s").await.starts_with("HTTP/1.1 200"));
        assert_eq!(going.await.unwrap().unwrap(), format!("{redirect}?code=c&state=s"));
        let port: u16 = address.split(':').nth(1).unwrap().parse().unwrap();
        let held = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let taken = held.local_addr().unwrap().port();
        let typed: LoginPagePresenter =
            Arc::new(|_| async { Ok(Some(" http://x/?code=c \n".to_owned())) }.boxed());
        assert!(BrowserConsent(Arc::clone(&typed)).begin_visit(Some(taken)).await.is_err());
        assert_ne!(port, taken);
        // The browser runs on another machine, so the user enters the URL.
        let visit = BrowserConsent(typed).begin_visit(None).await.unwrap();
        let back = visit.visit_page("https://as.example/a?state=s".to_owned()).await.unwrap();
        assert_eq!(back, "http://x/?code=c");
    }
}
