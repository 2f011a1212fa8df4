//! The Windows console. It cannot run programs yet, so pipes are used and the reason is reported.

use jaato_plugin_sdk::prelude::*;

use super::{Backend, Boxed, Name, Start, Started};

/// The backend for a Windows console.
pub struct Console;

impl Backend for Console {
    fn name(&self) -> Name {
        Name::Console
    }

    fn start<'a>(&'a self, _: &'a Reporter, _: &'a Start) -> Boxed<'a, Result<Started>> {
        let error =
            Error::new(ErrorKind::UnknownOperation, "Windows consoles are not supported yet");
        Box::pin(async { Err(error) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_has_a_name_of_its_own() {
        assert_eq!(Console.name().as_str(), "console");
    }
}
