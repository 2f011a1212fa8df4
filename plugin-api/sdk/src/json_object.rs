//! The macro `json_object!`.

/// Creates a JSON object from a literal, for fields that need a map. Like `json!`, but accepts only
/// braces.
///
/// ```
/// use jaato_plugin_sdk::prelude::*;
/// use jaato_plugin_sdk::types::ProviderPreset;
///
/// let preset = ProviderPreset {
///     name: "moon".to_owned(),
///     settings: json_object!({ "base_url": "https://api.moon.example/v1" }),
///     ..ProviderPreset::default()
/// };
/// assert_eq!(preset.settings.len(), 1);
/// ```
///
/// ```compile_fail
/// jaato_plugin_sdk::json_object!(["a list"]);
/// ```
///
/// To convert an existing value, use [`to_object`](crate::to_object).
#[macro_export]
macro_rules! json_object {
    ({ $($inside:tt)* }) => {
        match $crate::serde_json::json!({ $($inside)* }) {
            $crate::serde_json::Value::Object(object) => object,
            _ => unreachable!("it is written with braces"),
        }
    };
}
