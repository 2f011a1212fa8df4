//! A C plugin's factory, instances and facets as the traits of the boundary.

use std::sync::Arc;

use abi_stable::sabi_trait::TD_Opaque;
use abi_stable::std_types::{ROption, RResult, RStr, RVec};
use async_ffi::{FfiFuture, FutureExt};
use jaato_plugin_api::abi::{
    Answer, ContextBox, EnvironmentAbi, EnvironmentBox, FactoryAbi, FactoryBox, GcAbi, GcBox,
    InstanceAbi, InstanceBox, Maybe, ProviderAbi, ProviderBox, ToolAbi, ToolBox,
};
use jaato_plugin_api::c1::{self, Buffer};
use jaato_types::{Manifest, PluginKind};

use super::call::{CInstanceHandle, to_frame_result, to_optional_result};
use super::entry::{CFunctionTable, parse_answer};
use super::{buffer, host};

/// Starts a plugin in this process. Runs its code on the calling thread.
pub(crate) fn create_factory(
    entry: CFunctionTable,
    manifest: &Manifest,
) -> RResult<FactoryBox, RVec<u8>> {
    let mut out = Buffer::empty();
    // SAFETY: the plugin's function; the host's table is never freed, and the buffer outlives the
    // call.
    let status = unsafe { (entry.start)(&host::HOST, &mut out) };
    // SAFETY: as the plugin filled it.
    let bytes = unsafe { buffer::take_buffer(&mut out) };
    match parse_answer(&manifest.name, "start", status, bytes) {
        Ok(_) => {
            let factory = CPluginFactory { entry, manifest: manifest.clone() };
            RResult::ROk(FactoryBox::from_value(factory, TD_Opaque))
        }
        Err(error) => RResult::RErr(error.into()),
    }
}

struct CPluginFactory {
    entry: CFunctionTable,
    manifest: Manifest,
}

struct CPluginInstance {
    made: Arc<CInstanceHandle>,
    kinds: Vec<PluginKind>,
}

/// Represents all facets, because a number selects the operation.
struct CPluginFacet(Arc<CInstanceHandle>);

impl FactoryAbi for CPluginFactory {
    fn create(
        &self,
        context: ContextBox,
        saved: ROption<RVec<u8>>,
    ) -> FfiFuture<RResult<InstanceBox, RVec<u8>>> {
        let made =
            CInstanceHandle::create_instance(self.entry, self.manifest.name.clone(), context);
        let kinds = self.manifest.kinds.clone();
        let opened = made.map(|made| {
            let saved = saved.into_option();
            let open = made.begin_instance_call(c1::OPEN, saved.as_deref().unwrap_or_default());
            (made, open)
        });
        let create = async move {
            let (made, open) = opened?;
            open.await?;
            Ok(InstanceBox::from_value(CPluginInstance { made, kinds }, TD_Opaque))
        };
        async move { create.await.map_err(|error: Vec<u8>| error.into()).into() }.into_ffi()
    }
}

impl CPluginInstance {
    fn facet(&self, kind: PluginKind) -> Option<CPluginFacet> {
        self.kinds.contains(&kind).then(|| CPluginFacet(Arc::clone(&self.made)))
    }
}

impl InstanceAbi for CPluginInstance {
    fn tools(&self) -> ROption<ToolBox> {
        self.facet(PluginKind::Tool).map(|facet| ToolBox::from_value(facet, TD_Opaque)).into()
    }

    fn gc(&self) -> ROption<GcBox> {
        self.facet(PluginKind::Gc).map(|facet| GcBox::from_value(facet, TD_Opaque)).into()
    }

    fn provider(&self) -> ROption<ProviderBox> {
        self.facet(PluginKind::Provider)
            .map(|facet| ProviderBox::from_value(facet, TD_Opaque))
            .into()
    }

    fn environment(&self) -> ROption<EnvironmentBox> {
        let facet = self.facet(PluginKind::Environment);
        facet.map(|facet| EnvironmentBox::from_value(facet, TD_Opaque)).into()
    }

    fn operation(&self, name: RStr<'_>, context: ContextBox, payload: RVec<u8>) -> Answer {
        let call = self.made.begin_call(c1::OPERATION, &name, context, &payload);
        async move { to_frame_result(call.await) }.into_ffi()
    }

    fn save(&self) -> Maybe {
        let call = self.made.begin_instance_call(c1::SAVE, &[]);
        async move { to_optional_result(call.await) }.into_ffi()
    }

    fn close(&self) -> FfiFuture<()> {
        let call = self.made.begin_instance_call(c1::CLOSE, &[]);
        // The instance ends even if `CLOSE` fails, so the error is ignored.
        async move { call.await.map_or((), drop) }.into_ffi()
    }
}

impl CPluginFacet {
    fn answer_call(&self, kind: u32, name: &str, context: ContextBox, payload: &[u8]) -> Answer {
        let call = self.0.begin_call(kind, name, context, payload);
        async move { to_frame_result(call.await) }.into_ffi()
    }
}

impl ToolAbi for CPluginFacet {
    fn call(&self, name: RStr<'_>, context: ContextBox, frame: RVec<u8>) -> Answer {
        Self::answer_call(self, c1::TOOL, &name, context, &frame)
    }
}

impl GcAbi for CPluginFacet {
    fn plan(&self, context: ContextBox, frame: RVec<u8>) -> Answer {
        Self::answer_call(self, c1::GC, "", context, &frame)
    }
}

impl ProviderAbi for CPluginFacet {
    fn complete(&self, context: ContextBox, frame: RVec<u8>) -> Answer {
        Self::answer_call(self, c1::COMPLETE, "", context, &frame)
    }

    fn models(&self, context: ContextBox, frame: RVec<u8>) -> Answer {
        Self::answer_call(self, c1::MODELS, "", context, &frame)
    }
}

impl EnvironmentAbi for CPluginFacet {
    fn call(&self, operation: RStr<'_>, context: ContextBox, frame: RVec<u8>) -> Answer {
        Self::answer_call(self, c1::ENVIRONMENT, &operation, context, &frame)
    }
}
