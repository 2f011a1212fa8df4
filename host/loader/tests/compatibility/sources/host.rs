//! A host for a single call: opens a plugin, calls its tool, and prints the answer.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use jaato_loader::{
    EngineObserver, Executor, MisbehaviorReport, NoServices, PluginLibrary, StartedPlugin,
};
use jaato_types::{Frame, PluginName};

struct Quiet;

impl EngineObserver for Quiet {
    fn log(&self, _plugin: &PluginName, _level: u8, _text: &str) {}
    fn report_misbehavior(&self, _report: &MisbehaviorReport) {}
    fn log_trouble(&self, _text: &str) {}
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("names no plugin")?;
    let opened = PluginLibrary::open(Path::new(&path))?;
    let executor = Executor::new(tokio::runtime::Handle::current(), Arc::new(Quiet));
    let plugin = StartedPlugin::start(&executor, &opened).await?;
    let instance = plugin.create_instance(Arc::new(NoServices), None).await?;
    let arguments = Frame::write(&serde_json::json!({ "text": "moon" }))?;
    let call = instance.call_tool("count_bytes_echo", arguments, Arc::new(NoServices))?;
    let answer: serde_json::Value = Frame::read(&call.answer().await?)?;
    println!("{answer}");
    Ok(())
}
