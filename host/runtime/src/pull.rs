//! Finds where a model's weights come from: a file that a plugin declares and the host downloads,
//! or a provider's server that downloads models itself.

use jaato_instances::{CallSite, DeltaCallback, FacetRequest, invalid_answer_error};
use jaato_registry::PluginStatus;
use jaato_session::Cancel;
use jaato_types::{Asset, Error, ErrorKind, Frame, ModelId, PullModel, PullModelAnswer};

use crate::runtime::Runtime;

/// The source of a model's weights.
#[derive(Debug, Clone)]
pub enum WeightsSource {
    /// A file that the host downloads.
    Asset(Asset),
    /// The model's provider, which may be able to download models.
    Provider(ModelId),
}

impl Runtime {
    /// Finds the source of a model's weights, or `None` if there is none. A model that names a
    /// provider comes only from that provider, because two providers may have models of the same
    /// name.
    pub fn weights_source(&self, wanted: &ModelId) -> Option<WeightsSource> {
        let Some((provider, name)) = wanted.split() else {
            return declared_weights(self.declared_assets(), wanted.as_str());
        };
        let registry = self.registry();
        let entry = match self.host().provider_plugin(&registry, provider, None) {
            Ok((entry, _)) if entry.status == PluginStatus::Active => entry,
            _ => return declared_weights(self.declared_assets(), name),
        };
        let own = entry.description().map(|it| it.assets.clone()).unwrap_or_default();
        declared_weights(own, name).or_else(|| Some(WeightsSource::Provider(wanted.clone())))
    }

    /// Asks a model's provider to download it, and waits until it is done.
    ///
    /// # Errors
    /// `unknown_operation` if the provider downloads nothing, the provider's error, or `cancelled`.
    pub async fn pull_model(
        &self,
        model: &ModelId,
        tell: &DeltaCallback,
        cancel: &Cancel,
    ) -> Result<(), Error> {
        let Some((provider, name)) = model.split() else {
            let text = format!("`{model}` does not name a provider");
            return Err(Error::new(ErrorKind::UnknownOperation, text));
        };
        let registry = self.registry();
        let (entry, configured) = self.host().provider_plugin(&registry, provider, Some(model))?;
        let plugin = entry.candidate.manifest.name.as_str();
        let site = CallSite { provider: configured, ..CallSite::without_session() };
        let request = Frame::write(&PullModel::new(name))
            .map_err(|error| Error::new(ErrorKind::InvalidArguments, error.to_string()))?;
        let plugins = &self.host().plugins;
        let asked =
            plugins.call_plugin(plugin, FacetRequest::PullModel, site, request, tell, cancel);
        Frame::read::<PullModelAnswer>(&asked.await?)
            .map_err(invalid_answer_error(plugin))
            .map(drop)
    }
}

fn declared_weights(assets: Vec<Asset>, name: &str) -> Option<WeightsSource> {
    assets.into_iter().find(|asset| asset.id == name).map(WeightsSource::Asset)
}
