//! The turn loop: history and its invariants, prompt, budget, cancellation, events.
