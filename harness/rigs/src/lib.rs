//! Rigs of real processes and emulators: power, links, consoles, and the recorder of what happens.
