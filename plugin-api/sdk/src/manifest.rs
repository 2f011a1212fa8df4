//! Builds the manifest at compile time, so that the host can read it without running the plugin.

/// The facts that the export macro passes.
pub struct ManifestFacts {
    /// The crate's name.
    pub name: &'static str,
    /// The crate's version.
    pub version: &'static str,
    /// The kinds that it offers.
    pub kinds: &'static [&'static str],
    /// `session` or `host`.
    pub scope: &'static str,
    /// `in_process` or `worker`.
    pub isolation: &'static str,
    /// Variables that its worker needs.
    pub variables: &'static [&'static str],
}

/// Returns the length of the manifest.
pub const fn manifest_length(facts: &ManifestFacts) -> usize {
    let mut writer = ManifestWriter { bytes: &mut [], length: 0 };
    writer.write_manifest(facts);
    writer.length
}

/// Returns the manifest. `N` is its [`manifest_length`].
pub const fn manifest_bytes<const N: usize>(facts: &ManifestFacts) -> [u8; N] {
    let mut bytes = [0; N];
    let mut writer = ManifestWriter { bytes: &mut bytes, length: 0 };
    writer.write_manifest(facts);
    bytes
}

/// Writes as many bytes as fit, and counts all of them.
struct ManifestWriter<'a> {
    bytes: &'a mut [u8],
    length: usize,
}

impl ManifestWriter<'_> {
    const fn write_manifest(&mut self, facts: &ManifestFacts) {
        self.write_text("{\"v\":1,\"name\":\"");
        self.write_text(facts.name);
        self.write_text("\",\"version\":\"");
        self.write_text(facts.version);
        self.write_text("\",\"api\":\"");
        self.write_text(jaato_plugin_api::API_VERSION);
        self.write_text("\",\"kinds\":");
        self.write_list(facts.kinds);
        self.write_text(",\"scope\":\"");
        self.write_text(facts.scope);
        self.write_text("\",\"isolation\":\"");
        self.write_text(facts.isolation);
        self.write_text("\",\"variables\":");
        self.write_list(facts.variables);
        self.write_text("}");
    }

    const fn write_list(&mut self, items: &[&str]) {
        self.write_text("[");
        let mut index = 0;
        while index < items.len() {
            self.write_text(if index == 0 { "\"" } else { ",\"" });
            self.write_text(items[index]);
            self.write_text("\"");
            index += 1;
        }
        self.write_text("]");
    }

    /// No text needs escaping: crate names, versions, and fixed words.
    const fn write_text(&mut self, text: &str) {
        let text = text.as_bytes();
        let mut index = 0;
        while index < text.len() {
            if self.length < self.bytes.len() {
                self.bytes[self.length] = text[index];
            }
            self.length += 1;
            index += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jaato_types::{Isolation, Manifest, PluginKind, PluginScope};

    const FACTS: ManifestFacts = ManifestFacts {
        name: "provider-moon",
        version: "0.2.0",
        kinds: &["tool", "provider"],
        scope: "host",
        isolation: "worker",
        variables: &["A", "B"],
    };

    #[test]
    fn host_reads_the_manifest_that_the_macro_wrote() {
        const BYTES: [u8; manifest_length(&FACTS)] = manifest_bytes(&FACTS);
        let manifest = Manifest::parse(&BYTES).unwrap();
        let expected = Manifest {
            v: 1,
            name: "provider-moon".into(),
            version: "0.2.0".into(),
            api: jaato_plugin_api::API_VERSION.into(),
            kinds: vec![PluginKind::Tool, PluginKind::Provider],
            scope: PluginScope::Host,
            isolation: Isolation::Worker,
            variables: vec!["A".into(), "B".into()],
        };
        assert_eq!(manifest, expected);
    }
}
