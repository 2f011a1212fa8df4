//! The state that a child session shares with its opener.

use std::sync::Arc;

use jaato_config::{Caps, Dollars};
use jaato_session::{
    Agent, InitialObjects, SessionSetup, SessionUsage, SharedBudget, SharedSessionState,
};
use jaato_types::SessionId;
use jaato_types::child::{ChildOpen, ObjectSharing};

/// A session that another one opens.
pub struct ChildSessionOrigin {
    /// The session that opens the child.
    pub opener: SessionId,
    /// The requested properties.
    pub asked: ChildOpen,
    /// The state that the child shares with its opener.
    pub lent: SharedSessionState,
}

impl ChildSessionOrigin {
    /// Applies what the child shares with its opener to a setup.
    pub fn set_up(&self, setup: &mut SessionSetup) {
        let Self { asked, lent, .. } = self;
        setup.rules = Arc::clone(&lent.rules);
        setup.patience_ms = lent.patience_ms;
        setup.spent = lent.spent.clone();
        setup.caps = lent.caps.clone();
        let own = Caps {
            cost: asked.cost_max.and_then(Dollars::new),
            tokens: asked.tokens_max,
            ..Caps::default()
        };
        setup.budget = lent.budget.clone();
        if own != Caps::default() {
            let (name, used) = (("agent", "max_"), SessionUsage::default());
            setup.budget = Some(SharedBudget::new(name, own, used, setup.budget.take()));
        }
        setup.tells_messages = lent.tells_messages;
        let (name, opener, hold) = (asked.name.clone(), self.opener.clone(), lent.hold.clone());
        setup.agent = Some(Agent { name, opener, shares_rules: true, hold });
        setup.fallbacks.clear();
        if let Some(steps_max) = asked.steps_max {
            setup.limits.steps_max = setup.limits.steps_max.min(steps_max.max(1));
        }
        if let Some(gc) = &asked.gc {
            setup.gc.plugin.clone_from(gc);
        }
        setup.objects = match asked.objects {
            ObjectSharing::None => InitialObjects::default(),
            ObjectSharing::Copy => lent.objects.copy_objects(),
            ObjectSharing::Share => InitialObjects::Shared(lent.objects.clone()),
        };
    }
}
