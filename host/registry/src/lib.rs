//! Names to tools, gcs and providers: order, conflicts, enabling. Pure data.
