//! Whatever bytes come, however they are cut and whenever connections come and go: no panic, no spin, no
//! unbounded buffer, and pods are held to the heap there is.

use kubelet::{Boot, ConnId, Input, Kubelet, Now, Output, ResetReason};
use proptest::prelude::*;
use serde_json::json;

use crate::world::config;

/// Whole answers that are nearly right, so that they reach the deeper parts.
fn answer() -> impl Strategy<Value = Vec<u8>> {
    let body = prop_oneof![
        Just(r#"{"metadata":{"resourceVersion":"7","name":"a","uid":"u"},"items":[]}"#.to_string()),
        (0u8..4, 0u8..3, "[a-z]{0,6}").prop_map(|(n, kind, noise)| {
            let kind = ["ADDED", "MODIFIED", "DELETED"][usize::from(kind)];
            let status = json!({"phase": noise, "conditions": null});
            let workload = ["pause", "exit:1", "crash", "exit:0:after=1s"][usize::from(n)];
            let resources = json!({"requests": {"memory": "60Ki", "esp32.io/gpio-1": "1"}});
            let containers = json!([{"name": "c", "image": "rigor.dev/builtin", "args": [workload], "resources": resources}]);
            let metadata = json!({"name": format!("p{n}"), "namespace": "d", "uid": format!("u{n}"), "resourceVersion": "9"});
            let pod = json!({"metadata": metadata, "spec": {"nodeName": "a", "containers": containers}, "status": status});
            format!("{}\n", json!({"type": kind, "object": pod}))
        }),
        Just("{\"type\":\"ERROR\",\"object\":{\"code\":410}}\n".to_string()),
        "\\PC{1,40}",
    ];
    let whole = (body, any::<bool>(), prop_oneof![Just(200u16), Just(201), Just(404), Just(409), Just(500)]);
    whole.prop_map(|(body, chunked, status)| {
        let length = body.len();
        let text = if chunked {
            format!("HTTP/1.1 {status} X\r\nTransfer-Encoding: chunked\r\n\r\n{length:x}\r\n{body}\r\n0\r\n\r\n")
        } else {
            format!("HTTP/1.1 {status} X\r\nDate: Fri, 15 Jan 2027 08:00:00 GMT\r\nContent-Length: {length}\r\n\r\n{body}")
        };
        text.into_bytes()
    })
}

/// Whole answers, and no answers at all.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![4 => answer(), 1 => noise()]
}

fn noise() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(any::<u8>(), 0..60)
}

#[derive(Clone, Debug)]
enum Act {
    Up(u8),
    Down,
    Connected(u8),
    Received(u8, Vec<u8>, usize),
    Closed(u8),
    Wait(u64),
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        1 => any::<u8>().prop_map(Act::Up),
        1 => Just(Act::Down),
        4 => (0u8..3).prop_map(Act::Connected),
        8 => (0u8..2, bytes(), 1usize..200).prop_map(|(c, bytes, slice)| Act::Received(c, bytes, slice)),
        1 => (0u8..3).prop_map(Act::Closed),
        3 => (0u64..20_000).prop_map(Act::Wait),
    ]
}

const HEAP: u32 = 100_000;

fn tell(kubelet: &mut Kubelet, millis: u64, input: Input<'_>) -> Result<(), TestCaseError> {
    let free_heap = HEAP - kubelet.reserved_bytes();
    kubelet.handle(Now { millis, free_heap }, input);
    prop_assert!(kubelet.deadline() > millis);
    prop_assert!(kubelet.reserved_bytes() <= HEAP);
    let mut outputs = 0;
    while let Some(output) = kubelet.next_output() {
        outputs += 1;
        match output {
            Output::Send(_, bytes) => {
                prop_assert!(bytes.len() < 16_384, "a request of {} bytes", bytes.len())
            }
            Output::Log(line) => prop_assert!(line.len() < 4096),
            Output::Open(ConnId(conn)) | Output::Close(ConnId(conn)) => prop_assert!(conn < 2),
        }
    }
    prop_assert!(outputs < 200, "{outputs} outputs for one input");
    Ok(())
}

fn new() -> Kubelet {
    Kubelet::new(config(json!({})), Boot { reason: ResetReason::Watchdog, seed: 5 })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn nothing_upsets_the_kubelet(acts in proptest::collection::vec(act(), 0..60)) {
        let mut kubelet = new();
        let mut millis = 0;
        tell(&mut kubelet, millis, Input::NetworkUp { address: [1, 2, 3, 4] })?;
        for act in acts {
            match act {
                Act::Up(last) => tell(&mut kubelet, millis, Input::NetworkUp { address: [1, 2, 3, last] })?,
                Act::Down => tell(&mut kubelet, millis, Input::NetworkDown)?,
                Act::Connected(conn) => tell(&mut kubelet, millis, Input::Connected(ConnId(conn)))?,
                Act::Closed(conn) => tell(&mut kubelet, millis, Input::Closed(ConnId(conn)))?,
                Act::Received(conn, bytes, slice) => {
                    for part in bytes.chunks(slice) {
                        tell(&mut kubelet, millis, Input::Received(ConnId(conn), part))?;
                    }
                }
                Act::Wait(length) => {
                    let until = millis + length;
                    let mut ticks = 0;
                    while kubelet.deadline() <= until {
                        millis = kubelet.deadline().max(millis);
                        tell(&mut kubelet, millis, Input::Tick)?;
                        ticks += 1;
                        prop_assert!(ticks < 1000, "{ticks} ticks in {length} ms");
                    }
                    millis = until;
                }
            }
        }
    }

    /// The same bytes in one piece or in many lead to the same outputs.
    #[test]
    fn cuts_make_no_difference(
        answers in proptest::collection::vec(answer(), 0..12),
        noise in noise(),
        slice in 1usize..40,
    ) {
        let run = |slice: usize| {
            let mut kubelet = new();
            let mut outputs = Vec::new();
            let mut say = |kubelet: &mut Kubelet, input: Input<'_>| {
                kubelet.handle(Now { millis: 1, free_heap: HEAP }, input);
                while let Some(output) = kubelet.next_output() {
                    outputs.push(output);
                }
            };
            say(&mut kubelet, Input::NetworkUp { address: [1, 2, 3, 4] });
            for answer in answers.iter().chain([&noise]) {
                say(&mut kubelet, Input::Connected(ConnId::REQUESTS));
                for part in answer.chunks(slice) {
                    say(&mut kubelet, Input::Received(ConnId::REQUESTS, part));
                }
            }
            outputs
        };
        prop_assert!(run(usize::MAX) == run(slice), "the outputs depend on how the bytes were cut");
    }
}
