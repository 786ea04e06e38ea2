//! The configuration's bytes: a window of memory that QEMU fills with `-device loader`, as a real board has a
//! partition of its flash. (`-fw_cfg` would need no address, but QEMU 7.2 does not take it for this machine.)

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
pub enum WindowError {
    /// Nothing was put there.
    #[error("no configuration; start QEMU with -device loader,file=CONFIG.json,addr={0:#x},force-raw=on")]
    Absent(usize),
    /// No end within the window.
    #[error("the configuration is longer than {0} bytes")]
    TooLong(usize),
}

unsafe extern "C" {
    static _configuration_start: u8;
    static _configuration_end: u8;
}

/// The bytes in the window, up to the first zero.
///
/// # Errors
/// When the window is empty, or has no end.
pub fn bytes() -> Result<&'static [u8], WindowError> {
    let start = &raw const _configuration_start;
    let size = &raw const _configuration_end as usize - start as usize;
    // SAFETY: the linker script gives the window to nothing, it is memory of the machine, and nothing writes
    // there.
    let window = unsafe { core::slice::from_raw_parts(start, size) };
    match window.iter().position(|byte| *byte == 0) {
        Some(0) => Err(WindowError::Absent(start as usize)),
        Some(end) => Ok(&window[..end]),
        None => Err(WindowError::TooLong(size)),
    }
}
