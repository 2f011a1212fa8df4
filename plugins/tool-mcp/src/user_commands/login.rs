//! `mcp login` and `mcp logout`: the user gives jaato access to an HTTP server.

use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;

use futures_util::future::FutureExt as _;
use jaato_plugin_sdk::form::{FormOutcome, form};
use jaato_plugin_sdk::prelude::*;

use super::connect_server;
use crate::oauth::OAuthLogin;
use crate::oauth::loopback::{BrowserConsent, LoginPagePresenter};
use crate::server::McpServer;
use crate::servers::McpServers;

/// The option that prevents opening a browser.
const NO_BROWSER: &str = "--no-browser";
/// The name of the form's field for the final URL.
const FIELD: &str = "address";
/// The program that opens a page for the user.
const OPENER: &str = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };

/// Whether to open a browser.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BrowserOpening {
    Opened,
    Told,
}

/// Logs in to a server and connects to it.
///
/// # Errors
/// An error if the server is of another kind or has its own key, or the login failed.
pub async fn log_in(
    host: &Reporter,
    servers: &McpServers,
    server: &Arc<McpServer>,
    rest: Option<&str>,
) -> Result<String> {
    let browser = match rest {
        None if has_display() => BrowserOpening::Opened,
        None | Some(NO_BROWSER) => BrowserOpening::Told,
        Some(_) => {
            let text = "`mcp login` takes a name and `--no-browser`";
            return Err(Error::new(ErrorKind::InvalidArguments, text));
        }
    };
    let login = server_login(server)?;
    let consent = BrowserConsent(present_login_page(host.clone(), server.name(), browser));
    let going = Arc::clone(&login);
    let work = async move { going.log_in(&consent).await };
    let outcome = server.spawner().run_on_runtime(work).await?;
    let name = server.name();
    outcome.map_err(|error| Error {
        message: format!("the login to `{name}` failed: {}", error.message),
        ..error
    })?;
    // A new connection uses the new rights.
    server.stop_connection();
    server.wait_until_ended().await;
    let connected = connect_server(host, servers, server).await;
    let first = format!("Logged in to '{name}'.");
    Ok(match connected {
        Ok(text) => format!("{first} {text}"),
        Err(error) => format!("{first} {}", error.message),
    })
}

/// Deletes the login to a server.
///
/// # Errors
/// The errors of [`log_in`], or an error if the store cannot be written.
pub async fn log_out(server: &Arc<McpServer>) -> Result<String> {
    let login = server_login(server)?;
    let going = async move { login.log_out().await };
    let was_there = server.spawner().run_on_runtime(going).await??;
    let name = server.name();
    if !was_there {
        return Ok(format!("You were not logged in to '{name}'."));
    }
    server.stop_connection();
    Ok(format!(
        "Logged out of '{name}' and disconnected it. 'mcp connect {name}' tries without a login."
    ))
}

fn server_login(server: &McpServer) -> Result<Arc<OAuthLogin>> {
    let name = server.name();
    server.login().map(Arc::clone).ok_or_else(|| {
        let text = match server.entry.transport_name() {
            "http" => format!("the entry of `{name}` sets its own `Authorization` header"),
            _ => format!("`{name}` is a program: set its secrets under `env` in its entry"),
        };
        Error::new(ErrorKind::InvalidArguments, text)
    })
}

/// Prints the page on its own line so that it can be copied. If the user works at this machine, it
/// also opens the page. Otherwise the browser cannot return here, and the user can enter the final
/// URL.
fn present_login_page(host: Reporter, server: &str, browser: BrowserOpening) -> LoginPagePresenter {
    let server = server.to_owned();
    Arc::new(move |page: String| {
        let (host, server) = (host.clone(), server.clone());
        async move {
            host.output(format!(
                "To log in to the MCP server '{server}', open this page:\n{page}\n"
            ));
            match browser {
                BrowserOpening::Opened => {
                    open_page(&host, &page);
                    Ok(None)
                }
                BrowserOpening::Told => ask_for_callback_url(&host, &server).await,
            }
        }
        .boxed()
    })
}

/// Asks the user for the URL to which their browser returned. Returns `None` if no user is present.
async fn ask_for_callback_url(host: &Reporter, server: &str) -> Result<Option<String>> {
    let about = format!("Log in to the MCP server '{server}'");
    let text = "if your browser then shows a page that it cannot open, its address";
    let answer = host.ask(&form(about).text(FIELD, text)).await;
    match answer {
        Ok(answer) => match (answer.outcome, answer.values.get(FIELD)) {
            (FormOutcome::Answered, Some(Value::String(address))) if !address.trim().is_empty() => {
                Ok(Some(address.clone()))
            }
            (FormOutcome::Declined | FormOutcome::Cancelled, _) => {
                Err(Error::new(ErrorKind::Cancelled, "no one logged in"))
            }
            _ => Ok(None),
        },
        // The browser may still return.
        Err(_) => Ok(None),
    }
}

/// Opens a page. Errors are ignored, because the link is printed as well. The browser belongs to
/// the user and outlives jaato, so the host does not manage its process.
fn open_page(host: &Reporter, page: &str) {
    // Only URLs of pages get here, so none can be mistaken for an option.
    let mut command = Command::new(OPENER);
    command.arg(page).process_group(0);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    match command.spawn() {
        // Waits for the child, which otherwise would remain as a zombie.
        Ok(mut child) => drop(thread::spawn(move || child.wait())),
        Err(error) => host.log(LogLevel::Debug, format!("cannot open a browser: {error}")),
    }
}

/// Returns true if this machine has a screen to open a page on.
fn has_display() -> bool {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let is_far = is_set("SSH_CONNECTION");
    !is_far && (cfg!(target_os = "macos") || is_set("DISPLAY") || is_set("WAYLAND_DISPLAY"))
}
