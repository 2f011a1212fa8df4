//! The view for people: the answer on standard output, everything about the work on standard error.
//!
//! On a terminal both are seen together, calm: a spinner while nothing else is to be seen, one line a
//! call, each line of a tool labelled by its plugin. Piped, both are plain, and a script that reads the
//! output gets the answer alone.

use std::io::{self, Write as _};
use std::time::Duration;

use console::{Style, Term};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use jaato_runtime::types::{Envelope, Event, Outcome};
use serde_json::{Map, Value};

use super::text::{one_line, printable};

/// Columns of plain lines, where there is no terminal to ask.
const PLAIN_COLUMNS: usize = 400;

/// Columns of a notice, on a terminal too: its end says why and what to do, so it goes on in the next line.
const NOTICE_COLUMNS: usize = 600;

/// A step of progress that is worth a plain line, in percent.
const PLAIN_PROGRESS_PERCENT: u64 = 10;

/// Writes text for people.
pub struct People {
    out_is_terminal: bool,
    errors: Term,
    dim: Style,
    strong: Style,
    red: Style,
    /// What moves: a spinner or a bar. Absent where errors are no terminal.
    moving: Option<ProgressBar>,
    /// Whether the last line of the answer is open.
    line_is_open: bool,
    /// The source of the tool output whose last line is open.
    output_is_open: Option<String>,
    /// The last step of progress that was told plainly.
    told_percent: Option<u64>,
}

impl People {
    /// Makes a view for the process's own output and error output.
    pub fn new() -> Self {
        let errors = Term::stderr();
        let style = || Style::new().for_stderr();
        Self {
            out_is_terminal: Term::stdout().is_term(),
            errors,
            dim: style().dim(),
            strong: style().bold(),
            red: style().red(),
            moving: None,
            line_is_open: false,
            output_is_open: None,
            told_percent: None,
        }
    }

    fn columns(&self) -> usize {
        if self.errors.is_term() { usize::from(self.errors.size().1) } else { PLAIN_COLUMNS }
    }

    /// Shows that something goes on, where there is a terminal.
    fn spin(&mut self, text: &str) {
        if !self.errors.is_term() || self.line_is_open {
            return;
        }
        let text = one_line(text, self.columns().saturating_sub(4));
        let is_bar = self.moving.as_ref().is_some_and(|moving| moving.length().is_some());
        if is_bar {
            self.still();
        }
        let moving = self.moving.get_or_insert_with(|| {
            let spinner = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            if let Ok(style) = ProgressStyle::with_template("{spinner:.dim} {msg:.dim}") {
                spinner.set_style(style);
            }
            spinner.enable_steady_tick(Duration::from_millis(120));
            spinner
        });
        moving.set_message(text);
    }

    /// Takes away what moves.
    fn still(&mut self) {
        if let Some(moving) = self.moving.take() {
            moving.finish_and_clear();
        }
    }

    /// Writes one line about the work.
    fn line(&mut self, line: &str) -> io::Result<()> {
        self.close_lines()?;
        self.still();
        self.errors.write_line(line)
    }

