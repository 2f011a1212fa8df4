//! Calls a server's tools. Each call is one request, and questions of the server are answered in
//! rounds. If the server dies, a call is repeated once, provided that the tool is declared safe to
//! repeat.

use std::sync::Arc;
use std::time::Duration;

use jaato_plugin_sdk::serde_json::{self, Map, Value};
use jaato_plugin_sdk::{Error, ErrorKind, Result};
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientRequest, GetPromptRequest,
    GetPromptRequestParams, InputRequiredResult, InputResponses, ReadResourceRequest,
    ReadResourceRequestParams, ServerResult,
};

use crate::call_context::McpCallContext;
use crate::connection::{McpConnection, McpRequestFailure, OPEN_PAGE};
use crate::schema;
use crate::server::McpServer;
use crate::server_description::{self, RemoteTool};

/// The maximum number of question rounds in one request.
const ROUNDS_MAX: usize = 10;
/// The maximum number of questions in one round.
const QUESTIONS_MAX: usize = 8;

/// A request that the server may answer with questions.
#[derive(Debug, Clone)]
pub enum McpRequest {
    /// Runs a tool.
    Tool {
        /// The server's name for the tool.
        name: String,
        /// The tool's arguments.
        arguments: Map<String, Value>,
    },
    /// Reads a resource.
    Resource {
        /// The resource's URI.
        uri: String,
    },
    /// Fills a prompt.
    Prompt {
        /// The server's name for the prompt.
        name: String,
        /// The prompt's arguments.
        arguments: Map<String, Value>,
    },
}

impl McpRequest {
    /// Builds the request, with the answers to the questions of the previous round.
    fn build_request(
        &self,
        answers: Option<InputResponses>,
        state: Option<String>,
    ) -> ClientRequest {
        match self {
            Self::Tool { name, arguments } => {
                let mut params = CallToolRequestParams::new(name.clone());
                params.arguments = Some(arguments.clone());
                params.input_responses = answers;
                params.request_state = state;
                CallToolRequest::new(params).into()
            }
            Self::Resource { uri } => {
                let mut params = ReadResourceRequestParams::new(uri.clone());
                params.input_responses = answers;
                params.request_state = state;
                ReadResourceRequest::new(params).into()
            }
            Self::Prompt { name, arguments } => {
                let mut params = GetPromptRequestParams::new(name.clone());
                params.arguments = Some(arguments.clone());
                params.input_responses = answers;
                params.request_state = state;
                GetPromptRequest::new(params).into()
            }
        }
    }
}

/// Runs a server's tool.
///
/// # Errors
/// The errors of [`send_mcp_request`].
pub async fn run_tool(
    server: &Arc<McpServer>,
    tool: &RemoteTool,
    arguments: Map<String, Value>,
    site: Option<Arc<dyn McpCallContext>>,
) -> Result<Value> {
    let arguments = schema::restore_property_names(&tool.aliases, arguments);
    let asked = McpRequest::Tool { name: tool.name.clone(), arguments };
    let first = send_mcp_request(server, &asked, site.clone()).await;
    match first {
        Err(error) if error.kind == ErrorKind::Unavailable && tool.may_repeat => {
            send_mcp_request(server, &asked, site).await
        }
        first => first,
    }
}

/// Sends a request to a server and waits for its response. Runs on any executor.
///
/// # Errors
/// The server's error, the reason why the server is down, or `timeout`.
pub async fn send_mcp_request(
    server: &Arc<McpServer>,
    asked: &McpRequest,
    site: Option<Arc<dyn McpCallContext>>,
) -> Result<Value> {
    let connection = server.wait_until_connected().await?;
    let answer = request_on_connection(&connection, asked, server.entry.timeout, site).await;
    answer.map_err(|error| {
        // The URL stays unmasked, because the user has to open the page.
        let page = error.hint.clone().filter(|hint| hint.starts_with(OPEN_PAGE));
        let error = server.log().scrubbed_error(error);
        let error = Error { hint: page.or(error.hint), ..error };
        match error.kind {
            ErrorKind::Unavailable | ErrorKind::Timeout => {
                let text = format!("MCP server `{}`: {}", server.name(), error.message);
                Error { message: text, ..error }
            }
            _ => error,
        }
    })
}

