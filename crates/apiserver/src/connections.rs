//! Which connections may be open: a bound below the process's file limit, a share of it for
//! clients that have not said who they are, and a reserve for administrators.
//!
//! A connection begins as unidentified. It becomes that of a client when its certificate or the
//! token of a request proves who it is. When a share is full, a connection of it is closed in
//! favor of the newcomer: an unidentified one by another unidentified one, a client's idle one by
//! another client's. Connections of administrators (`system:masters`) are closed for nobody but
//! another administrator.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::caller::{Caller, MASTERS, UNAUTHENTICATED};
use crate::status::{ApiResult, Status};

/// How long an unidentified connection may be without a request, its TLS handshake included.
pub(crate) const UNIDENTIFIED_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a connection with a client certificate may stay open before its first request.
const FIRST_REQUEST_TIMEOUT: Duration = Duration::from_secs(90);

/// How many connections may be open, by what is known of their clients.
///
/// | file limit | total | unidentified | clients | reserve |
/// |-----------:|------:|-------------:|--------:|--------:|
/// |        256 |   128 |           16 |     104 |       8 |
/// |      1,024 |   512 |           64 |     416 |      32 |
/// |      8,192 | 4,096 |          512 |   3,328 |     256 |
/// |  1,048,576 | 4,096 |          512 |   3,328 |     256 |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shares {
    pub(crate) total: usize,
    /// For connections whose client has not said who it is.
    pub(crate) unidentified: usize,
    pub(crate) clients: usize,
    /// For administrators, besides what is free among the clients' connections.
    pub(crate) reserve: usize,
}

/// The open connections of a listener.
#[derive(Debug)]
pub(crate) struct Connections {
    shares: Shares,
    table: Mutex<ConnectionTable>,
}

/// One open connection, which counts until it is dropped.
#[derive(Debug)]
pub struct ClientConnection {
    number: u64,
    all: Arc<Connections>,
    hang_up: Arc<Notify>,
}

/// Counts a request of a connection until its response is sent.
#[derive(Debug)]
pub(crate) struct Busy(Arc<ClientConnection>);

#[derive(Debug, Default)]
struct ConnectionTable {
    last_number: u64,
    open: BTreeMap<u64, OpenConnection>,
}

/// What is known of an open connection.
#[derive(Debug)]
struct OpenConnection {
    address: IpAddr,
    standing: ClientStanding,
    requests_in_flight: usize,
    has_asked: bool,
    quiet_since: Instant,
    hang_up: Arc<Notify>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClientStanding {
    Unidentified,
    Client,
    Administrator,
}

impl Shares {
    /// Half of the files that the process may open, up to `most`. The other half is for the store,
    /// webhooks and connections that are being closed.
    pub(crate) fn of(file_limit: Option<u64>, most: usize) -> Self {
        let half = file_limit.and_then(|files| usize::try_from(files / 2).ok());
        let total = half.unwrap_or(most).min(most).max(16);
        let (unidentified, reserve) = (total / 8, (total / 16).max(2));
        Self { total, unidentified, clients: total - unidentified - reserve, reserve }
    }

    /// By the file limit of this process as it is now.
    pub(crate) fn of_process(most: usize) -> Self {
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
        Self::of(limit.current, most)
    }
}

impl Connections {
    pub(crate) fn new(shares: Shares) -> Arc<Self> {
        Arc::new(Self { shares, table: Mutex::default() })
    }

    /// Counts a new connection, as an unidentified one.
    pub(crate) fn enter(self: &Arc<Self>, address: IpAddr) -> Arc<ClientConnection> {
        let mut table = self.table.lock();
        if table.count(ClientStanding::Unidentified) >= self.shares.unidentified {
            let oldest = table
                .longest_quiet(|connection| connection.standing == ClientStanding::Unidentified);
            table.close(oldest);
        }
        table.last_number += 1;
        let number = table.last_number;
        let hang_up = Arc::new(Notify::new());
        let connection = OpenConnection {
            address,
            standing: ClientStanding::Unidentified,
            requests_in_flight: 0,
            has_asked: false,
            quiet_since: Instant::now(),
            hang_up: Arc::clone(&hang_up),
        };
        table.open.insert(number, connection);
        Arc::new(ClientConnection { number, all: Arc::clone(self), hang_up })
    }
}

impl ClientConnection {
    /// Counts the connection as that of `caller`, who has proved to be that; refuses if there is
    /// no room for one more.
    pub(crate) fn identify(&self, caller: &Caller) -> ApiResult<()> {
        if caller.is_in(UNAUTHENTICATED) && !caller.is_in(MASTERS) {
            return Ok(());
        }
        let standing = if caller.is_in(MASTERS) {
            ClientStanding::Administrator
        } else {
            ClientStanding::Client
        };
        let mut table = self.all.table.lock();
        let Some(connection) = table.open.get(&self.number) else { return Ok(()) };
        // One that was an administrator's once remains one, whoever else uses it.
        if connection.standing == standing || connection.standing == ClientStanding::Administrator {
            return Ok(());
        }
        let address = connection.address;
        table.make_room(standing, address, self.all.shares)?;
        if let Some(connection) = table.open.get_mut(&self.number) {
            connection.standing = standing;
        }
        Ok(())
    }

