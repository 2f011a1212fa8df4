//! A model runs a command, with three plugins that are linked into this program and no plugin file.
#![allow(clippy::unwrap_used)]

use std::process::ExitCode;
use std::sync::Arc;

use jaato_library::testing::{ScriptedProvider, ScriptedProviderAction as Say};
use jaato_library::{Jaato, run_child_if_asked};

fn main() -> ExitCode {
    // The guardian that starts the command is this executable too.
    if let Some(code) = run_child_if_asked() {
        return code;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(model_runs_a_command());
    ExitCode::SUCCESS
}

async fn model_runs_a_command() {
    let model = Arc::new(ScriptedProvider::default());
    let command = serde_json::json!({ "command": "echo from the shell" });
    model.add_answer([Say::call("c1", "cli_based_tool", command)]).add_answer([Say::text("done")]);
    let jaato = Jaato::builder()
        .plugin(environment_local::__jaato::MODULE)
        .plugin(tool_cli::__jaato::MODULE)
        .plugin(tool_calculator::__jaato::MODULE)
        .shared_provider("my", Arc::clone(&model) as _);
    let jaato = jaato.start().await.unwrap();
    let session = jaato.session().allow("cli_based_tool").open().unwrap();
    assert_eq!(session.send("Run it.").await.unwrap().text, "done");
    let requests = model.requests();
    let result = format!("{:?}", requests[1].messages.last().unwrap());
    assert!(result.contains("from the shell"), "{result}");
    session.close().await;
    let ended = jaato.close().await;
    assert!(ended.processes.is_empty() && ended.orphans.is_empty());
}
