use crate::gateway::MOST_CONNECTIONS;
use crate::link::Direction;
use crate::network::{Network, Plan};
use crate::stack::{State, instant};
use crate::testing::{Bench, PORT, SECOND};
use crate::{Event, address};
use smoltcp::wire::{EthernetAddress, EthernetFrame, EthernetProtocol, IpProtocol, Ipv4Packet, TcpPacket};

/// A board that is up with one connection over which a word went each way.
fn talking() -> (Bench, smoltcp::iface::SocketHandle) {
    let mut bench = Bench::new(2);
    bench.boot(0);
    let socket = bench.board(0).connect();
    bench.run(SECOND);
    bench.board(0).say(socket, "hello");
    bench.run(SECOND);
    assert_eq!(bench.last_heard(), "hello");
    let (id, _) = bench.last();
    bench.network.give(id, b"welcome");
    bench.run(SECOND);
    assert_eq!(bench.board(0).heard(socket), "welcome");
    (bench, socket)
}

#[test]
fn boards_boot_with_addresses_of_their_own_and_keep_them_over_a_power_cycle() {
    let mut bench = Bench::new(3);
    for _ in 0..2 {
        for board in 0..3 {
            bench.boot(board);
            let (leased, router) = bench.board(board).leased.unwrap();
            assert_eq!(leased.address(), address::board(board));
            assert_eq!((leased.prefix_len(), router), (24, Some(address::GATEWAY)));
            bench.off(board);
        }
    }
}

#[test]
fn bytes_and_ends_pass_both_ways() {
    let (mut bench, socket) = talking();
    bench.board(0).tcp(socket).close();
    bench.run(SECOND);
    let (id, served) = bench.last();
    assert!(served.ended && !served.gone);
    bench.network.give(id, b"late");
    bench.run(SECOND);
    assert_eq!(bench.board(0).heard(socket), "late");
    bench.network.finish(id);
    bench.run(SECOND);
    assert!(bench.last().1.gone);
    assert_eq!(bench.network.connections(), 0);

    let socket = bench.board(0).connect();
    bench.run(SECOND);
    let (id, _) = bench.last();
    bench.network.finish(id);
    bench.run(SECOND);
    assert_eq!(bench.board(0).tcp(socket).state(), State::CloseWait);
    assert!(!bench.last().1.ended, "the board has not ended its side");
    bench.board(0).tcp(socket).close();
    bench.run(60 * SECOND);
    assert!(bench.last().1.gone);
    assert_eq!(bench.network.connections(), 0);
}

#[test]
fn a_refused_connection_is_refused_and_an_aborted_one_reset() {
    let mut bench = Bench::new(1);
    bench.boot(0);
    bench.refusing = true;
    let refused = bench.board(0).connect();
    bench.run(SECOND);
    assert_eq!(bench.board(0).tcp(refused).state(), State::Closed);
    assert_eq!(bench.network.connections(), 0);
    bench.refusing = false;
    let socket = bench.board(0).connect();
    bench.run(SECOND);
    assert_eq!(bench.board(0).tcp(socket).state(), State::Established);
    let (id, _) = bench.last();
    bench.network.abort(bench.now, id);
    bench.run(SECOND);
    assert_eq!(bench.board(0).tcp(socket).state(), State::Closed);
    assert_eq!(bench.network.connections(), 0);
}

#[test]
fn a_board_that_resets_is_heard_at_once() {
    let (mut bench, socket) = talking();
    bench.board(0).tcp(socket).abort();
    bench.run(SECOND / 10);
    assert!(bench.last().1.gone);
    assert_eq!(bench.network.connections(), 0);
}

#[test]
fn a_cut_link_is_silent_and_loses_nothing_that_tcp_repeats() {
    let (mut bench, socket) = talking();
    let (id, _) = bench.last();
    bench.network.cut(0);
    bench.board(0).say(socket, " two");
    bench.network.give(id, b"three");
    bench.run(10 * SECOND);
    assert_eq!(bench.last_heard(), "hello");
    assert_eq!(bench.board(0).heard(socket), "");
    assert!(!bench.last().1.gone);
    bench.network.heal(0);
    // Both sides repeat with waits that double, so none is longer than the cut was.
    bench.run(10 * SECOND);
    assert_eq!(bench.last_heard(), "hello two");
    assert_eq!(bench.board(0).heard(socket), "three");
}

