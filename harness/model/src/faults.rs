//! Faults that a rig injects: how bad, which, and a list of them that can be written down and replayed.
//!
//! A fault is named by its site and by the number of the opportunity at which it struck there, so that the same list
//! does the same to the same trial, and a list with fewer of them is still a list. Pure data: nothing here draws or acts.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};

/// How bad injected faults are. The order is that of badness.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FaultLevel {
    /// There are none.
    #[default]
    None,
    /// What a healthy network does: delays that the slack covers, duplicates, reordering, clocks as crystals keep them.
    /// Every scenario passes as it stands.
    Mild,
    /// Also loss, connections cut in the middle, a server that is killed, boards that lose power. Bounds hold on their
    /// early side, and everything converges once faults stop.
    Harsh,
}

impl FaultLevel {
    /// Every level.
    pub const ALL: [FaultLevel; 3] = [FaultLevel::None, FaultLevel::Mild, FaultLevel::Harsh];

    /// The word for it on the command line and in histories.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            FaultLevel::None => "none",
            FaultLevel::Mild => "mild",
            FaultLevel::Harsh => "harsh",
        }
    }

    /// The level of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<FaultLevel> {
        FaultLevel::ALL.into_iter().find(|level| level.name() == name)
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == FaultLevel::None
    }
}

impl fmt::Display for FaultLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

macro_rules! names {
    ($($variant:ident $word:literal $one:literal $many:literal $about:literal;)*) => {
        /// The kinds of faults by name, without what is drawn for each. The order is that of the documents.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum FaultName {
            $(#[doc = $about] $variant,)*
        }

        impl FaultName {
            /// Every kind.
            pub const ALL: [FaultName; FAULT_NAMES.len()] = [$(FaultName::$variant,)*];

            /// The word for it in scenarios, schedules and histories.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(FaultName::$variant => $word,)*
                }
            }

            /// What so many of the kind are called in sentences.
            fn counted(self, count: u64) -> &'static str {
                match self {
                    $(FaultName::$variant => if count == 1 { $one } else { $many },)*
                }
            }
        }

        impl FaultKind {
            /// Which kind it is.
            #[must_use]
            pub fn named(&self) -> FaultName {
                match self {
                    $(FaultKind::$variant { .. } => FaultName::$variant,)*
                }
            }
        }

        /// The words of [`FaultName`], for shapes.
        pub(crate) const FAULT_NAMES: &[&str] = &[$($word,)*];
    };
}

names! {
    Delay "delay" "delay" "delays" "A message comes later.";
    Reorder "reorder" "reordering" "reorderings" "A message is overtaken by one of another connection.";
    Duplicate "duplicate" "duplicate" "duplicates" "The server sees a request twice.";
    Lose "lose" "loss" "losses" "A message and all that follows it on its connection are lost.";
    Cut "cut" "cut connection" "cut connections" "A connection ends in the middle of a message.";
    Clock "clock" "clock" "clocks" "A board's clocks are off.";
    PowerCut "power-cut" "power cut" "power cuts" "A board loses its power.";
    Kill "kill" "server kill" "server kills" "The server's process is killed.";
}

/// Kinds of faults that do not strike in a scenario, because what it says does not hold with them. They are drawn as
/// ever, so that everything else that is drawn stays the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Withheld {
    /// Which; one at least.
    pub kinds: BTreeSet<FaultName>,
    /// Why, in one sentence.
    pub because: String,
}

