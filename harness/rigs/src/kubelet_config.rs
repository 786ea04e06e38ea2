//! The configuration a board boots with: where the control plane is, who it is, what it has.

use crate::world::BoardSpec;
use rigor_model::Constants;
use serde_json::{Value, json};
use std::time::Duration;

/// What a machine calls itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachineName {
    /// Board name, such as `qemu-virt`.
    pub name: String,
    /// Instruction set, such as `riscv32imc`.
    pub arch: String,
}

/// The kubelet's configuration for one board; `server` is the URL the board reaches the control plane at.
#[must_use]
pub fn kubelet_config(
    board: &BoardSpec,
    machine: &MachineName,
    server: &str,
    token: &str,
    constants: &Constants,
) -> Value {
    let profile = &board.profile;
    json!({
        "nodeName": board.name,
        "server": server,
        "token": token,
        "labels": profile.labels,
        "lease": {
            "durationSeconds": constants.lease_duration.as_secs(),
            "renewMillis": millis(constants.renew_interval),
        },
        "statusMillis": profile.status_millis,
        "board": {"name": machine.name, "arch": machine.arch},
        "capabilities": {
            "gpio": profile.gpio,
            "reservedGpio": profile.reserved_gpio,
            "i2c": profile.i2c,
            "uart": profile.uart,
            "adc": profile.adc,
            "rmtTx": profile.rmt_tx,
            "rmtRx": profile.rmt_rx,
            "psramBytes": profile.psram_bytes,
        },
        "heapBytes": profile.heap_bytes,
    })
}

fn millis(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_board_gets_its_name_its_lease_and_its_pins() {
        let mut board = BoardSpec::named("a");
        board.profile.labels.insert("zone".to_owned(), "north".to_owned());
        board.profile.i2c = 0;
        let machine = MachineName { name: "qemu-virt".to_owned(), arch: "riscv32imc".to_owned() };
        let config = kubelet_config(&board, &machine, "http://10.0.2.2:7000", "t0ken", &Constants::default());
        insta::assert_snapshot!(config, @r#"{"board":{"arch":"riscv32imc","name":"qemu-virt"},"capabilities":{"adc":5,"gpio":[0,1,2,3,4,5,6,7,8,9,10,18,19,20,21],"i2c":0,"psramBytes":0,"reservedGpio":[11,12,13,14,15,16,17],"rmtRx":2,"rmtTx":2,"uart":1},"heapBytes":204800,"labels":{"zone":"north"},"lease":{"durationSeconds":15,"renewMillis":5000},"nodeName":"a","server":"http://10.0.2.2:7000","statusMillis":10000,"token":"t0ken"}"#);
    }
}
