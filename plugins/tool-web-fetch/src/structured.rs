//! Extracts the parts of a page as data: metadata, headings, links, images, tables, forms.

use std::collections::BTreeSet;

use dom_query::{Document, NodeRef, Selection};
use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::serde_json;
use jaato_plugin_sdk::types::text::visible_line;

use crate::html::element_text;

/// Limits on the parts, as in the original.
const LINKS_MAX: usize = 100;
const IMAGES_MAX: usize = 50;
const TABLES_MAX: usize = 10;
const ROWS_MAX: usize = 50;
const FORMS_MAX: usize = 5;
const HEADINGS_MAX: usize = 200;
const TEXT_LETTERS_MAX: usize = 200;

/// A part of a page to extract.
#[tool_type]
#[derive(Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum PagePart {
    /// Links with their texts.
    Links,
    /// Images with their alternative texts.
    Images,
    /// Tables with headers and rows.
    Tables,
    /// Forms with their fields.
    Forms,
    /// Headings with their levels.
    Headings,
    /// Title, description and similar.
    Metadata,
}

/// All parts, in the order of the answer.
const ALL: [PagePart; 6] = [
    PagePart::Metadata,
    PagePart::Headings,
    PagePart::Links,
    PagePart::Images,
    PagePart::Tables,
    PagePart::Forms,
];

/// Extracts these parts, or all if the list is empty.
pub fn extract_parts(document: &Document, wanted: &[PagePart]) -> Value {
    let root = document.select("html");
    let mut parts = serde_json::Map::new();
    for part in ALL.into_iter().filter(|part| wanted.is_empty() || wanted.contains(part)) {
        let (name, value) = match part {
            PagePart::Metadata => ("metadata", metadata_json(document)),
            PagePart::Headings => ("headings", headings_json(&root)),
            PagePart::Links => ("links", links_json(&root)),
            PagePart::Images => ("images", images_json(&root)),
            PagePart::Tables => ("tables", tables_json(&root)),
            PagePart::Forms => ("forms", forms_json(&root)),
        };
        parts.insert(name.to_owned(), value);
    }
    Value::Object(parts)
}

/// Returns the title of a page.
pub fn page_title(document: &Document) -> String {
    let title = element_text(&document.select_single("title"));
    if title.is_empty() { element_text(&document.select_single("h1")) } else { title }
}

/// Lists the links, each target once, without fragments.
pub fn links_json(root: &Selection<'_>) -> Value {
    let mut seen = BTreeSet::new();
    let all = root.select("a[href]");
    let links = all.nodes().iter().filter_map(|link| {
        let href = link.attr("href")?;
        let target = href.split('#').next().unwrap_or_default().to_owned();
        let is_new = target.starts_with("http") && seen.insert(target.clone());
        is_new.then(|| json!({ "url": target, "text": node_text(link) }))
    });
    links.take(LINKS_MAX).collect()
}

fn metadata_json(document: &Document) -> Value {
    let mut metadata = serde_json::Map::new();
    let content = |selector: &str| {
        let content = document.select_single(selector).attr("content").unwrap_or_default();
        visible_line(&content, 500)
    };
    let either = |selectors: [&str; 2]| {
        selectors.into_iter().map(content).find(|text| !text.is_empty()).unwrap_or_default()
    };
    let language = document.select_single("html[lang]").attr("lang").unwrap_or_default();
    let canonical = document.select_single("link[rel='canonical']").attr("href");
    let description = ["meta[name='description']", "meta[property='og:description']"];
    let author = ["meta[name='author']", "meta[property='article:author']"];
    let published = ["meta[property='article:published_time']", "meta[name='date']"];
    for (name, value) in [
        ("title", page_title(document)),
        ("description", either(description)),
        ("author", either(author)),
        ("published", either(published)),
        ("site", content("meta[property='og:site_name']")),
        ("keywords", content("meta[name='keywords']")),
        ("language", visible_line(&language, 35)),
        ("canonical", canonical.unwrap_or_default().to_string()),
    ] {
        if !value.is_empty() {
            metadata.insert(name.to_owned(), value.into());
        }
    }
    Value::Object(metadata)
}

fn headings_json(root: &Selection<'_>) -> Value {
    let all = root.select("h1, h2, h3, h4, h5, h6");
    let headings = all.nodes().iter().filter_map(|heading| {
        let level: u8 = heading.node_name()?.get(1..)?.parse().ok()?;
        let text = node_text(heading);
        (!text.is_empty()).then(|| json!({ "level": level, "text": text }))
    });
    headings.take(HEADINGS_MAX).collect()
}

