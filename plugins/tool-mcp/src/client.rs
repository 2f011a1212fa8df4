//! The client side of one connection: answers a server's requests and handles its notifications.
//!
//! A server's request goes to the call that runs on it. If several calls run, it goes to the latest
//! one, because the protocol does not say which call is meant. If no call runs, no user is asked.
#![expect(deprecated, reason = "roots and sampling are the protocol's until 2027")]

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use jaato_plugin_sdk::serde_json::{self, Value, json};
use parking_lot::Mutex;
use rmcp::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, CreateMessageRequestParams, CreateMessageResult,
    ElicitRequestParams, ElicitResult, ElicitationAction, ErrorCode, ErrorData, Implementation,
    ListRootsResult, LoggingMessageNotificationParam, ProgressNotificationParam, ProgressToken,
    ProtocolVersion, Root,
};
use rmcp::service::{NotificationContext, RequestContext, RoleClient};
use tokio::sync::Notify;

use crate::call_context::McpCallContext;
use crate::log::ServerLog;

/// The maximum number of a server's requests that are answered at a time. Further requests are
/// refused.
const QUESTIONS_MAX: usize = 8;

/// The client side of a connection. Clones share their state.
#[derive(Clone)]
pub struct McpClient(Arc<McpClientInner>);

struct McpClientInner {
    log: ServerLog,
    roots: Vec<String>,
    calls: Mutex<RunningServerCalls>,
    last_number: AtomicU64,
    questions: AtomicUsize,
    changed: Notify,
}

/// The calls that are running on the server.
#[derive(Default)]
struct RunningServerCalls {
    /// Call sites by number. The latest is last.
    sites: BTreeMap<u64, Arc<dyn McpCallContext>>,
    tokens: HashMap<ProgressToken, u64>,
}

/// The registration of a running call. Dropping it removes the call.
pub struct CallRegistration {
    client: McpClient,
    number: u64,
    token: Option<ProgressToken>,
}

/// A server's request that is being answered.
struct ServerRequestGuard<'a>(&'a AtomicUsize);

impl Drop for ServerRequestGuard<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drop for CallRegistration {
    fn drop(&mut self) {
        let mut calls = self.client.0.calls.lock();
        calls.sites.remove(&self.number);
        if let Some(token) = &self.token {
            calls.tokens.remove(token);
        }
    }
}

impl CallRegistration {
    /// Sets the token under which the server reports the call's progress.
    pub fn set_progress_token(&mut self, token: ProgressToken) {
        let mut calls = self.client.0.calls.lock();
        if let Some(old) = self.token.replace(token.clone()) {
            calls.tokens.remove(&old);
        }
        calls.tokens.insert(token, self.number);
    }
}

impl McpClient {
    /// Creates a client. `roots` are the folders that the server may know.
    pub fn new(log: ServerLog, roots: Vec<String>) -> Self {
        Self(Arc::new(McpClientInner {
            log,
            roots,
            calls: Mutex::default(),
            last_number: AtomicU64::new(0),
            questions: AtomicUsize::new(0),
            changed: Notify::new(),
        }))
    }

    /// Registers a call that begins.
    pub fn register_call(&self, site: Arc<dyn McpCallContext>) -> CallRegistration {
        let number = self.0.last_number.fetch_add(1, Ordering::Relaxed);
        self.0.calls.lock().sites.insert(number, site);
        CallRegistration { client: self.clone(), number, token: None }
    }

    /// Waits until the server reports that one of its lists has changed.
    pub async fn wait_for_change(&self) {
        self.0.changed.notified().await;
    }

    /// Records that one of the server's lists has changed.
    pub fn set_changed(&self) {
        self.0.changed.notify_one();
    }

    /// Returns true while a request of the server is being answered.
    pub fn has_open_request(&self) -> bool {
        self.0.questions.load(Ordering::Relaxed) > 0
    }

    /// Returns the server's log.
    pub fn log(&self) -> &ServerLog {
        &self.0.log
    }

    fn latest_call_context(&self) -> Option<Arc<dyn McpCallContext>> {
        self.0.calls.lock().sites.last_key_value().map(|(_, site)| Arc::clone(site))
    }

    /// Returns the folders of the session whose call is running, or the default folders.
    async fn roots_for_call(&self, site: Option<Arc<dyn McpCallContext>>) -> Vec<Root> {
        let of_call = match site {
            Some(site) => site.workspace_roots().await,
            None => None,
        };
        roots_from_folders(of_call.as_ref().unwrap_or(&self.0.roots))
    }

