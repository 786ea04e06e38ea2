//! The kubelet of a board: a no_std state machine, bytes in and bytes out.
