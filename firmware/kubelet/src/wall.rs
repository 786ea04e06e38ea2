//! Wall time without a clock: the offset between the board's monotonic milliseconds and the server's
//! Date headers. A Date is cut to whole seconds, so each one narrows the offset down to an interval a
//! second wide, and the estimate moves only when it falls outside. Also the two time formats of the API.

use alloc::format;
use alloc::string::String;

/// How far ahead a Date is, in milliseconds, that no slow answer and no rounding explains.
const STOOD_STILL: i64 = 2000;

/// Milliseconds since 1970 by the server's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Wall(pub(crate) u64);

/// What is known of the server's clock.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WallClock {
    /// Server's milliseconds less the board's; `None` before the first answer.
    offset: Option<i64>,
}

impl WallClock {
    /// Takes in the Date header of an answer that arrived at `millis`. Whether it is far ahead of what was
    /// known: this board stood still, or the server's clock was set.
    pub(crate) fn observe(&mut self, millis: u64, date: Wall) -> bool {
        let earliest = date.0 as i64 - millis as i64;
        let latest = earliest + 999;
        let ahead = self.offset.is_some_and(|offset| earliest > offset + STOOD_STILL);
        self.offset = Some(self.offset.map_or(earliest, |offset| offset.clamp(earliest, latest)));
        ahead
    }

    /// The server's time at `millis`; 1970 plus uptime before the first answer.
    pub(crate) fn at(&self, millis: u64) -> Wall {
        Wall((millis as i64).saturating_add(self.offset.unwrap_or(0)).max(0) as u64)
    }
}

impl Wall {
    /// Reads the fixed format of a Date header (`Sun, 29 Nov 2026 12:01:56 GMT`).
    pub(crate) fn from_http_date(text: &str) -> Option<Wall> {
        const MONTHS: &str = "JanFebMarAprMayJunJulAugSepOctNovDec";
        let mut words = text.split_once(", ")?.1.split(' ');
        let day: u64 = words.next()?.parse().ok()?;
        let month_name = words.next().filter(|name| name.len() == 3)?;
        let month = MONTHS.find(month_name).filter(|at| at % 3 == 0)? as u64 / 3 + 1;
        let year: u64 = words.next()?.parse().ok()?;
        let mut time = words.next()?.split(':');
        let mut next = |limit: u64| time.next()?.parse::<u64>().ok().filter(|value| *value < limit);
        let (hour, minute, second) = (next(24)?, next(60)?, next(61)?);
        if !(1970..=9999).contains(&year) || !(1..=31).contains(&day) {
            return None;
        }
        Some(Wall(((days_from_civil(year, month, day) * 24 + hour) * 3600 + minute * 60 + second) * 1000))
    }

    /// `2026-11-29T12:01:56Z`, the API's Time.
    pub(crate) fn rfc3339(self) -> String {
        let (date, seconds) = self.parts();
        format!("{date}T{seconds}Z")
    }

    /// `2026-11-29T12:01:56.350000Z`, the API's MicroTime.
    pub(crate) fn rfc3339_micro(self) -> String {
        let (date, seconds) = self.parts();
        format!("{date}T{seconds}.{:03}000Z", self.0 % 1000)
    }

    fn parts(self) -> (String, String) {
        let seconds = self.0 / 1000;
        let (year, month, day) = civil_from_days(seconds / 86_400);
        let of_day = seconds % 86_400;
        (
            format!("{year:04}-{month:02}-{day:02}"),
            format!("{:02}:{:02}:{:02}", of_day / 3600, of_day / 60 % 60, of_day % 60),
        )
    }
}

/// Days before the first of `month` in a year counted from March, so that leap days come last.
fn days_before_month(month_from_march: u64) -> u64 {
    (153 * month_from_march + 2) / 5
}

fn days_before_year(year: u64) -> u64 {
    year * 365 + year / 4 - year / 100 + year / 400
}

/// From 0000-03-01, where March-counted years begin, to 1970-01-01.
const EPOCH: u64 = 719_468;

fn days_from_civil(year: u64, month: u64, day: u64) -> u64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    days_before_year(year) + days_before_month(month) + day - 1 - EPOCH
}

fn civil_from_days(days: u64) -> (u64, u64, u64) {
    let days = days + EPOCH;
    let mut year = days * 400 / 146_097;
    while days_before_year(year + 1) <= days {
        year += 1;
    }
    while days_before_year(year) > days {
        year -= 1;
    }
    let rest = days - days_before_year(year);
    let month = (5 * rest + 2) / 153;
    let day = rest - days_before_month(month) + 1;
    if month < 10 { (year, month + 3, day) } else { (year + 1, month - 9, day) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn http_dates_are_read() {
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(Wall::from_http_date(text).map(Wall::rfc3339).as_deref(), expected, "{text}");
        };
        check("Sun, 29 Nov 2026 12:01:56 GMT", Some("2026-11-29T12:01:56Z"));
        check("Thu, 01 Jan 1970 00:00:00 GMT", Some("1970-01-01T00:00:00Z"));
        check("Thu, 29 Feb 2024 23:59:59 GMT", Some("2024-02-29T23:59:59Z"));
        check("Mon, 01 Mar 2100 00:00:00 GMT", Some("2100-03-01T00:00:00Z"));
        check("Mon, 1 Foo 2026 00:00:00 GMT", None);
        check("Mon, 01 anF 2026 00:00:00 GMT", None);
        check("Mon, 01 Jan 2026 25:00:00 GMT", None);
        check("garbage", None);
    }

    #[test]
    fn a_micro_time_has_six_digits() {
        assert_eq!(Wall(1_764_417_716_350).rfc3339_micro(), "2025-11-29T12:01:56.350000Z");
    }

    #[test]
    fn dates_narrow_the_estimate_and_a_step_moves_it() {
        let mut clock = WallClock::default();
        assert!(!clock.observe(100, Wall(1_000_000)));
        assert_eq!(clock.at(100), Wall(1_000_000));
        // 950 ms later the header already shows the next second: the true offset is larger.
        assert!(!clock.observe(1050, Wall(1_001_000)));
        assert_eq!(clock.at(1050), Wall(1_001_000));
        // A header within the interval changes nothing.
        assert!(!clock.observe(1100, Wall(1_001_000)));
        assert_eq!(clock.at(1100), Wall(1_001_050));
        // The server's clock was set back.
        assert!(!clock.observe(2000, Wall(500_000)));
        assert_eq!(clock.at(2000), Wall(500_999));
        // Within two seconds nothing is said of it, beyond it is.
        assert!(!clock.observe(2000, Wall(502_000)));
        assert!(clock.observe(2000, Wall(505_000)));
        assert_eq!(clock.at(2000), Wall(505_000));
    }

    proptest! {
        #[test]
        fn days_and_dates_are_inverse(days in 0u64..2_900_000) {
            let (year, month, day) = civil_from_days(days);
            prop_assert_eq!(days_from_civil(year, month, day), days);
            prop_assert!((1..=12).contains(&month) && (1..=31).contains(&day));
        }

        #[test]
        fn any_header_is_read_or_refused(text in ".*") {
            let _read = Wall::from_http_date(&text);
        }
    }
}