    /// Counts a request until its response is sent.
    pub(crate) fn begin(self: &Arc<Self>) -> Busy {
        if let Some(connection) = self.all.table.lock().open.get_mut(&self.number) {
            connection.requests_in_flight += 1;
            connection.has_asked = true;
        }
        Busy(Arc::clone(self))
    }

    /// Has the connection closed.
    pub(crate) fn hang_up(&self) {
        self.hang_up.notify_one();
    }

    /// Completes when the connection is to be closed: others need its place, or it is too slow.
    pub(crate) async fn over(&self) {
        loop {
            let late = async {
                match self.deadline() {
                    Some(deadline) => tokio::time::sleep_until(deadline).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = self.hang_up.notified() => return,
                () = late => {}
            }
            if self.deadline().is_some_and(|deadline| deadline <= Instant::now()) {
                return;
            }
        }
    }

    /// Until when a request must have come; none if the connection may be idle.
    fn deadline(&self) -> Option<Instant> {
        let table = self.all.table.lock();
        let connection = table.open.get(&self.number)?;
        match connection.standing {
            ClientStanding::Unidentified if connection.requests_in_flight == 0 => {
                Some(connection.quiet_since + UNIDENTIFIED_TIMEOUT)
            }
            // Looked at again when the request may be done.
            ClientStanding::Unidentified => Some(Instant::now() + UNIDENTIFIED_TIMEOUT),
            _ if !connection.has_asked => Some(connection.quiet_since + FIRST_REQUEST_TIMEOUT),
            _ => None,
        }
    }
}

impl Drop for ClientConnection {
    fn drop(&mut self) {
        self.all.table.lock().open.remove(&self.number);
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        if let Some(connection) = self.0.all.table.lock().open.get_mut(&self.0.number) {
            connection.requests_in_flight -= 1;
            connection.quiet_since = Instant::now();
        }
    }
}

impl ConnectionTable {
    fn count(&self, standing: ClientStanding) -> usize {
        self.open.values().filter(|connection| connection.standing == standing).count()
    }

    /// Makes room for one more connection of a client or an administrator.
    fn make_room(
        &mut self,
        standing: ClientStanding,
        address: IpAddr,
        shares: Shares,
    ) -> ApiResult<()> {
        let (clients, administrators) =
            (self.count(ClientStanding::Client), self.count(ClientStanding::Administrator));
        let is_full = match standing {
            // The reserve is not theirs.
            ClientStanding::Client => clients >= shares.clients || self.is_taken(shares),
            _ => self.is_taken(shares),
        };
        if !is_full {
            return Ok(());
        }
        let idle = |wanted| {
            self.longest_quiet(|connection: &OpenConnection| {
                connection.standing == wanted && connection.requests_in_flight == 0
            })
        };
        let mut victim = idle(ClientStanding::Client);
        if victim.is_none() && standing == ClientStanding::Administrator {
            victim = idle(ClientStanding::Administrator).or_else(|| {
                self.longest_quiet(|connection| connection.standing == ClientStanding::Client)
            });
        }
        let victim = victim.or_else(|| self.of_the_largest(address));
        if victim.is_none() {
            let message = format!(
                "too many connections: {clients} of clients and {administrators} of administrators \
                 are open and in use, {} are allowed; close some, or raise the file limit",
                shares.clients + shares.reserve
            );
            return Err(Status::too_many_requests(message, 1));
        }
        self.close(victim);
        Ok(())
    }

    fn is_taken(&self, shares: Shares) -> bool {
        let identified = self.open.len() - self.count(ClientStanding::Unidentified);
        identified >= shares.clients + shares.reserve
    }

    /// A client's connection, though it is in use, of the address that has the most of them: if
    /// that is twice as many as the newcomer's address would have.
    fn of_the_largest(&self, newcomer: IpAddr) -> Option<u64> {
        let is_client = |connection: &OpenConnection| connection.standing == ClientStanding::Client;
        let of = |address| {
            self.open
                .values()
                .filter(|connection| is_client(connection) && connection.address == address)
                .count()
        };
        let found = self.longest_quiet(is_client)?;
        let largest = self.open.get(&found)?.address;
        (of(largest) >= 2 * (of(newcomer) + 1)).then_some(found)
    }

    /// Of the connections that `counts`, and of the address with the most of these, the one whose
    /// last request is the longest ago.
    fn longest_quiet(&self, counts: impl Fn(&OpenConnection) -> bool) -> Option<u64> {
        let mut by_address: HashMap<IpAddr, usize> = HashMap::new();
        for connection in self.open.values().filter(|connection| counts(connection)) {
            *by_address.entry(connection.address).or_default() += 1;
        }
        let found = self.open.iter().filter(|(_, connection)| counts(connection));
        let first = found.min_by_key(|(number, connection)| {
            let held = by_address.get(&connection.address).copied().unwrap_or_default();
            (std::cmp::Reverse(held), connection.address, connection.quiet_since, **number)
        });
        first.map(|(number, _)| *number)
    }

    /// Has a connection closed; its place is free at once.
    fn close(&mut self, number: Option<u64>) {
        if let Some(connection) = number.and_then(|number| self.open.remove(&number)) {
            connection.hang_up.notify_one();
        }
    }
}

#[cfg(test)]
mod tests;
