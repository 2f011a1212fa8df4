//! Tracks which edition of a plugin each session uses.
//!
//! A session switches to changes when a turn begins. If a new edition offers the model the same as
//! before, the next call already uses it. A plugin whose file was removed stays in the sessions
//! that have it.

use std::collections::HashMap;
use std::sync::Arc;

use jaato_registry::ToolEntry;
use jaato_types::{PluginName, SessionId};

use super::news::{PluginNews, SeenNews, WARN};
use super::set::DynamicTools;
use super::{Catalog, Plugins};

/// One session's view of the plugins.
pub struct SessionView {
    /// The catalog for all plugins that are not in `others`.
    base: Arc<Catalog>,
    others: HashMap<PluginName, Arc<Catalog>>,
    /// Editions that could not be started, and why.
    refused: HashMap<PluginName, (u64, String)>,
    told: SeenNews,
    /// The tools that plugins have set for it, as of the current step.
    set: Vec<Arc<DynamicTools>>,
}

impl SessionView {
    /// Switches to another catalog with the same content.
    pub fn switch_base(&mut self, base: &Arc<Catalog>) {
        self.base = Arc::clone(base);
    }

    fn catalog_of(&self, plugin: &str) -> &Arc<Catalog> {
        self.others.get(plugin).unwrap_or(&self.base)
    }

    /// Returns true if the session has found that this edition cannot be started.
    fn refuses_edition(&self, plugin: &str, number: u64) -> bool {
        self.refused.get(plugin).is_some_and(|(refused, _)| *refused == number)
    }
}

/// A session's offer: all plugins as in the base catalog, with some exceptions.
pub struct SessionOffer {
    base: Arc<Catalog>,
    others: HashMap<PluginName, Arc<Catalog>>,
    set: Vec<Arc<DynamicTools>>,
}

impl SessionOffer {
    /// Lists the tools, starting with those of the base catalog by name. Each name appears once.
    pub fn entries(&self) -> impl Iterator<Item = ToolEntry<'_>> {
        let base = self.base.registry.tools();
        let base = base.filter(|tool| !self.others.contains_key(tool.plugin));
        let others = self.others.iter().flat_map(|(plugin, catalog)| {
            catalog.registry.tools().filter(move |tool| tool.plugin == plugin)
        });
        let is_free = |tool: &ToolEntry<'_>| {
            let holder = self.base.registry.tool(tool.spec.name.as_str());
            holder.is_none_or(|holder| self.others.contains_key(holder.plugin))
        };
        base.chain(others.filter(is_free)).chain(self.set.iter().flat_map(|set| set.entries()))
    }

    /// Returns a tool by name.
    pub fn tool(&self, name: &str) -> Option<ToolEntry<'_>> {
        let tool = self.base.registry.tool(name);
        let is_first = |tool: &ToolEntry<'_>| !self.others.contains_key(tool.plugin);
        tool.filter(is_first).or_else(|| self.entries().find(|it| it.spec.name.as_str() == name))
    }
}

impl Plugins {
    /// Creates a session's view from the current catalog.
    pub fn open_view(&self, session: &SessionId) {
        let mut state = self.lock_state();
        let view = SessionView {
            base: Arc::clone(&state.current),
            others: HashMap::new(),
            refused: HashMap::new(),
            told: state.journal.current_position(),
            set: Vec::new(),
        };
        state.views.insert(session.clone(), view);
    }

    /// Removes a session's view.
    pub fn close_view(&self, session: &SessionId) {
        let mut state = self.lock_state();
        state.views.remove(session);
        state.set.retain(|set| !set.is_only_for(session));
        state.notices.retain(|(_, owner), _| owner.as_ref() != Some(session));
    }

    /// Returns the catalog for a session's call of a plugin.
    pub fn catalog_for_call(&self, session: &SessionId, plugin: &str) -> Arc<Catalog> {
        let mut state = self.lock_state();
        let newest = Arc::clone(&state.current);
        let Some(view) = state.views.get_mut(session) else { return newest };
        let mine = Arc::clone(view.catalog_of(plugin));
        let Some(entry) = newest.registry.plugin(plugin) else { return mine };
        let (number, has) = (newest.edition(plugin).number, mine.edition(plugin).number);
        if number == has || view.refuses_edition(plugin, number) {
            return mine;
        }
        let is_known = mine.registry.plugin(plugin).is_some();
        if is_known && !newest.has_same_offer(&mine, plugin) {
            return mine;
        }
        view.others.insert(entry.candidate.manifest.name.clone(), Arc::clone(&newest));
        newest
    }

