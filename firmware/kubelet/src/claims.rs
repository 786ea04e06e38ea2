//! The capability firewall (KLET-03): which pins and buses the board has, who holds them, and whether a
//! pod may have what it asks for. A claim is granted whole or not at all.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::config::Config;
use crate::wire::ContainerSpec;

/// The kinds of numbered hardware.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Unit {
    Gpio,
    I2c,
    Uart,
    Adc,
    RmtTx,
    RmtRx,
}

impl Unit {
    /// All of them, in the order of the node's status.
    pub(crate) const ALL: [Unit; 6] =
        [Unit::Gpio, Unit::I2c, Unit::Uart, Unit::Adc, Unit::RmtTx, Unit::RmtRx];

    /// The name within `esp32.io/`.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Unit::Gpio => "gpio",
            Unit::I2c => "i2c",
            Unit::Uart => "uart",
            Unit::Adc => "adc",
            Unit::RmtTx => "rmt-tx",
            Unit::RmtRx => "rmt-rx",
        }
    }
}

/// Why a pod may not have what it asks for; the text goes into `status.message`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ClaimError {
    #[error("{0}: this board has no such pin or bus")]
    Unknown(String),
    #[error("{0}: the board reserves this pin for itself")]
    Reserved(String),
    #[error("{resource}: already claimed by pod {holder}")]
    Claimed { resource: String, holder: String },
    #[error("{resource}: requested {requested}, free {free}")]
    Exhausted { resource: String, requested: u64, free: u64 },
}

impl ClaimError {
    /// `status.reason` of the pod that is refused.
    pub(crate) fn reason(&self) -> String {
        match self {
            ClaimError::Unknown(_) => "UnknownPin".to_string(),
            ClaimError::Reserved(_) => "ReservedPin".to_string(),
            ClaimError::Claimed { .. } => "PinAlreadyClaimed".to_string(),
            ClaimError::Exhausted { resource, .. } => format!("OutOf{resource}"),
        }
    }
}

/// What is asked for by one resource name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ask {
    /// Any so many of a kind.
    Count(Unit),
    /// One certain pin or bus.
    Named(Unit, u16),
    /// Bytes of PSRAM.
    Psram,
    /// A hardware resource that no board has.
    Nonsense,
}

/// What a pod holds.
#[derive(Debug)]
struct Holding {
    uid: String,
    /// Namespace and name, for messages.
    pod: String,
    units: Vec<(Unit, u16)>,
    psram: u64,
}

/// The board's hardware and its holders.
#[derive(Debug)]
pub(crate) struct Ledger {
    units: BTreeMap<Unit, Vec<u16>>,
    reserved: Vec<u16>,
    psram: u64,
    holdings: Vec<Holding>,
}

impl Ledger {
    /// Everything unclaimed.
    pub(crate) fn new(config: &Config) -> Ledger {
        let capabilities = &config.capabilities;
        let mut units = BTreeMap::new();
        for unit in Unit::ALL {
            let numbers = match unit {
                Unit::Gpio => config.claimable_pins(),
                Unit::I2c => (0..capabilities.i2c).collect(),
                Unit::Uart => (0..capabilities.uart).collect(),
                Unit::Adc => (0..capabilities.adc).collect(),
                Unit::RmtTx => (0..capabilities.rmt_tx).collect(),
                Unit::RmtRx => (0..capabilities.rmt_rx).collect(),
            };
            units.insert(unit, numbers);
        }
        Ledger {
            units,
            reserved: capabilities.reserved_gpio.iter().copied().collect(),
            psram: u64::from(capabilities.psram_bytes),
            holdings: Vec::new(),
        }
    }

    /// How many of a kind pods may hold in all.
    pub(crate) fn capacity(&self, unit: Unit) -> u64 {
        self.units.get(&unit).map_or(0, |numbers| numbers.len() as u64)
    }

    /// How many of a kind nobody holds.
    pub(crate) fn free(&self, unit: Unit) -> u64 {
        let held = self.holdings.iter().flat_map(|h| &h.units).filter(|(kind, _)| *kind == unit).count();
        self.capacity(unit).saturating_sub(held as u64)
    }

    /// PSRAM in all, in bytes.
    pub(crate) fn psram_capacity(&self) -> u64 {
        self.psram
    }

    /// PSRAM nobody holds, in bytes.
    pub(crate) fn psram_free(&self) -> u64 {
        self.psram.saturating_sub(self.holdings.iter().map(|h| h.psram).sum())
    }

