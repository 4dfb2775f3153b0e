//! Who gets a connection when there are too many, and how long slow ones may stay.

use super::*;

fn somebody(groups: &[&str]) -> Caller {
    let groups = groups.iter().map(|group| (*group).to_owned()).collect();
    Caller { name: "somebody".to_owned(), groups, ..Caller::default() }
}

fn address(last: u8) -> IpAddr {
    IpAddr::from([192, 0, 2, last])
}

/// Two unidentified connections, four of clients, two in reserve.
fn small() -> Arc<Connections> {
    Connections::new(Shares { total: 8, unidentified: 2, clients: 4, reserve: 2 })
}

fn is_closed(connection: &ClientConnection) -> bool {
    !connection.all.table.lock().open.contains_key(&connection.number)
}

#[test]
fn half_of_the_files_are_for_connections() {
    let shares = |files, most| {
        let Shares { total, unidentified, clients, reserve } = Shares::of(files, most);
        assert_eq!(unidentified + clients + reserve, total);
        (total, unidentified, clients, reserve)
    };
    assert_eq!(shares(Some(256), 4_096), (128, 16, 104, 8));
    assert_eq!(shares(Some(1_024), 4_096), (512, 64, 416, 32));
    assert_eq!(shares(Some(1 << 20), 4_096), (4_096, 512, 3_328, 256));
    assert_eq!(shares(None, 4_096), (4_096, 512, 3_328, 256), "no limit");
    assert_eq!(shares(Some(1), 4_096), (16, 2, 12, 2), "too few to serve anybody otherwise");
    assert!(Shares::of_process(64).total <= 64);
}

#[test]
fn unidentified_connections_give_way_to_each_other_alone() {
    let open = small();
    let client = open.enter(address(1));
    client.identify(&somebody(&["dev"])).unwrap();
    let (first, second) = (open.enter(address(2)), open.enter(address(2)));
    first.identify(&Caller::anonymous()).unwrap();
    let third = open.enter(address(3));
    assert_eq!(
        [&first, &second, &third, &client].map(|one| is_closed(one)),
        [true, false, false, false]
    );
    // The address that has the most of them gives one up.
    let fourth = open.enter(address(3));
    let fifth = open.enter(address(4));
    assert_eq!([&third, &fourth, &fifth].map(|one| is_closed(one)), [true, false, false]);
}

#[test]
fn an_idle_connection_gives_way_and_one_in_use_does_not() {
    let open = small();
    let client = || {
        let one = open.enter(address(1));
        one.identify(&somebody(&["dev"])).map(|()| one)
    };
    let clients: Vec<_> = (0..4).map(|_| client().unwrap()).collect();
    let busy: Vec<_> = clients[1..].iter().map(ClientConnection::begin).collect();
    let newcomer = client().unwrap();
    assert!(is_closed(&clients[0]), "it was idle");
    let _request = newcomer.begin();
    let refused = client().unwrap_err();
    assert_eq!(refused.code, 429);
    assert!(
        refused.message.contains("4 of clients and 0 of administrators"),
        "{}",
        refused.message
    );
    // An address that has few of them takes one of that which has the most.
    let other = open.enter(address(9));
    other.identify(&somebody(&["dev"])).unwrap();
    assert!(is_closed(&clients[1]));
    drop(busy);
}

#[test]
fn administrators_have_a_reserve() {
    let open = small();
    let enter = |groups: &[&str]| {
        let one = open.enter(address(1));
        one.identify(&somebody(groups)).map(|()| one)
    };
    let clients: Vec<_> = (0..4).map(|_| enter(&["dev"]).unwrap()).collect();
    let _busy: Vec<_> = clients.iter().map(ClientConnection::begin).collect();
    assert!(enter(&["dev"]).is_err());
    let first = enter(&[MASTERS]).unwrap();
    let second = enter(&[MASTERS]).unwrap();
    let _requests = (first.begin(), second.begin());
    assert!(enter(&["dev"]).is_err(), "the reserve is not for clients");
    let third = enter(&[MASTERS]).unwrap();
    let closed = clients.iter().filter(|one| is_closed(one)).count();
    assert_eq!((closed, is_closed(&third)), (1, false), "a client's goes, though it is in use");
}

#[test]
fn slow_connections_have_a_deadline() {
    let open = small();
    let until_closed = |connection: &ClientConnection| {
        let place = connection.all.table.lock().open[&connection.number].quiet_since;
        connection.deadline().map(|deadline| deadline - place)
    };
    let one = open.enter(address(1));
    assert_eq!(until_closed(&one), Some(UNIDENTIFIED_TIMEOUT));
    let other = open.enter(address(1));
    other.identify(&somebody(&["dev"])).unwrap();
    assert_eq!(until_closed(&other), Some(FIRST_REQUEST_TIMEOUT), "it never asked for anything");
    drop(other.begin());
    assert_eq!(until_closed(&other), None, "HTTP keeps the time between requests");
}

#[tokio::test]
async fn a_connection_that_gives_way_is_closed() {
    let open = small();
    let first = open.enter(address(1));
    let _others = (open.enter(address(1)), open.enter(address(1)));
    tokio::time::timeout(Duration::from_secs(5), first.over()).await.unwrap();
}
