//! A user who logs in whenever asked, by following the page without looking at it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt as _};
use jaato_plugin_sdk::{Error, Result};
use tool_mcp::oauth::{LoginConsent, LoginPageVisit};
use tool_mcp::transport::http::{HttpBackend as _, McpHttpRequest};

use super::hyper_client::HyperClient;

/// The maximum wait for a page.
const TIME: Duration = Duration::from_secs(60);

/// A user who agrees, with a count of the requests.
#[derive(Clone, Default)]
pub struct AgreeingUser(pub Arc<AtomicUsize>);

struct AgreeingPageVisit(Arc<AtomicUsize>);

impl LoginConsent for AgreeingUser {
    fn begin_visit(
        &self,
        _port: Option<u16>,
    ) -> BoxFuture<'static, Result<Box<dyn LoginPageVisit>>> {
        let asked = Arc::clone(&self.0);
        async { Ok(Box::new(AgreeingPageVisit(asked)) as Box<dyn LoginPageVisit>) }.boxed()
    }
}

impl LoginPageVisit for AgreeingPageVisit {
    fn redirect_uri(&self) -> &str {
        "http://127.0.0.1:3000/callback"
    }

    fn visit_page(self: Box<Self>, page: String) -> BoxFuture<'static, Result<String>> {
        self.0.fetch_add(1, Ordering::SeqCst);
        async move {
            let reply =
                HyperClient.send_http_request(McpHttpRequest::new("GET", &page, TIME)).await?;
            let back = reply.header("location").map(str::to_owned);
            back.ok_or_else(|| Error::failed(format!("the page answers {}", reply.status)))
        }
        .boxed()
    }
}
