//! A program that embeds the library and becomes its own children. Tests start it, and it must
//! print nothing itself.

use std::process::ExitCode;

use jaato_library::types::{Completion, CompletionRequest, Delta, FinishReason, Part, Usage};
use jaato_library::{Jaato, PluginFiles, Result, ports};

/// Says one word.
struct OneWordProvider;

impl ports::Provider for OneWordProvider {
    fn source(&self) -> &str {
        "one-word"
    }

    fn complete<'a>(
        &'a self,
        _request: &'a CompletionRequest,
        sink: ports::DeltaSink,
        _cancel: ports::Cancel,
    ) -> futures_util::future::BoxFuture<'a, Result<Completion>> {
        sink.emit_delta(Delta::text("word"));
        let answer =
            Completion::new(vec![Part::text("word")], FinishReason::Stop, Usage::default());
        Box::pin(std::future::ready(Ok(answer)))
    }
}

fn main() -> ExitCode {
    if let Some(code) = jaato_library::run_child_if_asked() {
        return code;
    }
    let builder =
        Jaato::builder().provider("one", OneWordProvider).plugin_files(PluginFiles::Searched);
    let said = jaato_library::blocking::BlockingJaato::start(builder).and_then(|jaato| {
        let session = jaato.open(jaato.session())?;
        session.send("Say a word.").wait()
    });
    match said {
        Ok(report) if report.text == "word" => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}