    /// Returns a session's offer.
    pub fn session_offer(&self, session: &SessionId) -> SessionOffer {
        let state = self.lock_state();
        match state.views.get(session) {
            Some(SessionView { base, others, set, .. }) => {
                SessionOffer { base: Arc::clone(base), others: others.clone(), set: set.clone() }
            }
            None => SessionOffer {
                base: Arc::clone(&state.current),
                others: HashMap::new(),
                set: Vec::new(),
            },
        }
    }

    /// Switches to changes at the start of a turn. `is_live` returns whether the session has an
    /// instance of a plugin. Returns true if the offer may have changed.
    pub fn begin_turn(&self, session: &SessionId, is_live: impl Fn(&PluginName) -> bool) -> bool {
        let mut state = self.lock_state();
        let newest = Arc::clone(&state.current);
        let set = state.set.iter().filter(|set| set.is_visible_to(session));
        let set: Vec<Arc<DynamicTools>> = set.cloned().collect();
        let Some(view) = state.views.get_mut(session) else { return false };
        let is_same = |(a, b): (&Arc<DynamicTools>, &Arc<DynamicTools>)| Arc::ptr_eq(a, b);
        let has_set = view.set.len() != set.len() || !view.set.iter().zip(&set).all(is_same);
        view.set = set;
        if Arc::ptr_eq(&view.base, &newest) && view.others.is_empty() {
            return has_set;
        }
        let known: Vec<PluginName> =
            view.base.plugin_names().chain(view.others.keys()).cloned().collect();
        let mut others = HashMap::new();
        for name in known {
            let mine = view.catalog_of(name.as_str());
            let stays = match newest.registry.plugin(name.as_str()) {
                Some(_) => {
                    view.refuses_edition(name.as_str(), newest.edition(name.as_str()).number)
                }
                None => mine.is_in_use(name.as_str()) && is_live(&name),
            };
            if stays {
                others.insert(name, Arc::clone(mine));
            }
        }
        (view.base, view.others) = (newest, others);
        true
    }

    /// Takes the tools that plugins have set since the turn began. Tools that changed or were
    /// removed stay until the next turn. Returns true if there are new ones.
    pub fn begin_step(&self, session: &SessionId) -> bool {
        let mut state = self.lock_state();
        let newest = state.set.iter().filter(|set| set.is_visible_to(session));
        let newest: Vec<Arc<DynamicTools>> = newest.cloned().collect();
        let Some(view) = state.views.get_mut(session) else { return false };
        let mut has_new = false;
        for newer in newest {
            let known = view.set.iter_mut().find(|set| set.has_same_owner(&newer));
            let Some(known) = known else {
                view.set.push(newer);
                has_new = true;
                continue;
            };
            if Arc::ptr_eq(known, &newer) {
                continue;
            }
            if let Some(joined) = known.with_new_tools(&newer) {
                *known = Arc::new(joined);
                has_new = true;
            }
        }
        has_new
    }

    /// Records that a session could not start an edition of a plugin and stays with another one.
    pub fn record_refusal(
        &self,
        session: &SessionId,
        plugin: &PluginName,
        refused: &Catalog,
        stays: &Arc<Catalog>,
        why: &str,
    ) {
        let mut state = self.lock_state();
        let Some(view) = state.views.get_mut(session) else { return };
        let number = refused.edition(plugin.as_str()).number;
        view.others.insert(plugin.clone(), Arc::clone(stays));
        view.refused.insert(plugin.clone(), (number, why.to_owned()));
        let text = format!(
            "plugin `{plugin}` stays as it was because its new version does not start: {why}"
        );
        state.add_news([PluginNews::new(Some(plugin), WARN, text)], &self.log);
    }

    /// Returns why a content other than a plugin's current file is in use, in general or in a
    /// session.
    pub fn kept_reason(&self, plugin: &str) -> Option<String> {
        let state = self.lock_state();
        if let Some(why) = state.current.kept_reason(plugin) {
            return Some(why.to_owned());
        }
        let number = state.current.edition(plugin).number;
        let refused = state.views.values().find(|view| view.refuses_edition(plugin, number));
        refused.and_then(|view| view.refused.get(plugin)).map(|(_, why)| why.clone())
    }

    /// Returns the news that a session has not seen: all of it, or only about one plugin.
    pub fn unseen_news(&self, session: &SessionId, about: Option<&str>) -> Vec<String> {
        let mut state = self.lock_state();
        let state = &mut *state;
        let Some(view) = state.views.get_mut(session) else { return Vec::new() };
        state.journal.unseen_lines(&mut view.told, about)
    }
}
