//! The fuzz target `router`; what it does with its bytes stands in the library. It says from time to time how requests were
//! answered: inputs that only ever got 404 would try nothing.
#![no_main]

use std::collections::BTreeMap;
use std::sync::Mutex;

use control_plane_fuzz::Told;

/// How often each method was answered with each code.
type Answers = BTreeMap<(&'static str, u16), u64>;

/// Inputs so far, and how they were answered.
static SEEN: Mutex<(u64, Answers)> = Mutex::new((0, BTreeMap::new()));

/// Methods under names of their own in the table; inputs make up others.
const METHODS: &[&str] = &["GET", "POST", "PUT", "PATCH", "DELETE"];

libfuzzer_sys::fuzz_target!(|data: &[u8]| count(control_plane_fuzz::router(data)));

fn count(told: Vec<Told>) {
    let Ok(mut seen) = SEEN.lock() else { return };
    let (inputs, answers) = &mut *seen;
    *inputs += 1;
    for (method, code) in told {
        let method = METHODS.iter().copied().find(|known| *known == method.as_str()).unwrap_or("other");
        *answers.entry((method, code)).or_default() += 1;
    }
    if inputs.is_power_of_two() {
        let answers: Vec<String> =
            answers.iter().map(|((method, code), times)| format!("{method} {code}: {times}")).collect();
        eprintln!("answers to {inputs} inputs: {}", answers.join(", "));
    }
}
