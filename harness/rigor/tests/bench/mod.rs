//! A working directory with rigs and a catalogue, and the program run in it.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The directory; it goes with this.
pub struct Bench(tempfile::TempDir);

impl Bench {
    /// With the rigs that ship and a catalogue of these requirements, as they stand in its one area.
    pub fn new(requirements: &str) -> Self {
        let bench = Self(tempfile::tempdir().unwrap());
        bench.write("suites/requirements.yaml", &format!("version: 2\nareas:\n  node:\n{requirements}"));
        let rigs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../rigs");
        for name in ["sim", "host", "qemu-short"] {
            let text = std::fs::read_to_string(rigs.join(format!("{name}.yaml"))).unwrap();
            bench.write(&format!("rigs/{name}.yaml"), &text);
        }
        bench
    }

    /// Writes a file, with the folders above it.
    pub fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// A place in the directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The program, which finds nothing but what is in the directory.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rigor"));
        command.args(arguments).current_dir(self.0.path());
        for variable in ["RIGOR_KEEP", "RIGOR_CONTROL_PLANE", "RIGOR_FIRMWARE", "RIGOR_KUBELET_HOST"] {
            command.env_remove(variable);
        }
        command
    }

    /// Exit code, standard output, standard error.
    pub fn rigor(&self, arguments: &[&str]) -> (i32, String, String) {
        told(&mut self.command(arguments))
    }
}

/// Runs a command to its end: exit code, standard output, standard error.
pub fn told(command: &mut Command) -> (i32, String, String) {
    let output = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}
