//! The board model: what an ESP32-C3 offers, and how much heap is left of a configured budget.
//! Pure; the simulated rig and the host's process use the same functions.

use std::collections::BTreeSet;

use kubelet::{Capabilities, Config, Kubelet};

/// Free heap of a board that models it, in bytes: the budget less what pods hold.
pub fn free_heap(config: &Config, kubelet: &Kubelet) -> u32 {
    config.heap_bytes.saturating_sub(kubelet.reserved_bytes())
}

/// What an ESP32-C3 module offers: 22 pins, of which the flash (11 to 17) and the console (20, 21) are
/// the board's own; ADC1; the serial port that is not the console; no PSRAM.
pub fn esp32c3_capabilities() -> Capabilities {
    Capabilities {
        gpio: (0..=10).chain([18, 19]).collect::<BTreeSet<u16>>(),
        reserved_gpio: (11..=17).chain([20, 21]).collect(),
        i2c: 1,
        uart: 1,
        adc: 5,
        rmt_tx: 2,
        rmt_rx: 2,
        psram_bytes: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kubelet::{Boot, ResetReason};

    #[test]
    fn every_pin_of_the_chip_is_either_free_or_reserved() {
        let capabilities = esp32c3_capabilities();
        assert!(capabilities.gpio.is_disjoint(&capabilities.reserved_gpio));
        let all: BTreeSet<u16> = capabilities.gpio.union(&capabilities.reserved_gpio).copied().collect();
        assert_eq!(all, (0..=21).collect());
    }

    #[test]
    fn a_board_that_runs_nothing_has_its_whole_budget() {
        let json = br#"{"nodeName":"a","server":"http://127.0.0.1:1","board":{"name":"host","arch":"x86_64"},"heapBytes":4096}"#;
        let config = Config::from_json(json).unwrap();
        let kubelet = Kubelet::new(config.clone(), Boot { reason: ResetReason::PowerOn, seed: 1 });
        assert_eq!(free_heap(&config, &kubelet), 4096);
    }
}
