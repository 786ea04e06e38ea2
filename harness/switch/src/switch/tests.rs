use super::*;
use proptest::prelude::*;

fn names(count: usize) -> Vec<String> {
    (0..count).map(|index| format!("board{index}")).collect()
}

fn switch(count: usize) -> Switch {
    let mut switch = Switch::new(7, &names(count));
    (0..count).for_each(|board| switch.link_mut(board).set_powered(true));
    switch
}

fn mac(port: Port) -> EthernetAddress {
    match port {
        Port::Board(board) => address::board_mac(board),
        Port::Gateway => address::GATEWAY_MAC,
    }
}

fn frame(to: EthernetAddress, from: EthernetAddress, content: u32) -> Vec<u8> {
    let mut frame = [to.0, from.0].concat();
    frame.extend([0x88, 0xb5]);
    frame.extend(content.to_be_bytes());
    frame
}

/// Where frames come out by now, with their contents; the gateway is told apart by `None`.
fn out(switch: &mut Switch, now: u64) -> Vec<(Option<usize>, u32)> {
    let content = |frame: &Frame| u32::from_be_bytes(frame[14..18].try_into().unwrap());
    let mut out = Vec::new();
    while let Some(step) = switch.next_step(now) {
        match step {
            Step::Switched(..) => {}
            Step::Board(board, frame) => out.push((Some(board), content(&frame))),
            Step::Gateway(_, frame) => out.push((None, content(&frame))),
        }
    }
    out
}

#[test]
fn known_addresses_are_forwarded_and_others_go_to_all_but_the_sender() {
    let mut switch = switch(3);
    let stranger = EthernetAddress([2, 0, 0, 0, 0, 9]);
    let check = |switch: &mut Switch, from: Port, to, expected: &[Option<usize>]| {
        let frame = frame(to, mac(from), 1);
        match from {
            Port::Board(board) => switch.send(0, board, &frame),
            Port::Gateway => switch.send_from_gateway(0, frame),
        }
        let ends: Vec<_> = out(switch, 0).into_iter().map(|(to, _)| to).collect();
        assert_eq!(ends, expected, "{from:?} to {to}");
    };
    check(&mut switch, Port::Board(0), mac(Port::Board(2)), &[Some(2)]);
    check(&mut switch, Port::Board(0), mac(Port::Gateway), &[None]);
    check(&mut switch, Port::Gateway, mac(Port::Board(1)), &[Some(1)]);
    check(&mut switch, Port::Board(1), mac(Port::Board(1)), &[]);
    check(&mut switch, Port::Board(1), EthernetAddress::BROADCAST, &[None, Some(0), Some(2)]);
    check(&mut switch, Port::Gateway, EthernetAddress::BROADCAST, &[Some(0), Some(1), Some(2)]);
    check(&mut switch, Port::Board(1), stranger, &[None, Some(0), Some(2)]);
    switch.send(0, 2, &frame(mac(Port::Gateway), stranger, 1));
    assert_eq!(out(&mut switch, 0).len(), 1);
    check(&mut switch, Port::Board(1), stranger, &[Some(2)]);
}

#[test]
fn nobody_can_take_the_gateways_place() {
    let mut switch = switch(2);
    switch.send(0, 0, &frame(EthernetAddress::BROADCAST, mac(Port::Gateway), 1));
    assert_eq!(out(&mut switch, 0), []);
    switch.send(0, 1, &frame(mac(Port::Gateway), mac(Port::Board(1)), 2));
    assert_eq!(out(&mut switch, 0), [(None, 2)]);
}

#[test]
fn a_flood_of_addresses_neither_fills_the_memory_nor_displaces_boards() {
    let mut switch = switch(2);
    for number in 0..5000_u32 {
        let [a, b, c, d] = number.to_be_bytes();
        switch.send(0, 0, &frame(mac(Port::Gateway), EthernetAddress([2, 7, a, b, c, d]), 1));
        assert_eq!(out(&mut switch, 0).len(), 1);
    }
    assert_eq!(switch.addresses.len(), MOST_ADDRESSES);
    switch.send(0, 0, &frame(mac(Port::Board(1)), mac(Port::Board(0)), 2));
    assert_eq!(out(&mut switch, 0), [(Some(1), 2)]);
}

