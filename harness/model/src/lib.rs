//! Scenarios, rigs and reports: raw YAML with spans, resolved to types that cannot be wrong.
