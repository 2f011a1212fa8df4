//! The Windows console. It cannot run programs yet, so pipes are used and the reason is reported.

use jaato_plugin_sdk::prelude::*;

use super::{BackendName, BoxedFuture, ProgramStart, StartedProgram, TerminalBackend};

/// The backend for a Windows console.
pub struct ConsoleBackend;

impl TerminalBackend for ConsoleBackend {
    fn backend_name(&self) -> BackendName {
        BackendName::Console
    }

    fn start_program<'a>(
        &'a self,
        _: &'a Reporter,
        _: &'a ProgramStart,
    ) -> BoxedFuture<'a, Result<StartedProgram>> {
        let error =
            Error::new(ErrorKind::UnknownOperation, "Windows consoles are not supported yet");
        Box::pin(async { Err(error) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn console_backend_has_its_own_name() {
        assert_eq!(ConsoleBackend.backend_name().as_str(), "console");
    }
}
