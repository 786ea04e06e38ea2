//! The Kubernetes wire dialect as pure functions: kinds, status errors, patches, tables, discovery, defaults, validation.
