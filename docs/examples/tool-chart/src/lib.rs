//! `tool-chart`: draws numbers as a chart for users and models.
//!
//! Shows attachments: a picture with a result that contains the same numbers as text.
#![forbid(unsafe_code)]

mod chart;
mod png;

use jaato_plugin_sdk::prelude::*;

pub use chart::{ChartShape, VALUES_MAX};

/// How the numbers are drawn.
#[tool_type]
#[derive(Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum ChartKind {
    /// A bar for each number: amounts side by side.
    Bar,
    /// A line through all of them: what changes with time.
    Line,
}

/// Draws numbers as a bar or line chart (a PNG, attached) and returns them as text. Use it to show
/// the user how numbers compare or change. The picture has no labels; the text lists the values
/// from left to right.
#[tool_fn(
    read_only,
    idempotent,
    open_world = false,
    example(
        "draw how many tests we had each year",
        title = "Tests",
        kind = "bar",
        labels = ["2024", "2025"],
        values = [310, 742]
    )
)]
async fn draw_chart(
    cx: &Cx,
    /// What the chart shows.
    title: String,
    /// How it is drawn.
    kind: ChartKind,
    /// The name of each value, in the same order.
    labels: Vec<String>,
    /// The numbers, 1 to 100 of them.
    values: Vec<f64>,
) -> Result<Output> {
    if let Some(why) = chart::input_error(&labels, &values) {
        return Err(Error::new(ErrorKind::InvalidArguments, why));
    }
    let shape = match kind {
        ChartKind::Bar => ChartShape::Bars,
        ChartKind::Line => ChartShape::Line,
    };
    let png = chart::draw_picture(shape, &values).to_png();
    let png = png.map_err(|error| Error::failed(format!("writing the picture: {error}")))?;
    let words = chart::describe(&title, &labels, &values);
    // The numbers are useful without the picture, for example if the session has no room for it.
    let attached = cx.attach("image/png", png).await;
    if let Err(error) = &attached {
        cx.log(LogLevel::Warn, format!("the picture is left out: {}", error.message));
    }
    Ok(Output::json(json!({ "chart": words, "has_picture": attached.is_ok() })))
}

export_plugin! { state: (), tools }
