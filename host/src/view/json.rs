//! The event stream as JSON lines.

use std::io::{self, Write as _};

use jaato_runtime::types::Envelope;

/// Writes each event as one line of standard output.
pub struct Lines;

impl super::Writer for Lines {
    fn event(&mut self, envelope: &Envelope) -> io::Result<()> {
        let mut line = serde_json::to_vec(envelope)?;
        line.push(b'\n');
        let mut out = io::stdout().lock();
        out.write_all(&line)?;
        out.flush()
    }

    fn settle(&mut self) -> io::Result<()> {
        Ok(())
    }
}