/// What a fault does. Lengths are microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum FaultKind {
    /// A message, and what follows it on its connection, comes later.
    Delay {
        /// By so much.
        micros: u64,
    },
    /// A message is held until one of another connection has overtaken it.
    Reorder {
        /// No longer than this.
        at_most: u64,
    },
    /// The server sees a request twice, each time on a connection of its own, before its client sees one answer.
    Duplicate {
        /// The second one comes so long after the first.
        after: u64,
        /// The client gets the answer to the second, not to the first.
        second: bool,
    },
    /// A message and all that follows it on its connection in its direction are lost: whoever waits for it waits until
    /// its own limit. Lasts until the connection is given up.
    Lose {},
    /// The connection ends in the middle of a message.
    Cut {
        /// So many bytes of the message still come through.
        keep: u64,
        /// Then there is silence, until the connection is given up; otherwise both ends see a reset.
        silent: bool,
    },
    /// The board's clocks are off, for the whole trial.
    Clock {
        /// The date that the board is told minus the server's.
        offset: i64,
        /// How fast its monotonic clock is: millionths more than it should count.
        ppm: i32,
    },
    /// The board loses its power.
    PowerCut {
        /// It has none for so long, unless the scenario wants otherwise.
        dark: u64,
    },
    /// The server's process is killed.
    Kill {
        /// It is started again so much later, unless the scenario wants otherwise.
        down: u64,
        /// Of the step that it is about to take it makes so many writes and no more: it dies before it hears that the last one
        /// was made, at the latest at the step's end. 0: it does not begin the step.
        #[serde(default, skip_serializing_if = "is_zero")]
        writes: u64,
    },
}

impl FaultKind {
    /// The name of its kind, as schedules and histories write it.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.named().name()
    }

    /// How long after its begin its effect can still come, in microseconds, where that is known at the begin; else none.
    #[must_use]
    pub fn length(&self) -> u64 {
        match self {
            FaultKind::Delay { micros: length }
            | FaultKind::Reorder { at_most: length }
            | FaultKind::Duplicate { after: length, .. } => *length,
            FaultKind::Lose {}
            | FaultKind::Cut { .. }
            | FaultKind::Clock { .. }
            | FaultKind::PowerCut { .. }
            | FaultKind::Kill { .. } => 0,
        }
    }
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// One fault: where, at which opportunity, and what.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Fault {
    /// `link:NAME` or `board:NAME` of a board, or `server`.
    pub site: String,
    /// Which opportunity of its site, from 0.
    pub nth: u64,
    /// What it does.
    pub kind: FaultKind,
}

/// Faults one by one, as a file can hold them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Schedule {
    /// The level at which they were found, by which the trial is judged.
    pub level: FaultLevel,
    /// The faults; their order does not matter.
    pub faults: Vec<Fault>,
}

impl Schedule {
    /// Reads a schedule as a file holds it. What could never strike is a mistake: a schedule says exactly which faults there
    /// are.
    ///
    /// # Errors
    /// What is wrong with it, in a sentence.
    pub fn parse(source: &str) -> Result<Schedule, String> {
        // Editors may put a sign in front by which they know the encoding again.
        let source = source.trim_start_matches('\u{feff}');
        let schedule: Schedule = serde_json::from_str(source).map_err(|error| error.to_string())?;
        if schedule.level.is_none() {
            return Err("its level is none, and faults are mild or harsh".to_owned());
        }
        let mut places = BTreeSet::new();
        for (index, fault) in schedule.faults.iter().enumerate() {
            let wrong = |what: String| Err(format!("faults[{index}]: {what}"));
            let (site, nth, word) = (fault.site.as_str(), fault.nth, fault.kind.name());
            let sort = match site.split_once(':') {
                None if site == "server" => "server",
                Some((sort @ ("link" | "board"), name)) if !name.is_empty() => sort,
                _ => {
                    return wrong(format!("there is no site `{site}`; sites are link:a, board:a and server"));
                }
            };
            let belongs = match fault.kind {
                FaultKind::Clock { .. } | FaultKind::PowerCut { .. } => "board",
                FaultKind::Kill { .. } => "server",
                FaultKind::Delay { .. }
                | FaultKind::Reorder { .. }
                | FaultKind::Duplicate { .. }
                | FaultKind::Lose {}
                | FaultKind::Cut { .. } => "link",
            };
            if sort != belongs {
                return wrong(format!("{word} strikes at a site of the sort {belongs}, not at {site}"));
            }
            match fault.kind {
                FaultKind::Clock { ppm, .. } if ppm <= -1_000_000 => {
                    return wrong(format!(
                        "a clock of {ppm} ppm does not run; more than -1000000 is possible"
                    ));
                }
                FaultKind::Clock { .. } if nth != 0 => {
                    return wrong(format!(
                        "clock strikes at opportunity 0, the trial's start, and not at {nth}"
                    ));
                }
                FaultKind::PowerCut { .. } if nth == 0 => {
                    return wrong(
                        "opportunity 0 of a board is its clock's; power-cut strikes from 1".to_owned(),
                    );
                }
                _ => {}
            }
            if !places.insert((site, nth)) {
                return wrong(format!("opportunity {nth} of {site} has a fault already"));
            }
        }
        Ok(schedule)
    }
}