#[test]
fn what_is_no_ethernet_frame_goes_nowhere() {
    let mut switch = switch(2);
    for length in [0, 1, 13, LONGEST_FRAME + 1, 65_000] {
        switch.send(0, 0, &vec![0xff; length]);
    }
    assert_eq!(out(&mut switch, 0), []);
    assert_eq!(switch.link(0).counts(Direction::Up).malformed, 5);
    let mut longest = frame(mac(Port::Board(1)), mac(Port::Board(0)), 3);
    longest.resize(LONGEST_FRAME, 0);
    switch.send(0, 0, &longest);
    assert_eq!(out(&mut switch, 0), [(Some(1), 3)]);
}

#[test]
fn the_delays_of_both_links_add_up_whoever_looks_when() {
    let mut switch = switch(2);
    switch.link_mut(0).set_delay(100);
    switch.link_mut(1).set_delay(30);
    switch.send(5, 0, &frame(mac(Port::Board(1)), mac(Port::Board(0)), 1));
    assert_eq!(switch.next_at(), Some(105));
    assert_eq!(out(&mut switch, 134), []);
    assert_eq!(switch.next_at(), Some(135));
    assert_eq!(out(&mut switch, 135), [(Some(1), 1)]);
    assert_eq!(switch.next_at(), None);
    switch.send(200, 0, &frame(mac(Port::Board(1)), mac(Port::Board(0)), 2));
    assert_eq!(out(&mut switch, 1000), [(Some(1), 2)]);
}

#[test]
fn a_cut_takes_what_is_on_its_own_link_only() {
    let mut switch = switch(2);
    switch.link_mut(0).set_delay(100);
    switch.link_mut(1).set_delay(100);
    switch.send(0, 0, &frame(mac(Port::Board(1)), mac(Port::Board(0)), 1));
    switch.send(50, 0, &frame(mac(Port::Board(1)), mac(Port::Board(0)), 2));
    assert_eq!(out(&mut switch, 120), []);
    switch.link_mut(0).set_up(false);
    switch.spill(0);
    assert_eq!(out(&mut switch, 1000), [(Some(1), 1)], "the first was past the link of board 0");
    assert_eq!(switch.link(0).counts(Direction::Up).cut, 1);
}

#[derive(Debug, Clone)]
enum Act {
    /// From, to (the number after the last board: to all), by way of the gateway where `from` is that number.
    Send(usize, usize),
    Cut(usize),
    Heal(usize),
    Pass(u64),
}

const BOARDS: usize = 3;

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        6 => (0..=BOARDS, 0..=BOARDS).prop_map(|(from, to)| Act::Send(from, to)),
        1 => (0..BOARDS).prop_map(Act::Cut),
        1 => (0..BOARDS).prop_map(Act::Heal),
        4 => (0_u64..150).prop_map(Act::Pass),
    ]
}

/// When each link was cut, and healed again.
#[derive(Default)]
struct Cuts(Vec<(u64, u64)>);

impl Cuts {
    /// Whether one lay between two instants.
    fn between(&self, begin: u64, end: u64) -> bool {
        self.0.iter().any(|(cut, heal)| begin < *heal && end > *cut)
    }
}

