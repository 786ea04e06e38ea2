use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

fn names() -> BTreeSet<String> {
    ["outage", "tainted"].map(String::from).into()
}

#[test]
fn expressions_are_read_and_written_back() {
    let check = |text: &str, expected: &str| {
        let shown = match parse(text, Some(&names())).expect(text) {
            Expr::Instant(instant) => format!("instant {instant}"),
            Expr::Length(length) => format!("length {length}"),
        };
        assert_eq!(shown, expected, "{text}");
    };
    check("outage", "instant outage");
    check("lastRenewal(a)+leaseDuration", "instant lastRenewal(a) + leaseDuration");
    check(" lastRenewal( n-1 , outage ) - 500ms", "instant lastRenewal(n-1, outage) - 500ms");
    check(
        "stamp(tainted, spec.taints[key=a.b/c,effect=NoExecute].timeAdded) + 2 * tolerationSeconds",
        "instant stamp(tainted, spec.taints[key=a.b/c,effect=NoExecute].timeAdded) + 2 * tolerationSeconds",
    );
    check("max(serving, outage + 5s) + (slack + 1s)", "instant max(serving, outage + 5s) + (slack + 1s)");
    check("retryPeriod + slack", "length retryPeriod + slack");
    check("2 * (checkPeriod - slack)", "length 2 * (checkPeriod - slack)");
    check("min(1s, 2s)", "length min(1s, 2s)");
    check("mark(heartbeats-stopped, hollow-1)", "instant mark(heartbeats-stopped, hollow-1)");
    check(
        "request( POST , /api/v1/namespaces/*/pods?x=1 )+1s",
        "instant request(POST, /api/v1/namespaces/*/pods?x=1) + 1s",
    );
    check("lastRenewal(${node}) + 1s", "instant lastRenewal(${node}) + 1s");
    check("mark(stopped, ${node})", "instant mark(stopped, ${node})");
    check("1m30s", "length 1m30s");
    check("begin + 1s - 2s", "instant begin + 1s - 2s");
}

#[test]
fn mistakes_say_where_and_what_would_be_right() {
    let mut gallery = String::new();
    for text in [
        "",
        "5",
        "5 + slack",
        "10s / 2",
        "leaseDuration / 2",
        "1us / 3",
        "10s * 2",
        "slack * 1.5",
        "10s / 0",
        "läuft + 1s",
        "outage + outage",
        "5s + outage",
        "2 * outage",
        "outrage",
        "outage 5s",
        "L + slack",
        "lastRenewal",
        "lastRenewal()",
        "lastRenewal(a",
        "stamp(tainted)",
        "stamp(tainted, spec..x)",
        "max(1s, outage)",
        "leaseduration",
        "later(outage)",
        "5sec",
        "1d",
        "10 s",
        "10 seconds",
        "10 + s",
        "3 weeks ago",
        "1_0s",
        "(outage",
        "outage + ",
        "99999999999 * 1s",
        "+ 5s",
        "stamp(x, a)",
        "request(FETCH, /api)",
        "request(GET)",
        "request(GET, api)",
        "request(GET, /a b)",
    ] {
        let error = parse(text, Some(&names())).expect_err(text);
        gallery +=
            &format!("{text:28} {:>2}..{:<2} {error}; {}\n", error.span.start, error.span.end, error.remedy);
    }
    insta::assert_snapshot!(gallery);
}

#[test]
fn deep_nesting_is_refused() {
    let text = "(".repeat(100);
    assert_eq!(parse(&text, None).expect_err("too deep").message, "too deeply nested");
    let text = format!("1s{}", " + 1s".repeat(100_000));
    assert!(parse(&text, None).is_err());
}

proptest! {
    #[test]
    fn any_text_is_an_expression_or_an_error(text in ".{0,60}") {
        let _ = parse(&text, None);
    }

    #[test]
    fn texts_of_the_right_words_too(words in proptest::collection::vec(
        proptest::sample::select(vec!["outage", "+", "-", "5s", "*", "2", "(", ")", ",", "max(", "stamp(", "lastRenewal(a", "slack", "[", "]", "\"", "é"]),
        0..12,
    )) {
        let text = words.join(" ");
        if let Ok(Expr::Instant(instant)) = parse(&text, None) {
            prop_assert_eq!(parse(&instant.to_string(), None), Ok(Expr::Instant(instant)));
        }
    }
}
