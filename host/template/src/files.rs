//! The files of a plugin's crate, filled in.

use crate::name::{crate_name, library_name, short_name, type_name};
use crate::{SdkSources, TemplateKind};

/// The plugin's name in the templates. Valid Rust, so that the templates can be parsed.
const TEMPLATE_TYPE: &str = "TemplateName";
const TEMPLATE_NAME: &str = "template-name";
const TEMPLATE_CRATE: &str = "template_name";
const TEMPLATE_SHORT: &str = "template-short";
const TEMPLATE_KIND: &str = "template-kind";
const TEMPLATE_LIBRARY: &str = "template-library";
const TEMPLATE_OFFERS: &str = "template-offers";
const TEMPLATE_TOOL: &str = "template_short";
const TEMPLATE_INCLUDE: &str = "template-include";

/// Returns every file with its path inside the crate.
pub(crate) fn template_files(
    name: &str,
    kind: TemplateKind,
    sdk: &SdkSources,
) -> Vec<(String, String)> {
    let fill = |template: &str| fill_template(template, name, kind);
    let source = match kind {
        TemplateKind::Tool => include_str!("../templates/tool.rs"),
        TemplateKind::Gc => include_str!("../templates/gc.rs"),
        TemplateKind::Provider => include_str!("../templates/provider.rs"),
        TemplateKind::Environment => include_str!("../templates/environment.rs"),
        TemplateKind::Hook => include_str!("../templates/hook.rs"),
        TemplateKind::C => return c_files(name, sdk, fill),
    };
    let files = [
        ("Cargo.toml", crate_manifest(name, kind, sdk)),
        ("src/lib.rs", fill(source)),
        ("tests/conformance.rs", fill(include_str!("../templates/conformance.rs"))),
        ("README.md", with_crates(&fill(include_str!("../templates/README.md")), kind)),
        (".github/workflows/ci.yml", fill(include_str!("../templates/ci.yml"))),
        (".gitignore", "target/\n".to_owned()),
    ];
    files.map(|(file, text)| (file.to_owned(), text)).into()
}

/// Returns the files of a plugin in C, which has no crate.
fn c_files(name: &str, sdk: &SdkSources, fill: impl Fn(&str) -> String) -> Vec<(String, String)> {
    let makefile = fill(include_str!("../templates/Makefile"));
    let source = fill(include_str!("../templates/plugin.c"));
    vec![
        (format!("{}.c", crate_name(name)), source),
        ("Makefile".to_owned(), makefile.replace(TEMPLATE_INCLUDE, &sdk.include_in_make())),
        ("README.md".to_owned(), fill(include_str!("../templates/README-c.md"))),
        (".gitignore".to_owned(), format!("{}\n", library_name(name))),
    ]
}

fn fill_template(template: &str, name: &str, kind: TemplateKind) -> String {
    let short = short_name(name);
    let offers = match kind {
        TemplateKind::Tool => format!("the tool `{}`, which counts words", crate_name(short)),
        TemplateKind::Gc => {
            "a gc that drops the oldest turns when the context gets full".to_owned()
        }
        TemplateKind::Provider => {
            format!("the provider `{short}`, which repeats the user's message")
        }
        TemplateKind::Environment => {
            format!("the execution environment `{short}`, a folder of this machine")
        }
        TemplateKind::Hook => "a hook that asks before a tool call deletes something".to_owned(),
        TemplateKind::C => format!("the tool `{}`, which tells the time", crate_name(short)),
    };
    template
        .replace(TEMPLATE_TYPE, &type_name(name))
        .replace(TEMPLATE_OFFERS, &offers)
        .replace(TEMPLATE_LIBRARY, &library_name(name))
        .replace(TEMPLATE_CRATE, &crate_name(name))
        .replace(TEMPLATE_NAME, name)
        .replace(TEMPLATE_SHORT, short)
        .replace(TEMPLATE_TOOL, &crate_name(short))
        .replace(TEMPLATE_KIND, kind.kind_name())
}

/// Returns the sdk's crates that a kind's sources use, besides `sdk` itself.
fn sdk_crates(kind: TemplateKind) -> &'static [&'static str] {
    match kind {
        TemplateKind::Tool
        | TemplateKind::Gc
        | TemplateKind::Provider
        | TemplateKind::Hook
        | TemplateKind::C => &[],
        TemplateKind::Environment => &["sdk-environment"],
    }
}

/// Adds the dependencies of a copied sdk to the README.
fn with_crates(readme: &str, kind: TemplateKind) -> String {
    let own = "jaato-plugin-sdk = { path = \"jaato-sdk/plugin-api/sdk\" }\n";
    let others = sdk_crates(kind).iter();
    let others = others.map(|name| own.replace("plugin-sdk", &format!("plugin-{name}")));
    let others: String = others
        .zip(sdk_crates(kind))
        .map(|(line, name)| line.replace("/sdk\"", &format!("/{name}\"")))
        .collect();
    readme.replacen(own, &format!("{own}{others}"), 1)
}

fn crate_manifest(name: &str, kind: TemplateKind, sdk: &SdkSources) -> String {
    let line =
        |name: &&str| format!("jaato-plugin-{name} = {{ path = {} }}\n", sdk.toml_path(name));
    let others: String = sdk_crates(kind).iter().map(line).collect();
    format!(
        "[package]\n\
         name = \"{name}\"\n\
         version = \"0.1.0\"\n\
         edition = \"2024\"\n\
         {rust_version}\
         \n\
         [lib]\n\
         # The dylib is the plugin, the rlib is for its tests.\n\
         crate-type = [\"cdylib\", \"rlib\"]\n\
         \n\
         # Sources that came with jaato on this machine; README.md says what to do about others.\n\
         [dependencies]\n\
         jaato-plugin-sdk = {{ path = {sdk} }}\n\
         {others}\
         \n\
         [dev-dependencies]\n\
         jaato-plugin-testkit = {{ path = {testkit} }}\n\
         \n\
         [profile.release]\n\
         strip = \"symbols\"\n\
         \n\
         # A workspace of its own, wherever it lies. A copy of the sdk in it stays one too.\n\
         [workspace]\n\
         exclude = [\"jaato-sdk\"]\n",
        rust_version = sdk.rust_version_line(),
        sdk = sdk.toml_path("sdk"),
        testkit = sdk.toml_path("testkit"),
    )
}
