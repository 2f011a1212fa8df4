//! The event stream as JSON lines.

use std::io;

use jaato_runtime::types::EventEnvelope;

use crate::terminal;

/// Writes each event as one line of standard output.
pub struct Lines;

impl super::Writer for Lines {
    fn event(&mut self, envelope: &EventEnvelope) -> io::Result<()> {
        let mut line = serde_json::to_string(envelope)?;
        line.push('\n');
        terminal::print_json(&line)
    }

    fn settle(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn pause(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn go_on(&mut self) {}

    fn hide_ends_of_tasks(&mut self) {}

    fn attempts(&mut self, _attempts_max: u32) {}
}
