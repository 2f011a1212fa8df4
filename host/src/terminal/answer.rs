//! What comes in pieces: the model's answer on standard output, what tools show on standard error.

use std::io;

use jaato_runtime::visible::{Measure, Visible};

use super::{Text, writer};

/// The answer. On a terminal it is made visible; piped it passes as it is.
#[derive(Debug)]
pub struct Answer {
    visible: Option<Visible>,
    line_is_open: bool,
}

impl Answer {
    /// Looks at standard output once.
    pub fn new() -> Self {
        let visible = writer::output_is_terminal().then(|| Visible::new(Measure::Read));
        Self { visible, line_is_open: false }
    }

    /// Writes the next piece.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn piece(&mut self, text: &str) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        self.line_is_open = !text.ends_with('\n');
        match &mut self.visible {
            Some(visible) => writer::output(&visible.piece(text)),
            None => writer::output(text),
        }
    }

    /// Tells whether its last line is open.
    pub fn line_is_open(&self) -> bool {
        self.line_is_open
    }

    /// Ends its last line, where that is open.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn end_line(&mut self) -> io::Result<()> {
        let rest = self.visible.as_mut().map(Visible::end).unwrap_or_default();
        if std::mem::take(&mut self.line_is_open) {
            return writer::output(&(rest + "\n"));
        }
        Ok(())
    }
}

/// What a tool shows, each line behind the label of its plugin.
#[derive(Debug, Default)]
pub struct Output {
    /// The source whose last line is open.
    open: Option<(String, Visible)>,
}

impl Output {
    /// Tells whether the last line of another source is open.
    pub fn is_of_another(&self, source: &str) -> bool {
        self.open.as_ref().is_some_and(|(open, _)| open != source)
    }

    /// Writes the next piece of a source.
    ///
    /// # Errors
    /// When nobody reads any more.
    pub fn piece(&mut self, source: &str, label: &Text, text: &str) -> io::Result<()> {
        let label = label.styled(|| console::Style::new().for_stderr());
        let (mut line_is_open, mut visible) = match self.open.take() {
            Some((_, visible)) => (true, visible),
            None => (false, Visible::new(Measure::Read)),
        };
        // Written at once: a tool may print a hundred thousand short lines, and a cancel waits for
        // them.
        let mut lines = String::new();
        for piece in visible.piece(text).split_inclusive('\n') {
            if !line_is_open {
                lines.push_str(&label);
            }
            lines.push_str(piece);
            line_is_open = !piece.ends_with('\n');
        }
        self.open = line_is_open.then(|| (source.to_owned(), visible));
        writer::errors(&lines)
    }

    /// Ends its last line, where that is open.
    ///
    /// # Errors
    /// When nobody reads any more.
    pub fn end_line(&mut self) -> io::Result<()> {
        match self.open.take() {
            Some((_, mut visible)) => writer::errors(&(visible.end() + "\n")),
            None => Ok(()),
        }
    }
}
