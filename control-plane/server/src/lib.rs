//! The reference control plane: a small Kubernetes-compatible API server with its controllers.