    /// Grants all the containers ask for, or nothing.
    ///
    /// # Errors
    /// [`ClaimError`] names the first resource that cannot be had.
    pub(crate) fn claim<'a>(
        &mut self,
        uid: &str,
        pod: &str,
        containers: impl Iterator<Item = &'a ContainerSpec>,
    ) -> Result<(), ClaimError> {
        let mut holding = Holding { uid: uid.to_string(), pod: pod.to_string(), units: Vec::new(), psram: 0 };
        let mut counts: BTreeMap<Unit, u64> = BTreeMap::new();
        for resources in containers.map(|container| &container.resources) {
            for name in resources.names() {
                let amount = resources.asked(name).unwrap_or(0);
                let Some(ask) = ask(name).filter(|_| amount > 0) else { continue };
                match ask {
                    Ask::Count(unit) => *counts.entry(unit).or_default() += amount,
                    Ask::Psram => holding.psram = holding.psram.saturating_add(amount),
                    Ask::Named(unit, number) => self.take_named(&mut holding, name, unit, number)?,
                    Ask::Nonsense => return Err(ClaimError::Unknown(name.to_string())),
                }
            }
        }
        if holding.psram > self.psram_free() {
            let (requested, free) = (holding.psram, self.psram_free());
            return Err(ClaimError::Exhausted { resource: "esp32.io/psram".to_string(), requested, free });
        }
        // Counted ones last and from the top, so that they take no number that is asked for by name.
        for (unit, requested) in counts {
            let numbers = self.units.get(&unit).map_or(&[][..], Vec::as_slice);
            let open: Vec<u16> =
                numbers.iter().rev().copied().filter(|n| self.holder(&holding, unit, *n).is_none()).collect();
            let free = open.len() as u64;
            if requested > free {
                let resource = format!("esp32.io/{}", unit.as_str());
                return Err(ClaimError::Exhausted { resource, requested, free });
            }
            holding.units.extend(open.into_iter().take(requested as usize).map(|number| (unit, number)));
        }
        if !holding.units.is_empty() || holding.psram > 0 {
            self.holdings.push(holding);
        }
        Ok(())
    }

    /// Gives back what the pod holds; nothing happens when it holds nothing.
    pub(crate) fn release(&mut self, uid: &str) {
        self.holdings.retain(|holding| holding.uid != uid);
        if self.holdings.is_empty() {
            self.holdings = Vec::new();
        }
    }

    fn take_named(
        &self,
        holding: &mut Holding,
        resource: &str,
        unit: Unit,
        number: u16,
    ) -> Result<(), ClaimError> {
        if unit == Unit::Gpio && self.reserved.contains(&number) {
            return Err(ClaimError::Reserved(resource.to_string()));
        }
        if !self.units.get(&unit).is_some_and(|numbers| numbers.contains(&number)) {
            return Err(ClaimError::Unknown(resource.to_string()));
        }
        if let Some(holder) = self.holder(holding, unit, number) {
            let holder = holder.to_string();
            return Err(ClaimError::Claimed { resource: resource.to_string(), holder });
        }
        holding.units.push((unit, number));
        Ok(())
    }

    /// Who holds a number, the claimant in the making included.
    fn holder<'a>(&'a self, claimant: &'a Holding, unit: Unit, number: u16) -> Option<&'a str> {
        self.holdings
            .iter()
            .chain([claimant])
            .find(|holding| holding.units.contains(&(unit, number)))
            .map(|holding| holding.pod.as_str())
    }
}

/// What a resource name asks of the board; `None` for resources that are no hardware (cpu, memory, …).
fn ask(resource: &str) -> Option<Ask> {
    if let Some(name) = resource.strip_prefix("hardware.kube32.io/") {
        return Some(named(name).unwrap_or(Ask::Nonsense));
    }
    let name = resource.strip_prefix("esp32.io/").or_else(|| resource.strip_prefix("esp.io/"))?;
    if name == "psram" {
        return Some(Ask::Psram);
    }
    let counted = Unit::ALL.into_iter().find(|unit| unit.as_str() == name);
    Some(counted.map_or_else(|| named(name).unwrap_or(Ask::Nonsense), Ask::Count))
}

