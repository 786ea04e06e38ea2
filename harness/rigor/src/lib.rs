//! The harness: runs scenarios on rigs, judges them, writes reports.