    fn close_lines(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.line_is_open) {
            let mut out = io::stdout().lock();
            out.write_all(b"\n")?;
            out.flush()?;
        }
        if self.output_is_open.take().is_some() {
            self.errors.write_line("")?;
        }
        Ok(())
    }

    fn answer(&mut self, text: &str) -> io::Result<()> {
        self.still();
        if self.output_is_open.take().is_some() {
            self.errors.write_line("")?;
        }
        let text = if self.out_is_terminal { printable(text) } else { text.into() };
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())?;
        out.flush()?;
        self.line_is_open = !text.ends_with('\n') && (self.line_is_open || !text.is_empty());
        Ok(())
    }

    /// Writes what a tool shows, each line labelled by its plugin.
    fn output(&mut self, source: &str, text: &str) -> io::Result<()> {
        self.still();
        if self.line_is_open || self.output_is_open.as_deref().is_some_and(|open| open != source) {
            self.close_lines()?;
        }
        let label = self.label(source);
        // Written at once: a tool may print a hundred thousand short lines, and a cancel waits for them.
        let mut lines = String::new();
        for piece in printable(text).split_inclusive('\n') {
            if self.output_is_open.is_none() {
                lines.push_str(&label);
            }
            lines.push_str(piece);
            self.output_is_open = (!piece.ends_with('\n')).then(|| source.to_owned());
        }
        self.errors.write_str(&lines)
    }

    fn label(&self, source: &str) -> String {
        format!("  {} ", self.dim.apply_to(format!("{source} │")))
    }

    fn result(
        &mut self,
        source: &str,
        result: &Map<String, Value>,
        is_error: bool,
    ) -> io::Result<()> {
        let label = self.label(source);
        let room = self.columns().saturating_sub(console::measure_text_width(&label) + 1);
        let text = match result.get("error").filter(|_| is_error) {
            Some(error) => {
                let message = error.get("message").unwrap_or(error);
                let message = message.as_str().map_or_else(|| message.to_string(), str::to_owned);
                self.red.apply_to(one_line(&message, room)).to_string()
            }
            None => {
                let text = Value::Object(result.clone()).to_string();
                self.dim.apply_to(one_line(&text, room)).to_string()
            }
        };
        self.line(&format!("{label}{text}"))
    }

    fn progress(&mut self, label: &str, done: u64, total: u64) -> io::Result<()> {
        if !self.errors.is_term() {
            let percent = (done * 100).checked_div(total).unwrap_or(0);
            let step = percent - percent % PLAIN_PROGRESS_PERCENT;
            if self.told_percent.replace(step) != Some(step) {
                return self.line(&format!("{label}: {step} %"));
            }
            return Ok(());
        }
        if self.moving.as_ref().is_none_or(|moving| moving.length() != Some(total)) {
            self.close_lines()?;
            self.still();
            let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
            let template = "{msg:.dim} {bar:32.dim} {bytes}/{total_bytes} {bytes_per_sec} {eta}";
            if let Ok(style) = ProgressStyle::with_template(template) {
                bar.set_style(style);
            }
            self.moving = Some(bar);
        }
        if let Some(bar) = &self.moving {
            bar.set_message(one_line(label, 24));
            bar.set_position(done);
        }
        if done >= total {
            self.still();
        }
        Ok(())
    }

    fn finished(&mut self, outcome: Outcome, message: Option<&str>) -> io::Result<()> {
        self.close_lines()?;
        self.still();
        match outcome {
            Outcome::Done => Ok(()),
            Outcome::Cancelled => self.line("cancelled"),
            Outcome::Denied => {
                let text = "a call was refused because nobody could be asked";
                self.line(&self.dim.apply_to(text).to_string())
            }
            Outcome::Limit | Outcome::Failed | Outcome::Unknown => {
                let text = message.unwrap_or("the turn ended without an answer");
                let text = format!("{} {}", self.red.apply_to("error:"), printable(text));
                self.line(&text)
            }
        }
    }
}