/// The faults of a trial.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Faults {
    /// None.
    #[default]
    None,
    /// As the trial's seed has it, of this level.
    Drawn(FaultLevel),
    /// Exactly these.
    Listed(Schedule),
}

impl Faults {
    /// How bad they are.
    #[must_use]
    pub fn level(&self) -> FaultLevel {
        match self {
            Faults::None => FaultLevel::None,
            Faults::Drawn(level) => *level,
            Faults::Listed(schedule) => schedule.level,
        }
    }
}

/// How many faults of each kind there were.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally(BTreeMap<FaultName, u64>);

impl Tally {
    /// Counts one more.
    pub fn count(&mut self, kind: &FaultKind) {
        *self.0.entry(kind.named()).or_default() += 1;
    }

    /// Adds another tally.
    pub fn add(&mut self, other: &Tally) {
        for (name, count) in &other.0 {
            *self.0.entry(*name).or_default() += count;
        }
    }

    /// How many there were in all.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.values().sum()
    }

    /// How many there were of one kind.
    #[must_use]
    pub fn of(&self, name: FaultName) -> u64 {
        self.0.get(&name).copied().unwrap_or_default()
    }
}

impl fmt::Display for Tally {
    /// `12 delays, 3 losses`; `none` where there were none.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let told = self.0.iter().filter(|(_, count)| **count > 0);
        let told: Vec<String> =
            told.map(|(name, count)| format!("{count} {}", name.counted(*count))).collect();
        f.write_str(if told.is_empty() { "none".to_owned() } else { told.join(", ") }.as_str())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_schedule_that_could_not_strike_as_it_says_is_refused() {
        let said = |level: &str, faults: &str| {
            Schedule::parse(&format!(r#"{{"level": "{level}", "faults": [{faults}]}}"#)).err()
        };
        let check = |fault: &str, expected: &str| {
            assert_eq!(said("harsh", fault).as_deref(), Some(expected), "{fault}");
        };
        let cut = |site: &str, nth: u64| {
            format!(r#"{{"site": "{site}", "nth": {nth}, "kind": {{"power-cut": {{"dark": 5}}}}}}"#)
        };
        let clock = |nth: u64, ppm: i32| {
            format!(
                r#"{{"site": "board:a", "nth": {nth}, "kind": {{"clock": {{"offset": 0, "ppm": {ppm}}}}}}}"#
            )
        };
        assert_eq!(said("harsh", &format!("{}, {}", clock(0, -999_999), cut("board:a", 4))), None);
        assert!(Schedule::parse("\u{feff}{\"level\": \"mild\", \"faults\": []}").is_ok());
        assert_eq!(said("none", "").as_deref(), Some("its level is none, and faults are mild or harsh"));
        for site in ["a", "board:", "boards:a", "server:a", "board"] {
            let expected =
                format!("faults[0]: there is no site `{site}`; sites are link:a, board:a and server");
            check(&cut(site, 4), &expected);
        }
        check(&cut("link:a", 4), "faults[0]: power-cut strikes at a site of the sort board, not at link:a");
        check(&cut("server", 4), "faults[0]: power-cut strikes at a site of the sort board, not at server");
        check(
            r#"{"site": "board:a", "nth": 1, "kind": {"lose": {}}}"#,
            "faults[0]: lose strikes at a site of the sort link, not at board:a",
        );
        check(
            &cut("board:a", 0),
            "faults[0]: opportunity 0 of a board is its clock's; power-cut strikes from 1",
        );
        check(&clock(3, 5), "faults[0]: clock strikes at opportunity 0, the trial's start, and not at 3");
        check(
            &clock(0, -1_000_000),
            "faults[0]: a clock of -1000000 ppm does not run; more than -1000000 is possible",
        );
        check(
            &format!("{}, {}", cut("board:a", 4), cut("board:a", 4)),
            "faults[1]: opportunity 4 of board:a has a fault already",
        );
    }

    #[test]
    fn a_schedule_is_read_as_it_is_written_and_refuses_what_it_does_not_know() {
        let kinds = [
            FaultKind::Delay { micros: 5 },
            FaultKind::Reorder { at_most: 6 },
            FaultKind::Duplicate { after: 7, second: true },
            FaultKind::Lose {},
            FaultKind::Cut { keep: 8, silent: true },
            FaultKind::Clock { offset: -9, ppm: -10 },
            FaultKind::PowerCut { dark: 11 },
            FaultKind::Kill { down: 12, writes: 13 },
        ];
        let faults = (0..).zip(kinds).map(|(nth, kind)| Fault { site: "link:a".to_owned(), nth, kind });
        let schedule = Schedule { level: FaultLevel::Harsh, faults: faults.collect() };
        let written = serde_json::to_value(&schedule).expect("json");
        assert_eq!(written["level"], "harsh");
        assert_eq!(
            written["faults"][1],
            json!({"site": "link:a", "nth": 1, "kind": {"reorder": {"atMost": 6}}})
        );
        for (kind, fault) in kinds.iter().zip(written["faults"].as_array().expect("faults")) {
            assert!(fault["kind"].get(kind.name()).is_some(), "{kind:?} is called {}", kind.name());
            assert_eq!(serde_json::to_value(kind.named()).expect("json"), kind.name());
        }
        assert_eq!(kinds.map(|kind| kind.named()), FaultName::ALL, "each kind has its name, in one order");
        assert_eq!(serde_json::from_value::<Schedule>(written).expect("read back"), schedule);
        let unknown = json!({"site": "server", "nth": 0, "kind": {"kill": {"down": 1, "up": 2}}});
        assert!(serde_json::from_value::<Fault>(unknown).is_err());
    }

    #[test]
    fn levels_go_by_their_names() {
        for level in FaultLevel::ALL {
            assert_eq!(FaultLevel::named(level.name()), Some(level));
            assert_eq!(serde_json::to_value(level).expect("json"), level.to_string());
            assert_eq!(level.is_none(), Faults::Drawn(level).level() == FaultLevel::None);
        }
        assert_eq!(FaultLevel::named("Mild"), None);
        assert!(FaultLevel::None < FaultLevel::Mild && FaultLevel::Mild < FaultLevel::Harsh);
    }

    #[test]
    fn a_tally_is_told_in_words() {
        let mut tally = Tally::default();
        assert_eq!(tally.to_string(), "none");
        tally.count(&FaultKind::Lose {});
        tally.count(&FaultKind::Delay { micros: 1 });
        let mut twice = tally.clone();
        twice.add(&tally);
        twice.count(&FaultKind::Kill { down: 1, writes: 0 });
        assert_eq!(twice.to_string(), "2 delays, 2 losses, 1 server kill");
        assert_eq!((twice.total(), twice.of(FaultName::Lose), twice.of(FaultName::Cut)), (5, 2, 0));
    }
}
