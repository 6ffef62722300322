//! Which connections are served, and which are closed.

use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

use super::*;

fn is_out(slot: &Slot) -> bool {
    slot.connection.evicted.is_cancelled()
}

async fn after(connections: &Connections, time: Duration) {
    tokio::time::advance(time).await;
    connections.sweep(Instant::now());
}

#[tokio::test]
async fn new_connection_closes_oldest_unauthenticated_or_idle_connection() {
    let connections = Connections::default();
    let mut slots: Vec<Slot> = (0..MOST).map(|_| connections.slot()).collect();
    slots[0].authenticated();
    let being_answered = slots[1].serve();
    slots.push(connections.slot());
    let out: Vec<usize> = (0..slots.len()).filter(|at| is_out(&slots[*at])).collect();
    assert_eq!(out, [2]);
    drop(being_answered);

    for slot in &slots {
        slot.authenticated();
    }
    let mut answering: Vec<Serving> = slots.iter().map(Slot::serve).collect();
    assert_eq!(connections.slot().place(), ConnectionPlace::Overflow, "every connection is in use");
    slots.pop();
    assert_eq!(connections.slot().place(), ConnectionPlace::Slot, "a dropped slot is free");

    // A known idle connection is closed before one that only listens.
    let taken = connections.slot();
    taken.authenticated();
    let busy = taken.serve();
    slots[5].listens();
    drop(answering.swap_remove(7));
    let newcomer = connections.slot();
    newcomer.authenticated();
    let _busy_too = newcomer.serve();
    assert!(is_out(&slots[7]) && !is_out(&slots[5]));
    assert_eq!(connections.slot().place(), ConnectionPlace::Slot);
    assert!(is_out(&slots[5]));
    drop(busy);
}

#[tokio::test]
async fn number_of_connections_above_the_limit_is_bounded() {
    let connections = Connections::default();
    let slots: Vec<Slot> = (0..MOST).map(|_| connections.slot()).collect();
    let _answering: Vec<Serving> = slots.iter().map(Slot::serve).collect();
    let waiting: Vec<Slot> = (0..=OVERFLOW).map(|_| connections.slot()).collect();
    assert!(waiting.iter().all(|slot| slot.place() == ConnectionPlace::Overflow));
    let out: Vec<usize> = (0..waiting.len()).filter(|at| is_out(&waiting[*at])).collect();
    assert_eq!(out, [0]);
    assert!(!slots.iter().any(is_out));
    drop(waiting);
    assert_eq!(lock(&connections.slots).overflow.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn request_head_and_idle_connection_time_out() {
    let connections = Connections::default();
    let slot = connections.slot();
    after(&connections, HEAD - Duration::from_millis(1)).await;
    assert!(!is_out(&slot));
    let serving = slot.serve();
    after(&connections, IDLE * 10).await;
    assert!(!is_out(&slot), "an answer may take its time");
    drop(serving);
    after(&connections, IDLE - Duration::from_millis(1)).await;
    assert!(!is_out(&slot));
    after(&connections, Duration::from_millis(1)).await;
    assert!(is_out(&slot));
}

#[tokio::test(start_paused = true)]
async fn first_byte_of_a_request_starts_its_head_timeout() {
    let connections = Connections::default();
    let slot = connections.slot();
    let (ours, mut theirs) = duplex(64);
    let mut watched = slot.watch(ours);
    drop(slot.serve());
    after(&connections, HEAD * 2).await;
    assert!(!is_out(&slot));
    theirs.write_all(b"P").await.unwrap();
    watched.read_u8().await.unwrap();
    after(&connections, HEAD).await;
    assert!(is_out(&slot));
}

#[tokio::test(start_paused = true)]
async fn connection_with_a_stalled_write_times_out() {
    let connections = Connections::default();
    let slot = connections.slot();
    let _answering = slot.serve();
    let (ours, mut theirs) = duplex(4);
    let mut watched = slot.watch(ours);
    let mut write = Box::pin(watched.write_all(b"more than it holds"));
    let mut cx = Context::from_waker(std::task::Waker::noop());
    assert!(write.as_mut().poll(&mut cx).is_pending());
    after(&connections, STALLED - Duration::from_millis(1)).await;
    assert!(!is_out(&slot));

    // A single read keeps the connection open.
    theirs.read_u32().await.unwrap();
    assert!(write.as_mut().poll(&mut cx).is_pending());
    after(&connections, STALLED - Duration::from_millis(1)).await;
    assert!(!is_out(&slot));
    after(&connections, Duration::from_millis(1)).await;
    assert!(is_out(&slot));
}

#[tokio::test(start_paused = true)]
async fn stalled_connection_has_shorter_timeout_above_soft_limit() {
    let connections = Connections::default();
    let (slow, quick) = (connections.slot(), connections.slot());
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
async fn stalled_connection_has_shortest_timeout_above_hard_limit() {
    let connections = Connections::default();
    let is_closed_by = async |unsent: Unsent| {
        let slot = connections.slot();
        let _answering = slot.serve();
        let (ours, _theirs) = duplex(4);
        let mut watched = slot.watch(ours);
        let mut write = Box::pin(watched.write_all(b"more than it holds"));
        let mut cx = Context::from_waker(std::task::Waker::noop());
        assert!(write.as_mut().poll(&mut cx).is_pending());
        let moment = 2 * STALLED_WITHOUT_ROOM;
        assert!(tokio::time::timeout(moment, connections.relieve(&unsent)).await.is_err());
        is_out(&slot)
    };
    let (much, _frame) = Unsent::more_than_allowed();
    assert!(!is_closed_by(much).await);
    let (full, _frame) = Unsent::without_room();
    assert!(is_closed_by(full).await);
}