/// Sends a request over a connection and waits for its response. Runs on any executor.
///
/// # Errors
/// The errors of [`send_mcp_request`].
pub async fn request_on_connection(
    connection: &Arc<McpConnection>,
    asked: &McpRequest,
    time: Duration,
    site: Option<Arc<dyn McpCallContext>>,
) -> Result<Value> {
    let (this, asked) = (Arc::clone(connection), asked.clone());
    let work = async move { run_question_rounds(&this, &asked, time, site).await };
    connection.spawner().run_on_runtime(work).await?
}

/// Sends a request repeatedly until the server answers with something other than questions.
async fn run_question_rounds(
    connection: &McpConnection,
    asked: &McpRequest,
    time: Duration,
    site: Option<Arc<dyn McpCallContext>>,
) -> Result<Value> {
    let (mut answers, mut state) = (None, None);
    for _ in 0..ROUNDS_MAX {
        let request = || asked.build_request(answers.clone(), state.clone());
        let answer = match send_cancellable(connection, request, time, site.clone()).await {
            Err(refused) if !refused.pages.is_empty() => {
                ask_to_open_pages(connection, refused, site.clone()).await?;
                continue;
            }
            answer => answer.map_err(|refused| refused.error)?,
        };
        match answer {
            ServerResult::InputRequiredResult(required) => {
                state.clone_from(&required.request_state);
                answers = answer_questions(connection, required, site.clone()).await?;
            }
            ServerResult::CreateTaskResult(_) => {
                return Err(Error::failed("the server started a task that was not requested"));
            }
            ServerResult::CustomResult(custom) => return Ok(custom.0),
            known => {
                return serde_json::to_value(known).map_err(|it| Error::failed(it.to_string()));
            }
        }
    }
    Err(Error::failed(format!("the server asked questions more than {ROUNDS_MAX} times"))
        .with_hint("call the tool with complete arguments, or report this to the server's author"))
}

/// Sends a request. Sends it again if the server has changed the tool's description, because the
/// transport derives the headers of calls from it.
async fn send_cancellable(
    connection: &McpConnection,
    request: impl Fn() -> ClientRequest,
    time: Duration,
    site: Option<Arc<dyn McpCallContext>>,
) -> Result<ServerResult, McpRequestFailure> {
    match connection.request_with_demands(request(), time, site.clone()).await {
        Err(refused) if refused.has_other_headers => {
            server_description::refresh_tools(connection).await?;
            connection.request_with_demands(request(), time, site).await
        }
        answer => answer,
    }
}

/// Asks the user to open the pages that a server requires. If no user is present or the user
/// declines, the error lists the pages.
async fn ask_to_open_pages(
    connection: &McpConnection,
    refused: McpRequestFailure,
    site: Option<Arc<dyn McpCallContext>>,
) -> Result<()> {
    for mut page in refused.pages {
        page["mode"] = "url".into();
        let answer = match &site {
            Some(site) => {
                let site = Some(Arc::clone(site));
                connection
                    .client()
                    .answer_server_request("elicitation/create", page, site)
                    .await
                    .ok()
            }
            None => None,
        };
        if answer.is_none_or(|answer| answer["action"] != "accept") {
            return Err(refused.error);
        }
    }
    Ok(())
}

/// Answers the questions of one round.
async fn answer_questions(
    connection: &McpConnection,
    required: InputRequiredResult,
    site: Option<Arc<dyn McpCallContext>>,
) -> Result<Option<InputResponses>> {
    let questions = required.input_requests.unwrap_or_default();
    if questions.is_empty() && required.request_state.is_none() {
        return Err(Error::failed("the server asked for input without saying which"));
    }
    if questions.len() > QUESTIONS_MAX {
        let count = questions.len();
        return Err(Error::failed(format!("the server asked {count} questions at once")));
    }
    let mut answers = InputResponses::new();
    for (key, question) in questions {
        let mut question =
            serde_json::to_value(question).map_err(|error| Error::failed(error.to_string()))?;
        let (method, params) = (question["method"].take(), question["params"].take());
        let method = method.as_str().unwrap_or_default();
        let answer = connection.client().answer_server_request(method, params, site.clone()).await;
        let answer = answer.map_err(|error| {
            Error::failed(format!("the server's question was refused: {}", error.message))
        })?;
        answers.insert(key, answer);
    }
    Ok((!answers.is_empty()).then_some(answers))
}
