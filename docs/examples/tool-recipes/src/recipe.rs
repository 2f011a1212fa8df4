//! One recipe: its file, and the text that it produces. Independent of plugins, so it is tested
//! without one.

use std::collections::BTreeMap;

use jaato_plugin_sdk::prelude::{ToolSpec, Value, json};
use jaato_plugin_sdk::serde::Deserialize;
use jaato_plugin_sdk::serde_json::Map;

/// The longest file of a recipe, in characters.
pub const RECIPE_CHARACTERS_MAX: u64 = 32 * 1024;

/// A tool, as its file describes it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(crate = "jaato_plugin_sdk::serde", deny_unknown_fields)]
pub struct Recipe {
    /// The tool's name.
    pub name: String,
    /// The description with which the model chooses it.
    pub description: String,
    /// The tool's answer, in which `{name}` is replaced with the parameter `name`.
    pub template: String,
    /// The parameters, which are all texts, with their descriptions for the model.
    #[serde(default)]
    pub parameters: BTreeMap<String, String>,
}

impl Recipe {
    /// Parses a file.
    ///
    /// # Errors
    /// A one-line reason why the recipe is invalid.
    pub fn parse(text: &str) -> Result<Self, String> {
        let recipe: Self = toml::from_str(text).map_err(|error| error.message().to_owned())?;
        let Self { description, template, parameters, .. } = &recipe;
        if description.trim().is_empty() || template.trim().is_empty() {
            return Err("the description and the template need a text".to_owned());
        }
        match parameters.keys().find(|name| !template.contains(&format!("{{{name}}}"))) {
            Some(name) => Err(format!("the template does not use the parameter `{name}`")),
            None => Ok(recipe),
        }
    }

    /// Returns the recipe as a tool.
    pub fn spec(&self) -> ToolSpec {
        let property = |(name, text): (&String, &String)| {
            (name.clone(), json!({ "type": "string", "description": text }))
        };
        let properties: Map<String, Value> = self.parameters.iter().map(property).collect();
        let required: Vec<&String> = self.parameters.keys().collect();
        ToolSpec {
            name: self.name.as_str().into(),
            description: self.description.clone(),
            parameters: json!({
                "type": "object",
                "properties": properties,
                "required": required,
                "additionalProperties": false,
            }),
            category: "prompt".to_owned(),
            // The description comes from a file of the workspace, so it is not trusted.
            foreign: true,
            ..ToolSpec::default()
        }
    }

    /// Fills in the template. Placeholders inside arguments are not replaced.
    pub fn fill(&self, arguments: &Value) -> String {
        let (mut filled, mut rest) = (String::new(), self.template.as_str());
        while let Some(begin) = rest.find('{') {
            filled.push_str(&rest[..begin]);
            rest = &rest[begin..];
            let name = rest[1..].split_once('}').map(|(name, _)| name);
            match name.filter(|name| self.parameters.contains_key(*name)) {
                Some(name) => {
                    filled.push_str(arguments[name].as_str().unwrap_or_default());
                    rest = &rest[name.len() + 2..];
                }
                None => {
                    filled.push('{');
                    rest = &rest[1..];
                }
            }
        }
        filled + rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GREET: &str = r#"
        name = "greet"
        description = "Greets."
        template = "Say {word} to {who}, {not this} and {{who}}."
        [parameters]
        word = "What is said."
        who = "To whom."
    "#;

    #[test]
    fn a_template_is_filled_in_once() {
        let recipe = Recipe::parse(GREET).unwrap();
        let filled = recipe.fill(&json!({ "word": "{who}", "who": "Ada" }));
        assert_eq!(filled, "Say {who} to Ada, {not this} and {Ada}.");
        let spec = recipe.spec();
        assert_eq!(spec.parameters["required"], json!(["who", "word"]));
        assert!(spec.foreign);
    }

    #[test]
    fn invalid_recipe_is_refused_with_a_one_line_error() {
        let refused = |text: &str| Recipe::parse(text).unwrap_err();
        assert!(refused("name = ").lines().count() == 1);
        assert!(refused(&format!("colour = 1\n{GREET}")).contains("colour"));
        assert!(refused("name = 'a'\ndescription = ' '\ntemplate = 'b'").contains("need a text"));
        let unused = "name = 'a'\ndescription = 'b'\ntemplate = 'c'\nparameters = { d = 'e' }";
        assert_eq!(refused(unused), "the template does not use the parameter `d`");
    }
}
