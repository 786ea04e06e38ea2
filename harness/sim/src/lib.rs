//! The simulated rig: router, controllers, kubelet cores and scenario on one event queue in virtual time.
