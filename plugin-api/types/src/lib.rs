//! Serde types of what crosses the boundary as JSON.