    fn begin_server_request(&self) -> Result<ServerRequestGuard<'_>, ErrorData> {
        let asked = self.0.questions.fetch_add(1, Ordering::Relaxed);
        let question = ServerRequestGuard(&self.0.questions);
        match asked < QUESTIONS_MAX {
            true => Ok(question),
            false => Err(refusal_error("too many questions at a time")),
        }
    }

    /// Answers a request of the server through `site`, or through the latest call.
    ///
    /// # Errors
    /// If the request is not answered.
    pub async fn answer_server_request(
        &self,
        method: &str,
        params: Value,
        site: Option<Arc<dyn McpCallContext>>,
    ) -> Result<Value, ErrorData> {
        let _question = self.begin_server_request()?;
        let site = site.or_else(|| self.latest_call_context());
        match (method, site) {
            ("roots/list", site) => Ok(json!({ "roots": self.roots_for_call(site).await })),
            ("elicitation/create", Some(site)) => Ok(site.elicit_from_user(params).await),
            ("sampling/createMessage", Some(site)) => site.sample_from_model(params).await,
            ("elicitation/create" | "sampling/createMessage", None) => {
                Err(refusal_error("no call is running whose user or model could be asked"))
            }
            (other, _) => Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, other.to_owned(), None)),
        }
    }
}

fn refusal_error(why: &'static str) -> ErrorData {
    ErrorData::new(ErrorCode::INVALID_REQUEST, why, None)
}

fn roots_from_folders(folders: &[String]) -> Vec<Root> {
    folders.iter().map(|folder| Root::new(file_uri(folder))).collect()
}

/// Writes a path as a `file:` URI.
fn file_uri(path: &str) -> String {
    let mut uri = String::from("file://");
    for byte in path.bytes() {
        match byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte) {
            true => uri.push(char::from(byte)),
            false => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri
}

fn invalid_answer_error(error: &serde_json::Error) -> ErrorData {
    ErrorData::new(ErrorCode::INVALID_PARAMS, error.to_string(), None)
}

impl ClientHandler for McpClient {
    fn get_info(&self) -> ClientConfig {
        let capabilities = json!({
            "roots": {}, "sampling": {}, "elicitation": { "form": {}, "url": {} },
        });
        let capabilities: ClientCapabilities =
            serde_json::from_value(capabilities).unwrap_or_default();
        let ours = Implementation::new("jaato", env!("CARGO_PKG_VERSION"));
        // The version that `initialize` requests. The modern era sets its own.
        ClientConfig::new(capabilities, ours)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn create_message(
        &self,
        params: CreateMessageRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        let params = serde_json::to_value(params).map_err(|error| invalid_answer_error(&error))?;
        let answer = self.answer_server_request("sampling/createMessage", params, None).await?;
        serde_json::from_value(answer).map_err(|error| invalid_answer_error(&error))
    }

    async fn list_roots(
        &self,
        _context: RequestContext<RoleClient>,
    ) -> Result<ListRootsResult, ErrorData> {
        let _question = self.begin_server_request()?;
        Ok(ListRootsResult::new(self.roots_for_call(self.latest_call_context()).await))
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let params = serde_json::to_value(request).map_err(|error| invalid_answer_error(&error))?;
        let answer = self.answer_server_request("elicitation/create", params, None).await?;
        Ok(serde_json::from_value(answer)
            .unwrap_or_else(|_| ElicitResult::new(ElicitationAction::Cancel)))
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        let site = {
            let calls = self.0.calls.lock();
            let number = calls.tokens.get(&params.progress_token);
            number.and_then(|number| calls.sites.get(number)).map(Arc::clone)
        };
        if let Some(site) = site {
            site.show_progress(&params);
        }
    }

    async fn on_logging_message(
        &self,
        params: LoggingMessageNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        let text = match &params.data {
            Value::String(text) => text.clone(),
            data => data.to_string(),
        };
        self.0.log.add_line(&text);
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.set_changed();
    }

    async fn on_prompt_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.set_changed();
    }

    async fn on_resource_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.set_changed();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_become_file_uris() {
        assert_eq!(file_uri("/home/a b/ü"), "file:///home/a%20b/%C3%BC");
    }
}
