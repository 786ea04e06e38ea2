//! The board image for QEMU's riscv32 machine `virt`: a stand-in for an ESP32-C3 with the same instruction
//! set and memory, other peripherals. What the board does is the shell's and the kubelet's; here are start-up
//! and drivers. The only crate with `unsafe`, each with its reason.
#![no_std]
#![no_main]

mod board;
mod card;
mod clint;
mod configuration;
mod console;
mod device_tree;
mod heap;
mod mmio;
mod plic;
mod power;
mod slot;
mod start;

use power::fatal;
use shell::Shell;

/// Brings the machine up and hands it to the shell. Every unfitness of machine or configuration ends here.
extern "C" fn main(_hart: usize, tree: usize) -> ! {
    let origin = clint::ticks();
    start::check_processor();
    start::guard_stack();
    heap::start();
    let text = configuration::bytes().unwrap_or_else(|error| fatal(format_args!("{error}")));
    let config = kubelet::Config::from_json(text).unwrap_or_else(|error| fatal(format_args!("{error}")));
    let Some(slot) = slot::CardSlot::find() else {
        fatal(format_args!("no network card; start QEMU with -device virtio-net-device,netdev=…"))
    };
    // SAFETY: `main` runs once.
    let card = unsafe { card::Card::start(slot) }.unwrap_or_else(|error| fatal(format_args!("{error}")));
    let hardware_address = card.hardware_address();
    // SAFETY: `tree` is `a1` as the machine left it.
    let board = unsafe { board::Virt::new(origin, slot, tree) };
    match Shell::new(board, card, hardware_address, config, kubelet::ResetReason::PowerOn) {
        Ok(shell) => shell.run(),
        Err(error) => fatal(format_args!("{error}")),
    }
}
