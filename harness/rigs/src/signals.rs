//! Ctrl-C and the like: a run says first what had ended, and what trials made on a cluster that is not ours is taken away
//! before the process ends. A second signal ends it at once; then the next run, or `rigor clean`, finds what is left.

use crate::external::Inner;
use std::sync::{Mutex, Once, PoisonError, Weak};
use tokio::signal::unix::{SignalKind, signal};

static CLUSTERS: Mutex<Vec<Weak<Inner>>> = Mutex::new(Vec::new());
static REPORT: Mutex<Option<Box<dyn FnOnce() + Send>>> = Mutex::new(None);
static LISTENING: Once = Once::new();

/// From now on a signal takes away what trials on this cluster made.
pub(crate) fn protect(cluster: Weak<Inner>) {
    let mut clusters = CLUSTERS.lock().unwrap_or_else(PoisonError::into_inner);
    clusters.retain(|known| known.strong_count() > 0);
    clusters.push(cluster);
    begin();
}

/// What is done when a signal ends the process, before anything else; nothing any more with `None`. The process ends when it
/// returns.
pub fn before_the_end(report: Option<Box<dyn FnOnce() + Send>>) {
    *REPORT.lock().unwrap_or_else(PoisonError::into_inner) = report;
    begin();
}

fn begin() {
    LISTENING.call_once(|| {
        // Without the thread a signal ends the process as it always did.
        let _ = std::thread::Builder::new().name("signals".to_owned()).spawn(listen);
    });
}

fn listen() {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
    runtime.block_on(async {
        let kinds =
            [(SignalKind::interrupt(), 130), (SignalKind::terminate(), 143), (SignalKind::hangup(), 129)];
        let mut listeners = Vec::new();
        for (kind, code) in kinds {
            let Ok(listener) = signal(kind) else { return };
            listeners.push((listener, code));
        }
        let mut first = true;
        loop {
            let heard = listeners.iter_mut().map(|(listener, code)| {
                let code = *code;
                Box::pin(async move {
                    listener.recv().await;
                    code
                })
            });
            let (code, ..) = futures_util::future::select_all(heard).await;
            if !first {
                std::process::exit(code);
            }
            first = false;
            let _ = std::thread::Builder::new().name("cleanup".to_owned()).spawn(move || {
                let report = REPORT.lock().unwrap_or_else(PoisonError::into_inner).take();
                if let Some(report) = report {
                    report();
                }
                let clusters: Vec<_> = {
                    let clusters = CLUSTERS.lock().unwrap_or_else(PoisonError::into_inner);
                    clusters.iter().filter_map(Weak::upgrade).collect()
                };
                if !clusters.is_empty() {
                    eprintln!("rigor: interrupted; taking away what the trial made (once more to leave it)");
                }
                for cluster in clusters {
                    cluster.stop();
                }
                std::process::exit(code);
            });
        }
    });
}
