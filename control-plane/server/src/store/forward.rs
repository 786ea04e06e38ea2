//! What a store that stands around another says as that one says it.

/// The methods of [`super::Store`] that neither read nor write objects, handed on to `self.store`.
macro_rules! forward {
    () => {
        fn revision(&self) -> u64 {
            self.store.revision()
        }

        fn catch_up(&self) -> Answer<'_, u64> {
            self.store.catch_up()
        }

        fn turn(&self, topic: &'static str) -> Turn {
            self.store.turn(topic)
        }

        fn signal(&self) -> &Arc<Signal> {
            self.store.signal()
        }

        fn latency(&self) -> std::time::Duration {
            self.store.latency()
        }

        fn figures(&self) -> $crate::store::Figures {
            self.store.figures()
        }

        fn health(&self) -> Result<(), String> {
            self.store.health()
        }
    };
}

pub(super) use forward;
