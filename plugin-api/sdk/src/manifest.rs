//! Builds the manifest at compile time, so that the host can read it without running the plugin.

/// The facts that the export macro passes.
pub struct Facts {
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
pub const fn length(facts: &Facts) -> usize {
    let mut writer = ManifestWriter { bytes: &mut [], length: 0 };
    writer.manifest(facts);
    writer.length
}

/// Returns the manifest. `N` is its [`length`].
pub const fn manifest_bytes<const N: usize>(facts: &Facts) -> [u8; N] {
    let mut bytes = [0; N];
    let mut writer = ManifestWriter { bytes: &mut bytes, length: 0 };
    writer.manifest(facts);
    bytes
}

/// Writes as many bytes as fit, and counts all of them.
struct ManifestWriter<'a> {
    bytes: &'a mut [u8],
    length: usize,
}

impl ManifestWriter<'_> {
    const fn manifest(&mut self, facts: &Facts) {
        self.text("{\"v\":1,\"name\":\"");
        self.text(facts.name);
        self.text("\",\"version\":\"");
        self.text(facts.version);
        self.text("\",\"api\":\"");
        self.text(jaato_plugin_api::API_VERSION);
        self.text("\",\"kinds\":");
        self.list(facts.kinds);
        self.text(",\"scope\":\"");
        self.text(facts.scope);
        self.text("\",\"isolation\":\"");
        self.text(facts.isolation);
        self.text("\",\"variables\":");
        self.list(facts.variables);
        self.text("}");
    }

    const fn list(&mut self, items: &[&str]) {
        self.text("[");
        let mut index = 0;
        while index < items.len() {
            self.text(if index == 0 { "\"" } else { ",\"" });
            self.text(items[index]);
            self.text("\"");
            index += 1;
        }
        self.text("]");
    }

    /// No text needs escaping: crate names, versions, and fixed words.
    const fn text(&mut self, text: &str) {
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

    const FACTS: Facts = Facts {
        name: "provider-moon",
        version: "0.2.0",
        kinds: &["tool", "provider"],
        scope: "host",
        isolation: "worker",
        variables: &["A", "B"],
    };

    #[test]
    fn host_reads_the_manifest_that_the_macro_wrote() {
        const BYTES: [u8; length(&FACTS)] = manifest_bytes(&FACTS);
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