#[test]
fn nothing_leaves_after_a_cut_not_even_what_had_arrived() {
    let (mut bench, socket) = talking();
    bench.busy = true;
    bench.board(0).say(socket, " again");
    bench.board(0).tcp(socket).close();
    bench.run(SECOND);
    assert_eq!(bench.board(0).tcp(socket).send_queue(), 0, "the gateway has it");
    bench.network.cut(0);
    bench.busy = false;
    bench.run(10 * SECOND);
    assert_eq!((bench.last_heard().as_str(), bench.last().1.ended), ("hello", false));
    bench.network.heal(0);
    bench.settle();
    assert_eq!((bench.last_heard().as_str(), bench.last().1.ended), ("hello again", true));
}

#[test]
fn lost_power_says_nothing_until_the_next_life_resets_what_it_does_not_know() {
    let (mut bench, socket) = talking();
    let (old, _) = bench.last();
    bench.busy = true;
    bench.board(0).say(socket, " dying words");
    bench.run(SECOND);
    bench.off(0);
    bench.busy = false;
    bench.run(400 * SECOND);
    assert_eq!(bench.last_heard(), "hello");
    assert!(!bench.last().1.gone && !bench.last().1.ended, "silent for as long as an eviction takes");
    assert!(bench.network.room(old) > 0, "the control plane's bytes are taken, as its own kernel would");

    bench.boot(0);
    let socket = bench.board(0).connect();
    bench.run(SECOND);
    bench.board(0).say(socket, "again");
    bench.run(SECOND);
    assert_eq!(bench.last_heard(), "again");
    assert_ne!(bench.last().0, old);
    // Asked for a sign of life, the new stack knows nothing of the old connection.
    bench.run(80 * SECOND);
    assert!(bench.served[&old].gone);
    assert_eq!(String::from_utf8_lossy(&bench.served[&old].heard), "hello", "mute for good");
    assert_eq!(bench.network.connections(), 1);
}

#[test]
fn what_waits_for_a_dead_board_is_given_up_in_the_end() {
    let (mut bench, _) = talking();
    let (id, _) = bench.last();
    bench.off(0);
    bench.network.give(id, b"anyone?");
    bench.run(900 * SECOND);
    assert!(!bench.last().1.gone);
    bench.run(60 * SECOND);
    assert!(bench.last().1.gone);
    assert_eq!(bench.network.connections(), 0);
}

#[test]
fn a_cut_board_reaches_neither_the_gateway_nor_other_boards() {
    let mut bench = Bench::new(2);
    bench.boot(0);
    bench.boot(1);
    let ping = |to: EthernetAddress, from: usize| {
        let mut frame = [to.0, address::board_mac(from).0].concat();
        frame.extend([0x88, 0xb5, 1, 2, 3]);
        frame
    };
    let reaches = |network: &mut Network, from: usize, to: usize| {
        network.send(0, from, &ping(address::board_mac(to), from));
        std::iter::from_fn(|| network.next_frame()).any(|(board, _)| board == to)
    };
    assert!(reaches(&mut bench.network, 0, 1) && reaches(&mut bench.network, 1, 0));
    bench.network.cut(0);
    assert!(!reaches(&mut bench.network, 0, 1) && !reaches(&mut bench.network, 1, 0));
    let socket = bench.board(0).connect();
    let other = bench.board(1).connect();
    bench.run(5 * SECOND);
    assert_eq!(bench.board(0).tcp(socket).state(), State::SynSent);
    assert_eq!(bench.board(1).tcp(other).state(), State::Established);
    bench.network.heal(0);
    assert!(reaches(&mut bench.network, 0, 1) && reaches(&mut bench.network, 1, 0));
    bench.network.power_lost(0);
    assert!(
        !reaches(&mut bench.network, 0, 1) && !reaches(&mut bench.network, 1, 0),
        "nor one without power"
    );
}

