//! What these tests do to an etcd: they cut its power, and ask it for what it refuses.

use crate::etcd::Etcd;

impl Etcd {
    /// Starts one; none, with the reason printed, where no etcd is installed.
    pub fn start() -> Option<Self> {
        Self::open(Vec::new())
    }

    /// Ends it as a power cut would.
    pub fn kill(&mut self) {
        let mut child = self.child.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Starts it again on what it left.
    pub fn restart(&mut self) {
        assert!(self.launch(), "etcd does not start again");
    }

    /// What `etcdctl` complains of.
    pub fn refused(&self, arguments: &[&str]) -> String {
        let output = self.ask(arguments);
        assert!(!output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stdout));
        String::from_utf8(output.stderr).unwrap()
    }
}
