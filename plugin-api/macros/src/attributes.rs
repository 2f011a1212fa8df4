//! Parses the attributes `#[tool(…)]` and `#[tool_fn(…)]`.

use proc_macro2::Span;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Attribute, Error, Expr, Ident, LitBool, LitStr, Result, Token, parenthesized};

use crate::condition::ConditionAttribute;

/// The content of `#[tool(…)]` on a struct, or of `#[tool_fn(…)]` on a function.
#[derive(Default)]
pub struct ToolAttributes {
    pub name: Option<LitStr>,
    pub category: Option<LitStr>,
    pub core: bool,
    pub auto_approval: bool,
    pub auto_background: bool,
    pub previews: bool,
    pub traits: Vec<LitStr>,
    /// The JSON Schema of the arguments, if it is not derived.
    pub schema: Option<Expr>,
    pub examples: Vec<ExampleAttribute>,
    /// `available_if`, with its key.
    pub available_if: Option<(Ident, ConditionAttribute)>,
    pub run_if: Option<ConditionAttribute>,
    /// Annotations by name. An absent one promises nothing.
    pub promises: Vec<(Ident, bool)>,
}

/// Parses the content of the parentheses of `#[tool_fn(…)]`.
impl Parse for ToolAttributes {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let mut all = Self::default();
        all.parse_items(input)?;
        Ok(all)
    }
}

/// A phrase with the expected arguments.
pub struct ExampleAttribute {
    pub phrase: LitStr,
    pub arguments: Vec<(Ident, Expr)>,
}

const PROMISES: [&str; 5] =
    ["read_only", "destructive", "idempotent", "open_world", "parallel_safe"];

impl ToolAttributes {
    /// Parses all `#[tool(…)]` attributes of a struct.
    pub fn from_attributes(attributes: &[Attribute]) -> Result<Self> {
        let mut all = Self::default();
        for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("tool")) {
            attribute.parse_args_with(|input: ParseStream<'_>| all.parse_items(input))?;
        }
        Ok(all)
    }

    fn parse_items(&mut self, input: ParseStream<'_>) -> Result<()> {
        let items = Punctuated::<ToolAttributeItem, Token![,]>::parse_terminated(input)?;
        items.into_iter().try_for_each(|item| self.set_item(item))
    }

    /// Returns an annotation, if it is set.
    pub fn annotation_value(&self, name: &str) -> Option<bool> {
        self.promises.iter().find(|(promise, _)| promise == name).map(|(_, value)| *value)
    }

    fn set_item(&mut self, item: ToolAttributeItem) -> Result<()> {
        match item {
            ToolAttributeItem::Text(key, text) if key == "name" => self.name = Some(text),
            ToolAttributeItem::Text(key, text) if key == "category" => self.category = Some(text),
            ToolAttributeItem::Flag(key, value) if key == "core" => self.core = value,
            ToolAttributeItem::Flag(key, value) if key == "auto_approval" => {
                self.auto_approval = value
            }
            ToolAttributeItem::Flag(key, value) if key == "auto_background" => {
                self.auto_background = value
            }
            ToolAttributeItem::Flag(key, value) if key == "previews" => self.previews = value,
            ToolAttributeItem::Flag(key, value)
                if PROMISES.iter().any(|promise| key == promise) =>
            {
                if self.annotation_value(&key.to_string()).is_some() {
                    return Err(Error::new(key.span(), format!("duplicate key `{key}`")));
                }
                self.promises.push((key, value));
            }
            ToolAttributeItem::Schema(key, schema) => {
                if self.schema.replace(schema).is_some() {
                    return Err(Error::new(key.span(), "duplicate key `schema`"));
                }
            }
            ToolAttributeItem::Traits(traits) => self.traits.extend(traits),
            ToolAttributeItem::Example(example) => self.examples.push(example),
            ToolAttributeItem::Condition(key, condition) => {
                let is_taken = match &key == "run_if" {
                    true => self.run_if.replace(condition).is_some(),
                    false => self.available_if.replace((key.clone(), condition)).is_some(),
                };
                if is_taken {
                    return Err(Error::new(key.span(), format!("duplicate key `{key}`")));
                }
            }
            ToolAttributeItem::Flag(key, _) | ToolAttributeItem::Text(key, _) => {
                return Err(unknown_key_error(&key));
            }
        }
        Ok(())
    }
}

enum ToolAttributeItem {
    Flag(Ident, bool),
    Text(Ident, LitStr),
    Schema(Ident, Expr),
    Traits(Vec<LitStr>),
    Example(ExampleAttribute),
    Condition(Ident, ConditionAttribute),
}

impl Parse for ToolAttributeItem {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let key: Ident = input.parse()?;
        if input.peek(syn::token::Paren) {
            let inside;
            parenthesized!(inside in input);
            return match key.to_string().as_str() {
                "traits" => {
                    let traits = Punctuated::<LitStr, Token![,]>::parse_terminated(&inside)?;
                    Ok(Self::Traits(traits.into_iter().collect()))
                }
                "example" => parse_example(&inside).map(Self::Example),
                "available_if" | "run_if" => {
                    let condition = ConditionAttribute::parse_content(&key, &inside)?;
                    Ok(Self::Condition(key, condition))
                }
                _ => Err(unknown_key_error(&key)),
            };
        }
        if !input.peek(Token![=]) {
            return Ok(Self::Flag(key, true));
        }
        input.parse::<Token![=]>()?;
        if key == "schema" {
            return Ok(Self::Schema(key, input.parse()?));
        }
        if input.peek(LitBool) {
            return Ok(Self::Flag(key, input.parse::<LitBool>()?.value));
        }
        Ok(Self::Text(key, input.parse()?))
    }
}

fn parse_example(input: ParseStream<'_>) -> Result<ExampleAttribute> {
    let phrase: LitStr = input.parse()?;
    let mut arguments = Vec::new();
    while !input.is_empty() {
        input.parse::<Token![,]>()?;
        if input.is_empty() {
            break;
        }
        let name: Ident = input.parse()?;
        input.parse::<Token![=]>()?;
        arguments.push((name, input.parse()?));
    }
    Ok(ExampleAttribute { phrase, arguments })
}

fn unknown_key_error(key: &Ident) -> Error {
    let known = "read_only, destructive, idempotent, open_world, parallel_safe, core, auto_approval, \
                 auto_background, previews, name = \"…\", category = \"…\", schema = …, traits(…), \
                 example(…), available_if(…), run_if(…)";
    Error::new(key.span(), format!("unknown key `{key}`, expected one of: {known}"))
}

/// Joins the lines of a doc comment: a blank line stays, other line breaks become spaces.
pub fn doc_text(attributes: &[Attribute]) -> String {
    let mut text = String::new();
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("doc")) {
        let syn::Meta::NameValue(pair) = &attribute.meta else { continue };
        let Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(line), .. }) = &pair.value else {
            continue;
        };
        let line = line.value();
        let line = line.trim();
        if line.is_empty() {
            text.push_str("\n\n");
        } else {
            if !text.is_empty() && !text.ends_with('\n') {
                text.push(' ');
            }
            text.push_str(line);
        }
    }
    text.trim().to_owned()
}

/// Converts `WordCount` to `word_count`.
pub fn to_snake_case(ident: &Ident) -> LitStr {
    let mut text = String::new();
    for (index, letter) in ident.to_string().chars().enumerate() {
        if letter.is_uppercase() && index > 0 {
            text.push('_');
        }
        text.extend(letter.to_lowercase());
    }
    LitStr::new(&text, Span::call_site())
}
