//! Falsified copies of the recordings: facts moved, removed, doubled, changed or added.

macro_rules! done {
    ($([$($to:literal),*] $how:expr;)*) => { &[$($crate::forged::Done { to: &[$($to),*], how: $how }),*] };
}

mod loss;
mod work;

/// Every falsification, at least one for every observed scenario.
pub(crate) fn all() -> impl Iterator<Item = &'static Forgery> {
    loss::FORGERIES.iter().chain(work::FORGERIES)
}

/// A falsification, and what it must turn red.
#[derive(Debug)]
pub(crate) struct Forgery {
    /// What is told wrongly.
    pub what: &'static str,
    /// The recording.
    pub recording: &'static str,
    /// The scenario, with its case.
    pub scenario: &'static str,
    /// Part of the sentence that fails first.
    pub red: &'static str,
    /// What is done to which facts, one after another.
    pub done: &'static [Done],
}

/// Something done to every line that holds all of these texts.
#[derive(Debug)]
pub(crate) struct Done {
    /// Texts in the line; with none of them something is added.
    pub to: &'static [&'static str],
    /// What is done.
    pub how: How,
}

/// How a line is falsified.
#[derive(Debug)]
pub(crate) enum How {
    /// It comes so many milliseconds later.
    Moved(i64),
    /// It is not there.
    Removed,
    /// It comes once more, so many milliseconds later and with a text changed.
    Doubled(i64, &'static str, &'static str),
    /// A text in it is another.
    Changed(&'static str, &'static str),
    /// A fact that never was, at so many milliseconds: what its line says after the time.
    Added(i64, &'static str),
}

/// A falsification, in the order in which tables tell it.
const fn forgery(
    scenario: &'static str,
    red: &'static str,
    recording: &'static str,
    what: &'static str,
    done: &'static [Done],
) -> Forgery {
    Forgery { what, recording, scenario, red, done }
}

impl Forgery {
    /// The falsified recording, or what is not in the recording as it is.
    pub(crate) fn lines(&self) -> Result<Vec<String>, String> {
        let mut facts: Vec<(i64, String)> =
            super::lines(self.recording).iter().map(|line| (number(line, "at"), rest(line))).collect();
        for done in self.done {
            let mut touched = 0;
            let mut forged = Vec::new();
            for (at, line) in facts {
                if done.to.is_empty() || !done.to.iter().all(|text| line.contains(text)) {
                    forged.push((at, line));
                    continue;
                }
                touched += 1;
                match done.how {
                    How::Moved(by) => forged.push((at + by * 1000, moved(&line, by * 1000))),
                    How::Removed => {}
                    How::Doubled(by, from, to) => {
                        if !line.contains(from) {
                            return Err(format!("no {from} in {line}"));
                        }
                        forged.push((at + by * 1000, moved(&line, by * 1000).replace(from, to)));
                        forged.push((at, line));
                    }
                    How::Changed(from, to) => {
                        if !line.contains(from) {
                            return Err(format!("no {from} in {line}"));
                        }
                        forged.push((at, line.replace(from, to)));
                    }
                    How::Added(..) => return Err("what is added is no change of a line".to_owned()),
                }
            }
            if let (How::Added(at, line), true) = (&done.how, done.to.is_empty()) {
                touched += 1;
                forged.push((at * 1000, (*line).to_owned()));
            }
            if touched == 0 {
                return Err(format!("nothing like {:?}", done.to));
            }
            // Facts of one instant keep their order; the recording's end stays last.
            forged.sort_by_key(|(at, _)| *at);
            facts = forged;
        }
        let numbered = facts.iter().enumerate();
        Ok(numbered.map(|(seq, (at, line))| format!("{{\"seq\":{seq},\"at\":{at},{line}")).collect())
    }
}

/// What a line says after its number and time.
fn rest(line: &str) -> String {
    let at = number(line, "at");
    let (_, rest) = line.split_once(&format!("\"at\":{at},")).unwrap();
    rest.to_owned()
}

/// The first number of that key.
fn number(line: &str, key: &str) -> i64 {
    let (_, rest) = line.split_once(&format!("\"{key}\":")).unwrap();
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap()
}

/// The same later: a request was sent later, too.
fn moved(line: &str, micros: i64) -> String {
    if !line.starts_with("\"kind\":\"Request\"") {
        return line.to_owned();
    }
    let sent = number(line, "sent");
    line.replace(&format!("\"sent\":{sent},"), &format!("\"sent\":{},", sent + micros))
}
