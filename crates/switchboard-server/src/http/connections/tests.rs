//! Who is let in, and who has to go.

use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

use super::*;

fn is_out(seat: &Seat) -> bool {
    seat.manners.thrown_out.is_cancelled()
}

async fn after(connections: &Connections, time: Duration) {
    tokio::time::advance(time).await;
    connections.sweep(Instant::now());
}

#[tokio::test]
async fn the_stranger_who_dawdled_for_longest_makes_room_and_nobody_else() {
    let connections = Connections::default();
    let mut seats: Vec<Seat> = (0..MOST).map(|_| connections.seat()).collect();
    seats[0].is_known();
    let being_answered = seats[1].serve();
    seats.push(connections.seat());
    let out: Vec<usize> = (0..seats.len()).filter(|at| is_out(&seats[*at])).collect();
    assert_eq!(out, [2]);
    drop(being_answered);

    for seat in &seats {
        seat.is_known();
    }
    let mut answering: Vec<Serving> = seats.iter().map(Seat::serve).collect();
    assert_eq!(connections.seat().place(), Place::Doorway, "everyone is being answered");
    seats.pop();
    assert_eq!(connections.seat().place(), Place::Seat, "one that was left is free");

    // Whoever is known and asks nothing makes room before whoever only listens.
    let taken = connections.seat();
    taken.is_known();
    let busy = taken.serve();
    seats[5].listens();
    drop(answering.swap_remove(7));
    let newcomer = connections.seat();
    newcomer.is_known();
    let _busy_too = newcomer.serve();
    assert!(is_out(&seats[7]) && !is_out(&seats[5]));
    assert_eq!(connections.seat().place(), Place::Seat);
    assert!(is_out(&seats[5]));
    drop(busy);
}

#[tokio::test]
async fn whoever_finds_no_seat_waits_in_the_doorway_until_others_come() {
    let connections = Connections::default();
    let seats: Vec<Seat> = (0..MOST).map(|_| connections.seat()).collect();
    let _answering: Vec<Serving> = seats.iter().map(Seat::serve).collect();
    let waiting: Vec<Seat> = (0..=DOORWAY).map(|_| connections.seat()).collect();
    assert!(waiting.iter().all(|seat| seat.place() == Place::Doorway));
    let out: Vec<usize> = (0..waiting.len()).filter(|at| is_out(&waiting[*at])).collect();
    assert_eq!(out, [0]);
    assert!(!seats.iter().any(is_out));
    drop(waiting);
    assert_eq!(connections.seats().doorway.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_head_has_seconds_and_an_idle_connection_minutes() {
    let connections = Connections::default();
    let seat = connections.seat();
    after(&connections, HEAD - Duration::from_millis(1)).await;
    assert!(!is_out(&seat));
    let serving = seat.serve();
    after(&connections, IDLE * 10).await;
    assert!(!is_out(&seat), "an answer may take its time");
    drop(serving);
    after(&connections, IDLE - Duration::from_millis(1)).await;
    assert!(!is_out(&seat));
    after(&connections, Duration::from_millis(1)).await;
    assert!(is_out(&seat));
}

#[tokio::test(start_paused = true)]
async fn the_first_byte_of_the_next_request_starts_the_clock_of_its_head() {
    let connections = Connections::default();
    let seat = connections.seat();
    let (ours, mut theirs) = duplex(64);
    let mut watched = seat.watch(ours);
    drop(seat.serve());
    after(&connections, HEAD * 2).await;
    assert!(!is_out(&seat));
    theirs.write_all(b"P").await.unwrap();
    watched.read_u8().await.unwrap();
    after(&connections, HEAD).await;
    assert!(is_out(&seat));
}

#[tokio::test(start_paused = true)]
async fn whoever_takes_nothing_for_too_long_has_to_go() {
    let connections = Connections::default();
    let seat = connections.seat();
    let _answering = seat.serve();
    let (ours, mut theirs) = duplex(4);
    let mut watched = seat.watch(ours);
    let mut write = Box::pin(watched.write_all(b"more than it holds"));
    let mut cx = Context::from_waker(std::task::Waker::noop());
    assert!(write.as_mut().poll(&mut cx).is_pending());
    after(&connections, STALLED - Duration::from_millis(1)).await;
    assert!(!is_out(&seat));

    // A little is enough to stay.
    theirs.read_u32().await.unwrap();
    assert!(write.as_mut().poll(&mut cx).is_pending());
    after(&connections, STALLED - Duration::from_millis(1)).await;
    assert!(!is_out(&seat));
    after(&connections, Duration::from_millis(1)).await;
    assert!(is_out(&seat));
}

#[tokio::test(start_paused = true)]
async fn whoever_takes_nothing_while_much_is_unsent_has_to_go_at_once() {
    let connections = Connections::default();
    let (slow, quick) = (connections.seat(), connections.seat());
    let _answering = (slow.serve(), quick.serve());
    let (ours, _theirs) = duplex(4);
    let mut watched = slow.watch(ours);
    let mut write = Box::pin(watched.write_all(b"more than it holds"));
    let mut cx = Context::from_waker(std::task::Waker::noop());
    assert!(write.as_mut().poll(&mut cx).is_pending());

    let pass = |unsent, time| {
        let connections = connections.clone();
        async move { tokio::time::timeout(time, connections.relieve(&unsent)).await }
    };
    assert!(pass(Unsent::default(), STALLED / 2).await.is_err());
    assert!(!is_out(&slow), "there is room");
    let (unsent, _frame) = Unsent::more_than_allowed();
    assert!(pass(unsent, STALLED / 2).await.is_err());
    assert!(is_out(&slow) && !is_out(&quick));
}

#[tokio::test(start_paused = true)]
async fn connection_that_takes_nothing_is_closed_sooner_when_no_room_is_left() {
    let connections = Connections::default();
    let is_closed_by = async |unsent: Unsent| {
        let seat = connections.seat();
        let _answering = seat.serve();
        let (ours, _theirs) = duplex(4);
        let mut watched = seat.watch(ours);
        let mut write = Box::pin(watched.write_all(b"more than it holds"));
        let mut cx = Context::from_waker(std::task::Waker::noop());
        assert!(write.as_mut().poll(&mut cx).is_pending());
        let moment = 2 * STALLED_WITHOUT_ROOM;
        assert!(tokio::time::timeout(moment, connections.relieve(&unsent)).await.is_err());
        is_out(&seat)
    };
    let (much, _frame) = Unsent::more_than_allowed();
    assert!(!is_closed_by(much).await);
    let (full, _frame) = Unsent::without_room();
    assert!(is_closed_by(full).await);
}
