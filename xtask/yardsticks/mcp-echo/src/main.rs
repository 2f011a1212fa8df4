//! A trivial tool in an MCP server on stdio, written as usual with `rmcp`, another tool that takes
//! time, and a client that measures calls of the first.
//!
//! `mcp-echo` starts itself as `mcp-echo serve`, calls the tool repeatedly and prints the median as
//! JSON. Both sides use a current-thread runtime, which is the fastest for one call at a time, so
//! that the yardstick does not look worse than it is.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::CallToolRequestParams;
use rmcp::transport::TokioChildProcess;
use rmcp::{ServiceExt, schemars, tool, tool_router};
use serde::Deserialize;
use serde_json::json;

/// Calls before the measurement, so that connections, caches and branch predictors settle.
const WARM_UP: usize = 500;

/// The number of measured calls.
const CALLS: usize = 5_000;

/// Results in arguments of 94 bytes, like those of the plugin call for comparison.
const TEXT: &str =
    "the quick brown fox jumps over the lazy dog and runs away into the deeply dark wood";

#[derive(Deserialize, schemars::JsonSchema)]
struct ByteCount {
    /// Text to count.
    text: String,
}

#[derive(Deserialize, schemars::JsonSchema)]
struct Nap {
    /// How long it takes, in milliseconds.
    ms: u64,
}

#[derive(Clone)]
struct EchoServer;

#[tool_router(server_handler)]
impl EchoServer {
    /// Counts the bytes of a text.
    #[tool]
    fn count_bytes(&self, Parameters(input): Parameters<ByteCount>) -> String {
        json!({ "bytes": input.text.len() }).to_string()
    }

    /// Takes some time and changes nothing.
    #[tool(annotations(read_only_hint = true))]
    async fn nap(&self, Parameters(input): Parameters<Nap>) -> String {
        tokio::time::sleep(Duration::from_millis(input.ms)).await;
        json!({ "rested": input.ms }).to_string()
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    match std::env::args().nth(1).as_deref() {
        Some("serve") => serve().await,
        None => measure().await,
        Some(word) => bail!("unknown word `{word}`; known is `serve`"),
    }
}

async fn serve() -> Result<()> {
    let service = EchoServer.serve(rmcp::transport::stdio()).await?;
    service.waiting().await?;
    Ok(())
}

async fn measure() -> Result<()> {
    let mut command = tokio::process::Command::new(std::env::current_exe()?);
    command.arg("serve");
    let client = ().serve(TokioChildProcess::new(command)?).await?;
    let arguments = json!({ "text": TEXT });
    let arguments = arguments.as_object().context("arguments are an object")?;
    let mut times = Vec::with_capacity(CALLS);
    for call in 0..WARM_UP + CALLS {
        let params = CallToolRequestParams::new("count_bytes").with_arguments(arguments.clone());
        let start = Instant::now();
        let result = client.call_tool(params).await?;
        let time = start.elapsed();
        if result.is_error == Some(true) || result.content.is_empty() {
            bail!("the server did not answer: {result:?}");
        }
        if call >= WARM_UP {
            times.push(time);
        }
    }
    client.cancel().await?;
    println!("{}", json!({ "median_us": median_us(times), "calls": CALLS }));
    Ok(())
}

fn median_us(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times[times.len() / 2].as_secs_f64() * 1e6
}