fn images_json(root: &Selection<'_>) -> Value {
    let all = root.select("img[src]");
    let images = all.nodes().iter().filter_map(|image| {
        let alt = visible_line(&image.attr_or("alt", ""), TEXT_LETTERS_MAX);
        Some(json!({ "url": image.attr("src")?.to_string(), "alt": alt }))
    });
    images.take(IMAGES_MAX).collect()
}

fn tables_json(root: &Selection<'_>) -> Value {
    let all = root.select("table");
    // A table for the layout contains tables.
    let mut data = all.iter().filter(|table| !table.select("table").exists());
    data.by_ref().take(TABLES_MAX).map(|table| table_to_json(&table)).collect()
}

fn table_to_json(table: &Selection<'_>) -> Value {
    let rows = table.select("tr");
    let cells = |row: &Selection<'_>, selector: &str| -> Vec<String> {
        row.select(selector).nodes().iter().map(node_text).collect()
    };
    let mut headers = Vec::new();
    let mut body = Vec::new();
    for row in rows.iter() {
        let is_header = headers.is_empty() && body.is_empty() && !row.select("td").exists();
        if is_header {
            headers = cells(&row, "th");
        } else if body.len() < ROWS_MAX {
            body.push(cells(&row, "td, th"));
        }
    }
    json!({ "headers": headers, "rows": body })
}

fn forms_json(root: &Selection<'_>) -> Value {
    let all = root.select("form");
    let forms = all.iter().take(FORMS_MAX).map(|form| {
        let fields = form.select("input, select, textarea, button");
        let fields: Vec<Value> = fields.nodes().iter().take(ROWS_MAX).map(field_to_json).collect();
        let action = form.attr_or("action", "").to_string();
        let method = form.attr_or("method", "get").to_ascii_lowercase();
        json!({ "action": action, "method": method, "fields": fields })
    });
    forms.collect()
}

fn field_to_json(field: &NodeRef<'_>) -> Value {
    let name = field.node_name().unwrap_or_default().to_string();
    let kind = match name.as_str() {
        "input" => field.attr_or("type", "text").to_string(),
        _ => name,
    };
    let line = |attribute: &str| visible_line(&field.attr_or(attribute, ""), TEXT_LETTERS_MAX);
    let mut shown = json!({ "type": kind, "name": line("name") });
    let placeholder = line("placeholder");
    if !placeholder.is_empty() {
        shown["placeholder"] = placeholder.into();
    }
    if kind == "select" {
        let options = Selection::from(*field).select("option");
        shown["options"] = options.nodes().iter().take(ROWS_MAX).map(node_text).collect();
    }
    shown
}

fn node_text(node: &NodeRef<'_>) -> String {
    visible_line(&node.text(), TEXT_LETTERS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::html::{parse_page, remove_hidden_elements};

    fn parse_test_page(html: &str) -> Document {
        let document = parse_page(html, &"https://a.example/p".parse().unwrap()).unwrap();
        remove_hidden_elements(&document);
        document
    }

    #[test]
    fn parts_of_a_page_become_data() {
        let document = parse_test_page(
            "<html lang=en><title>The  pond</title><meta name=description content='Frogs.'>\
             <h2>Frogs</h2><h1>Pond</h1><a href=/a#x>A</a><a href=/a>again</a>\
             <a href='mailto:x@y'>mail</a><img src=f.png alt='a frog'>\
             <table><tr><th>Name<th>Age<tr><td>Hop<td>2</table>\
             <form action=/s method=POST><input name=q placeholder=Find>\
             <select name=k><option>One<option>Two</select></form>",
        );
        let expected = json!({
            "metadata": { "title": "The pond", "description": "Frogs.", "language": "en" },
            "headings": [{ "level": 2, "text": "Frogs" }, { "level": 1, "text": "Pond" }],
            "links": [{ "url": "https://a.example/a", "text": "A" }],
            "images": [{ "url": "https://a.example/f.png", "alt": "a frog" }],
            "tables": [{ "headers": ["Name", "Age"], "rows": [["Hop", "2"]] }],
            "forms": [{ "action": "https://a.example/s", "method": "post", "fields": [
                { "type": "text", "name": "q", "placeholder": "Find" },
                { "type": "select", "name": "k", "options": ["One", "Two"] },
            ] }],
        });
        assert_eq!(extract_parts(&document, &[]), expected);
        let only = extract_parts(&document, &[PagePart::Headings]);
        assert_eq!(only, json!({ "headings": expected["headings"] }));
    }

    #[test]
    fn parts_are_limited() {
        let document = parse_test_page(&"<p><a href='/x'>x</a><img src='/i'>".repeat(200));
        assert_eq!(
            extract_parts(&document, &[PagePart::Links])["links"].as_array().unwrap().len(),
            1
        );
        let images = &extract_parts(&document, &[PagePart::Images])["images"];
        assert_eq!(images.as_array().unwrap().len(), IMAGES_MAX);
    }
}
