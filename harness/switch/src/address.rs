//! Who has which address: one network a trial, laid out as QEMU's own user network is.

use smoltcp::wire::{EthernetAddress, Ipv4Address, Ipv4Cidr};

/// The gateway's address, where boards reach the control plane.
pub const GATEWAY: Ipv4Address = Ipv4Address::new(10, 0, 2, 2);

/// The gateway's hardware address.
pub const GATEWAY_MAC: EthernetAddress = EthernetAddress([0x52, 0x54, 0x00, 0x72, 0x67, 0xff]);

/// Most boards of a network; the addresses above theirs are for hardware that is no board's.
pub const MOST_BOARDS: usize = 200;

/// Bits of an address that name the network.
const PREFIX: u8 = 24;

/// Last byte of the first board's address.
const FIRST_BOARD: u8 = 15;

/// The gateway's address with its network.
#[must_use]
pub fn gateway() -> Ipv4Cidr {
    Ipv4Cidr::new(GATEWAY, PREFIX)
}

/// Hardware address of a board by its place among the trial's boards.
///
/// # Panics
/// The place is not below [`MOST_BOARDS`].
#[must_use]
pub fn board_mac(index: usize) -> EthernetAddress {
    EthernetAddress([0x52, 0x54, 0x00, 0x72, 0x67, place(index)])
}

/// Address of a board by its place among the trial's boards.
///
/// # Panics
/// The place is not below [`MOST_BOARDS`].
#[must_use]
pub fn board(index: usize) -> Ipv4Address {
    host(FIRST_BOARD + place(index))
}

/// Addresses for hardware that is no board's.
pub(crate) fn strangers() -> impl Iterator<Item = Ipv4Address> {
    (FIRST_BOARD + place(MOST_BOARDS - 1) + 1..=254).map(host)
}

fn host(last: u8) -> Ipv4Address {
    let [a, b, c, _] = GATEWAY.octets();
    Ipv4Address::new(a, b, c, last)
}

fn place(index: usize) -> u8 {
    u8::try_from(index).ok().filter(|_| index < MOST_BOARDS).expect("a board's place is below MOST_BOARDS")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_two_have_the_same_address() {
        let macs: BTreeSet<_> = (0..MOST_BOARDS).map(board_mac).chain([GATEWAY_MAC]).collect();
        assert_eq!(macs.len(), MOST_BOARDS + 1);
        let addresses: BTreeSet<_> =
            (0..MOST_BOARDS).map(board).chain(strangers()).chain([GATEWAY]).collect();
        assert_eq!(addresses.len(), MOST_BOARDS + strangers().count() + 1);
        assert!(strangers().count() >= 32);
        assert!(addresses.iter().all(|address| gateway().contains_addr(address)));
        let broadcast = gateway().broadcast();
        assert!(addresses.iter().all(|address| Some(*address) != broadcast));
    }
}