impl super::Writer for People {
    fn event(&mut self, envelope: &Envelope) -> io::Result<()> {
        match &envelope.event {
            Event::TextDelta { text, .. } => self.answer(text),
            Event::ToolOutput { source, text, .. } => self.output(source, text),
            Event::StepStarted { .. } => {
                self.spin("thinking…");
                Ok(())
            }
            Event::Notice { text, .. } if self.errors.is_term() && text.ends_with('…') => {
                self.spin(text);
                Ok(())
            }
            Event::Notice { source, text } => {
                let text = format!("{source}: {}", one_line(text, NOTICE_COLUMNS));
                self.line(&self.dim.apply_to(text).to_string())
            }
            Event::Progress { label, done, total, .. } => self.progress(label, *done, *total),
            Event::ToolCallStarted { name, source, arguments, .. } => {
                let room = self.columns().saturating_sub(name.as_str().len() + source.len() + 8);
                let arguments = one_line(&arguments.to_string(), room);
                let line = format!(
                    "{} {} {}",
                    self.dim.apply_to(format!("[{source}]")),
                    self.strong.apply_to(name.as_str()),
                    self.dim.apply_to(arguments)
                );
                self.line(&line)?;
                self.spin("running…");
                Ok(())
            }
            Event::ToolCallFinished { source, result, is_error, .. } => {
                self.result(source, result, *is_error)
            }
            Event::ObjectsAdded { source, text: Some(text), .. } => {
                self.output(source, &format!("{}\n", text.trim_end()))
            }
            Event::ObjectsAdded { source, tool, name, objects, .. } => {
                let name = name.as_deref().map_or(String::new(), |name| format!(" of {name}"));
                let objects = match objects.len() {
                    1 => "1 object".to_owned(),
                    count => format!("{count} objects"),
                };
                let text = format!("{source}: {tool} gave {objects}{name}");
                self.line(&self.dim.apply_to(one_line(&text, self.columns())).to_string())
            }
            Event::Retry { attempt, delay_ms, error } => {
                let text = format!(
                    "{}; trying again in {:.1} s (attempt {attempt})",
                    error.message,
                    *delay_ms as f64 / 1000.0
                );
                self.line(&self.dim.apply_to(text).to_string())
            }
            Event::TurnFinished { outcome, error, .. } => {
                let error = error.as_ref().map(ToString::to_string);
                self.finished(*outcome, error.as_deref())
            }
            Event::TaskStarted { name, source, .. } => {
                let text = format!("{source}: {name} goes on in the background");
                self.line(&self.dim.apply_to(text).to_string())
            }
            Event::TaskFinished { source, result, is_error, .. } => {
                self.result(source, result, *is_error)
            }
            Event::MessageJoined { text } => {
                let text = format!("you: {}", one_line(text, self.columns()));
                self.line(&self.dim.apply_to(text).to_string())
            }
            event @ Event::Gc { .. } => {
                let text = one_line(&gc_line(event), self.columns());
                self.line(&self.dim.apply_to(text).to_string())
            }
            Event::CommandStarted { name, source, .. } => {
                self.spin(&format!("{source}: {name}…"));
                Ok(())
            }
            // Its answer is printed by whoever gave the command.
            Event::CommandFinished { .. } => {
                self.still();
                Ok(())
            }
            // For those who join: what is on a screen is told by the result of the call, as the model has it.
            Event::TerminalScreen { .. } | Event::TerminalTyped { .. } => Ok(()),
            // Asked on the terminal by the asker; told by what comes after.
            Event::TerminalAsked { .. }
            | Event::TerminalAnswered { .. }
            | Event::PermissionAsked { .. }
            | Event::PermissionDecided { .. }
            | Event::SessionStarted { .. }
            | Event::TurnStarted { .. }
            | Event::ThoughtDelta { .. }
            | Event::Usage { .. }
            | Event::StepFinished { .. }
            | Event::Unknown => Ok(()),
        }
    }

    fn settle(&mut self) -> io::Result<()> {
        self.still();
        self.close_lines()
    }
}

/// Tells in one line what a gc did, or why it did nothing.
fn gc_line(event: &Event) -> String {
    let Event::Gc {
        source,
        messages_removed,
        messages_cut,
        tokens_before,
        tokens_after,
        note,
        error,
        ..
    } = event
    else {
        return String::new();
    };
    if let Some(error) = error {
        return format!("gc {source}: {error}");
    }
    let done = match (messages_removed, messages_cut) {
        (0, 0) => "nothing to leave out".to_owned(),
        (0, cut) => format!("messages shortened: {cut}"),
        (removed, _) => format!("old messages left out: {removed}"),
    };
    let note = note.as_ref().map(|note| format!("; {note}")).unwrap_or_default();
    format!(
        "gc {source}: {done}, about {tokens_before} tokens before and {tokens_after} after{note}"
    )
}