/// `gpio-4`, `i2c-bus-0`, `uart-1`, …
fn named(name: &str) -> Option<Ask> {
    let (kind, number) = name.rsplit_once('-')?;
    let kind = kind.strip_suffix("-bus").unwrap_or(kind);
    let unit = Unit::ALL.into_iter().find(|unit| unit.as_str() == kind)?;
    if number.is_empty() || !number.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    // A number no board can have is as unknown as one this board lacks.
    Some(number.parse().map_or(Ask::Nonsense, |number| Ask::Named(unit, number)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quantity::Quantity;
    use crate::wire::Resources;
    use proptest::prelude::*;

    fn ledger() -> Ledger {
        let json = br#"{"nodeName":"a","server":"http://h:1","board":{"name":"b","arch":"c"},
          "capabilities":{"gpio":[0,1,2,3,11],"reservedGpio":[11,12],"i2c":1,"uart":2,"psramBytes":1000}}"#;
        Ledger::new(&Config::from_json(json).unwrap())
    }

    fn container(asks: &[(&str, u64)]) -> ContainerSpec {
        let limits = asks.iter().map(|(name, amount)| (name.to_string(), Quantity(*amount))).collect();
        ContainerSpec { resources: Resources { limits, ..Resources::default() }, ..ContainerSpec::default() }
    }

    fn claim(ledger: &mut Ledger, uid: &str, asks: &[(&str, u64)]) -> Result<(), ClaimError> {
        ledger.claim(uid, &format!("default/{uid}"), [container(asks)].iter())
    }

    #[test]
    fn claims_are_checked_one_by_one() {
        let check = |asks: &[(&str, u64)], expected: &str| {
            let mut ledger = ledger();
            claim(&mut ledger, "first", &[("esp32.io/gpio-3", 1)]).unwrap();
            let outcome = match claim(&mut ledger, "second", asks) {
                Ok(()) => "granted".to_string(),
                Err(error) => format!("{}: {error}", error.reason()),
            };
            assert_eq!(outcome, expected, "{asks:?}");
        };
        check(&[("esp32.io/gpio-2", 1)], "granted");
        check(&[("hardware.kube32.io/gpio-2", 1)], "granted");
        check(&[("esp32.io/gpio", 3)], "granted");
        check(&[("cpu", 9), ("memory", 1), ("nvidia.com/gpu", 1)], "granted");
        check(&[("esp32.io/gpio-3", 0)], "granted");
        check(&[("esp32.io/psram", 400), ("esp.io/psram", 600)], "granted");
        check(
            &[("esp32.io/gpio-3", 1)],
            "PinAlreadyClaimed: esp32.io/gpio-3: already claimed by pod default/first",
        );
        check(
            &[("esp32.io/gpio-12", 1)],
            "ReservedPin: esp32.io/gpio-12: the board reserves this pin for itself",
        );
        check(
            &[("hardware.kube32.io/gpio-11", 1)],
            "ReservedPin: hardware.kube32.io/gpio-11: the board reserves this pin for itself",
        );
        check(&[("esp32.io/gpio-40", 1)], "UnknownPin: esp32.io/gpio-40: this board has no such pin or bus");
        check(
            &[("esp32.io/gpio-99999999", 1)],
            "UnknownPin: esp32.io/gpio-99999999: this board has no such pin or bus",
        );
        check(
            &[("hardware.kube32.io/laser", 1)],
            "UnknownPin: hardware.kube32.io/laser: this board has no such pin or bus",
        );
        check(&[("esp32.io/gpio", 4)], "OutOfesp32.io/gpio: esp32.io/gpio: requested 4, free 3");
        check(
            &[("esp32.io/gpio", 3), ("esp32.io/gpio-0", 1)],
            "OutOfesp32.io/gpio: esp32.io/gpio: requested 3, free 2",
        );
        check(
            &[("esp32.io/i2c-bus-0", 1), ("esp32.io/i2c", 1)],
            "OutOfesp32.io/i2c: esp32.io/i2c: requested 1, free 0",
        );
        check(&[("esp32.io/uart-1", 1), ("esp32.io/uart", 1)], "granted");
        check(&[("esp32.io/psram", 1001)], "OutOfesp32.io/psram: esp32.io/psram: requested 1001, free 1000");
    }

    #[test]
    fn two_containers_of_one_pod_cannot_share_a_pin() {
        let containers = [container(&[("esp32.io/gpio-1", 1)]), container(&[("esp32.io/gpio-1", 1)])];
        let error = ledger().claim("u", "default/p", containers.iter()).unwrap_err();
        assert_eq!(error.reason(), "PinAlreadyClaimed");
    }

    proptest! {
        /// Whatever is claimed and released, nobody holds what another holds, and all comes back.
        #[test]
        fn nothing_is_held_twice(
            steps in proptest::collection::vec((0u8..6, proptest::option::of((0u16..14, 0u64..4))), 1..40)
        ) {
            let mut ledger = ledger();
            for (pod, step) in steps {
                let uid = format!("{pod}");
                ledger.release(&uid);
                if let Some((pin, count)) = step {
                    let pin = format!("esp32.io/gpio-{pin}");
                    let _granted = claim(&mut ledger, &uid, &[(&pin, 1), ("esp32.io/gpio", count)]);
                }
                let mut held: Vec<_> = ledger.holdings.iter().flat_map(|h| h.units.clone()).collect();
                prop_assert_eq!(ledger.free(Unit::Gpio), 4 - held.len() as u64);
                prop_assert!(held.iter().all(|(_, pin)| *pin < 4));
                held.sort_unstable();
                let before = held.len();
                held.dedup();
                prop_assert_eq!(held.len(), before);
            }
            for pod in 0..6 {
                ledger.release(&format!("{pod}"));
            }
            prop_assert_eq!(ledger.free(Unit::Gpio), 4);
        }
    }
}