#[test]
fn delay_is_added_one_way_and_loss_is_made_good_by_tcp() {
    let (mut bench, socket) = talking();
    bench.network.delay(0, 300_000);
    bench.board(0).say(socket, " slow");
    bench.run(299_999);
    assert_eq!(bench.last_heard(), "hello");
    bench.run(1);
    assert_eq!(bench.last_heard(), "hello slow");
    bench.network.heal(0);
    bench.network.loss(0, 30);
    let mut text = "hello slow".to_owned();
    for _ in 0..40 {
        bench.board(0).say(socket, "+");
        text.push('+');
        bench.run(SECOND);
    }
    bench.run(60 * SECOND);
    assert_eq!(bench.last_heard(), text);
    let counts = bench.network.counts(0, Direction::Up);
    assert!(counts.lost > 0 && counts.lost < counts.sent / 2, "{counts:?}");
}

#[test]
fn a_run_is_a_function_of_its_seed() {
    let run = |seed| {
        let mut bench = Bench::new(1);
        bench.network = Network::new(&Plan { seed, boards: vec!["a".to_owned()], port: PORT });
        bench.on(0);
        bench.network.loss(0, 20);
        bench.run(80 * SECOND);
        let socket = bench.board(0).connect();
        for _ in 0..20 {
            bench.run(SECOND);
            if bench.board(0).tcp(socket).can_send() {
                bench.board(0).say(socket, "word");
            }
        }
        bench.network.capture(0)
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn a_board_that_boots_a_hundred_times_leaves_a_bounded_number_of_connections() {
    let mut bench = Bench::new(2);
    bench.boot(1);
    bench.board(1).connect();
    for _ in 0..100 {
        bench.boot(0);
        for _ in 0..2 {
            bench.board(0).connect();
        }
        bench.run(SECOND / 10);
        bench.off(0);
        assert!(bench.network.connections() <= MOST_CONNECTIONS + 1);
    }
    assert_eq!(bench.served.len(), 201);
    let open = bench.served.values().filter(|served| !served.gone).count();
    assert!(open <= MOST_CONNECTIONS + 1, "{open} are open to the control plane");
    let (first, other) = bench.served.first_key_value().unwrap();
    assert!(!other.gone, "{first:?} is the other board's, and untouched");
}

#[test]
fn a_flood_of_first_segments_is_bounded_too() {
    let mut bench = Bench::new(1);
    bench.boot(0);
    for _ in 0..500 {
        let handle = bench.board(0).connect();
        bench.run(SECOND / 100);
        // Gone without a word: neither end nor reset.
        bench.board(0).sockets.remove(handle);
    }
    assert!(bench.network.connections() <= MOST_CONNECTIONS);
}

/// A first segment of board 0 to the gateway.
fn opening() -> Vec<u8> {
    let mut bench = Bench::new(1);
    bench.boot(0);
    // The gateway asks whose address it is only once; its frames are not looked at here.
    bench.board(0).connect();
    let mut found = None;
    for _ in 0..1000 {
        let (now, board) = (bench.now, bench.boards[0].as_mut().unwrap());
        let time = instant(now);
        board.interface.poll(time, &mut board.card, &mut board.sockets);
        while let Some(frame) = board.card.outbox.pop_front() {
            if EthernetFrame::new_unchecked(&frame).ethertype() == EthernetProtocol::Ipv4 {
                found = Some(frame);
            } else {
                bench.network.send(now, 0, &frame);
            }
        }
        bench.network.poll(now);
        while let Some((_, frame)) = bench.network.next_frame() {
            bench.boards[0].as_mut().unwrap().card.inbox.push_back(frame.to_vec());
        }
        if found.is_some() {
            break;
        }
        bench.now += 10_000;
    }
    let frame = found.expect("a segment was sent");
    let packet = Ipv4Packet::new_checked(EthernetFrame::new_unchecked(&frame[..]).payload()).unwrap();
    assert_eq!(packet.next_header(), IpProtocol::Tcp);
    assert!(TcpPacket::new_checked(packet.payload()).unwrap().syn());
    frame
}

/// Board 0 asks where the gateway is.
fn arp_request() -> Vec<u8> {
    let mac = address::board_mac(0).0;
    let mut arp = [[0xff; 6], mac].concat();
    arp.extend([0x08, 0x06, 0, 1, 0x08, 0, 6, 4, 0, 1]);
    let (from, to) = (address::board(0).octets(), address::GATEWAY.octets());
    arp.extend([&mac[..], &from, &[0; 6], &to].concat());
    arp
}

fn powered() -> Network {
    let mut network = Network::new(&Plan { seed: 1, boards: vec!["a".to_owned()], port: PORT });
    network.power_returned(0);
    network
}

#[test]
fn a_segment_that_is_repeated_asks_once_and_fragments_ask_never() {
    let frame = opening();
    let mut network = powered();
    // The gateway knows whom it would answer.
    network.send(0, 0, &arp_request());
    assert!(network.next_frame().is_some());
    for _ in 0..5 {
        network.send(0, 0, &frame);
    }
    assert!(matches!(network.next_event(), Some(Event::Asked(_))));
    assert_eq!((network.next_event(), network.next_frame()), (None, None), "neither taken nor refused yet");
    let mut fragment = frame;
    let mut ethernet = EthernetFrame::new_unchecked(&mut fragment[..]);
    let mut packet = Ipv4Packet::new_unchecked(ethernet.payload_mut());
    packet.set_more_frags(true);
    packet.fill_checksum();
    let mut network = powered();
    network.send(0, 0, &fragment);
    assert_eq!((network.next_event(), network.next_frame()), (None, None));
}

#[test]
fn garbage_is_survived_and_asks_for_nothing() {
    let whole = opening();
    let mut network = powered();
    for length in 0..whole.len() {
        network.send(0, 0, &whole[..length]);
    }
    for place in 14..whole.len() {
        let mut broken = whole.clone();
        broken[place] ^= 0xff;
        network.send(0, 0, &broken);
        assert_eq!(network.next_event(), None, "byte {place}");
    }
    let mut drawn = 1_u64;
    for _ in 0..20_000 {
        let mut frame = whole.clone();
        for _ in 0..4 {
            drawn = drawn.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let (place, value) = ((drawn >> 33) as usize % frame.len(), (drawn >> 24) as u8);
            frame[place] = value;
        }
        network.send(0, 0, &frame);
        while network.next_frame().is_some() {}
        while let Some(Event::Asked(id)) = network.next_event() {
            network.refuse(0, id);
        }
    }
    network.send(0, 0, &whole);
    assert!(matches!(network.next_event(), Some(Event::Asked(_))), "it still works");
}

#[test]
fn the_capture_has_what_passed_the_switch() {
    let (bench, _) = talking();
    let file = bench.network.capture(1_000_000);
    let hello = file.windows(5).filter(|window| *window == b"hello").count();
    let welcome = file.windows(7).filter(|window| *window == b"welcome").count();
    assert_eq!((hello, welcome), (1, 1));
}

#[test]
fn the_gateway_answers_an_echo() {
    let mut network = powered();
    let mut frame = [address::GATEWAY_MAC.0, address::board_mac(0).0].concat();
    frame.extend([0x08, 0x00]);
    let from = address::board(0).octets();
    network.send(0, 0, &arp_request());
    let (_, answer) = network.next_frame().expect("an ARP reply");
    assert_eq!(answer[20..28], [[0, 2], [0x52, 0x54], [0x00, 0x72], [0x67, 0xff]].concat());
    let mut ip = vec![0x45, 0, 0, 28, 0, 0, 0, 0, 64, 1, 0, 0];
    ip.extend([from, address::GATEWAY.octets()].concat());
    Ipv4Packet::new_unchecked(&mut ip[..]).fill_checksum();
    frame.extend(ip);
    // Echo request, number 7 of series 9.
    frame.extend([8, 0, 0xf7, 0xef, 0, 9, 0, 7]);
    network.send(0, 0, &frame);
    let (_, answer) = network.next_frame().expect("an echo");
    assert_eq!(answer[34], 0, "an echo reply");
    assert_eq!(answer[38..42], [0, 9, 0, 7]);
}
