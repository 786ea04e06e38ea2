//! The kubelet as a process of the host, and the board model that simulated rigs share with it.