proptest! {
    /// Every frame comes out at most once an end, exactly when its delays are over, in order, with a fate that is known
    /// beforehand, and never when a cut lay in its way.
    #[test]
    fn frames_arrive_once_in_order_on_time_and_never_across_a_cut(
        acts in proptest::collection::vec(act(), 1..120),
        delays in proptest::array::uniform3(0_u64..100),
        losses in proptest::array::uniform3(prop_oneof![Just(0_u8), 0_u8..60]),
        steps in 1_u64..40,
    ) {
        let mut switch = switch(BOARDS);
        for (board, (delay, loss)) in delays.into_iter().zip(losses).enumerate() {
            switch.link_mut(board).set_delay(delay);
            switch.link_mut(board).set_loss(loss);
        }
        let mut now = 0_u64;
        let mut sent = BTreeMap::new();
        let mut arrived: Vec<(u64, Option<usize>, u32)> = Vec::new();
        let mut open = [None; BOARDS];
        let mut cuts: [Cuts; BOARDS] = Default::default();
        let mut look = |switch: &mut Switch, now: u64| {
            arrived.extend(out(switch, now).into_iter().map(|(to, content)| (now, to, content)));
        };
        for (number, act) in (0..).zip(acts.into_iter().chain([Act::Pass(1000)])) {
            // No two acts at one instant, so that it is clear which was first.
            now += 1;
            look(&mut switch, now);
            match act {
                Act::Send(from, to) => {
                    let destination =
                        if to == BOARDS { EthernetAddress::BROADCAST } else { address::board_mac(to) };
                    if from == BOARDS {
                        switch.send_from_gateway(now, frame(destination, address::GATEWAY_MAC, number));
                    } else {
                        switch.send(now, from, &frame(destination, address::board_mac(from), number));
                    }
                    sent.insert(number, (now, from, to));
                    look(&mut switch, now);
                }
                Act::Cut(board) => {
                    switch.link_mut(board).set_up(false);
                    switch.spill(board);
                    open[board].get_or_insert(now);
                }
                Act::Heal(board) => {
                    let link = switch.link_mut(board);
                    link.set_up(true);
                    link.set_delay(delays[board]);
                    link.set_loss(losses[board]);
                    if let Some(cut) = open[board].take() {
                        cuts[board].0.push((cut, now));
                    }
                }
                Act::Pass(length) => {
                    let end = now + length;
                    while now < end {
                        now = switch.next_at().unwrap_or(end).clamp(now + 1, end).min(now + steps);
                        look(&mut switch, now);
                    }
                }
            }
        }
        for (board, cut) in open.into_iter().enumerate() {
            cuts[board].0.extend(cut.map(|cut| (cut, u64::MAX)));
        }
        let mut seen = std::collections::BTreeSet::new();
        let mut latest = BTreeMap::new();
        for (at, to, content) in arrived {
            let (began, from, wanted) = sent[&content];
            prop_assert!(seen.insert((to, content)), "frame {} twice at {:?}", content, to);
            prop_assert!(wanted == BOARDS || to == Some(wanted), "frame {} for {} at {:?}", content, wanted, to);
            prop_assert!(to != Some(from) && (to.is_some() || from != BOARDS), "frame {} came back", content);
            let half = began + delays.get(from).unwrap_or(&0);
            let due = half + to.map_or(0, |to| delays[to]);
            prop_assert_eq!(at, due, "frame {}", content);
            if from < BOARDS {
                prop_assert!(!cuts[from].between(began, half), "frame {} crossed a cut on its way up", content);
            }
            if let Some(to) = to {
                prop_assert!(!cuts[to].between(half, due), "frame {} crossed a cut on its way down", content);
            }
            let before = latest.insert((from, to), content);
            prop_assert!(before.is_none_or(|before| before < content), "frame {} overtaken", content);
        }
        // Nothing is lost without a reason.
        for (number, (began, from, to)) in sent {
            let ends = (0..BOARDS).map(Some).chain([None]).filter(|end| {
                (to == BOARDS || *end == Some(to)) && *end != Some(from) && (end.is_some() || from != BOARDS)
            });
            for end in ends.filter(|end| !seen.contains(&(*end, number))) {
                let half = began + delays.get(from).unwrap_or(&0);
                let due = half + end.map_or(0, |end| delays[end]);
                let links = [from].into_iter().chain(end).filter(|link| *link < BOARDS);
                let reason = links.into_iter().any(|link| losses[link] > 0 || cuts[link].between(began, due + 1));
                prop_assert!(reason, "frame {} never came to {:?}", number, end);
            }
        }
    }
}
