//! Who is connected: one entry for each connection of the node, for `system_views.clients`.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use protocol::{StartupOptions, Version};

use crate::slow_queries::SlowQueries;
use crate::trace_chance::TraceChance;

/// The connections of the node. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clients {
    connected: Arc<Mutex<BTreeMap<SocketAddr, Arc<Client>>>>,
    exception_count: Arc<AtomicU64>,
    slow_queries: Arc<SlowQueries>,
    trace_chance: Arc<TraceChance>,
}

/// One connection.
#[derive(Debug, Default)]
pub(crate) struct Client {
    /// Only the connection's own thread counts; others read.
    request_count: AtomicU64,
    facts: Mutex<ClientFacts>,
}

/// What is known of a connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClientFacts {
    /// Once STARTUP was answered.
    pub(crate) protocol_version: Option<u8>,
    /// All of STARTUP's options.
    pub(crate) options: BTreeMap<String, String>,
    pub(crate) driver_name: Option<String>,
    pub(crate) driver_version: Option<String>,
    pub(crate) keyspace: Option<String>,
}

impl Clients {
    /// Nobody yet; statements that take too long for them go there.
    pub(crate) fn new(slow_queries: SlowQueries) -> Self {
        Clients { slow_queries: Arc::new(slow_queries), ..Clients::default() }
    }

    /// What takes them long.
    pub(crate) fn slow_queries(&self) -> &Arc<SlowQueries> {
        &self.slow_queries
    }

    /// How many of their requests are traced.
    pub(crate) fn trace_chance(&self) -> &TraceChance {
        &self.trace_chance
    }

    /// Enters a connection; it is taken out when the registration is dropped.
    pub(crate) fn enter(&self, peer: SocketAddr) -> Registration {
        let client = Arc::new(Client::default());
        lock(&self.connected).insert(peer, Arc::clone(&client));
        Registration { clients: self.clone(), peer, client }
    }

    /// Counts a request that failed through no fault of its own.
    pub(crate) fn count_exception(&self) {
        self.exception_count.fetch_add(1, Ordering::Relaxed);
    }

    /// Requests that failed through no fault of their own: a server error was answered, or a panic ended them.
    pub(crate) fn exception_count(&self) -> u64 {
        self.exception_count.load(Ordering::Relaxed)
    }
}

impl assembly::Clients for Clients {
    fn list(&self) -> Vec<assembly::ClientFacts> {
        lock(&self.connected).iter().map(|(peer, client)| client.facts_of(*peer)).collect()
    }
}

impl Client {
    fn facts_of(&self, address: SocketAddr) -> assembly::ClientFacts {
        let facts = lock(&self.facts).clone();
        assembly::ClientFacts {
            address,
            protocol_version: facts.protocol_version,
            options: facts.options,
            driver_name: facts.driver_name,
            driver_version: facts.driver_version,
            keyspace: facts.keyspace,
            request_count: self.request_count.load(Ordering::Relaxed),
        }
    }
}

/// A connection's own entry.
#[derive(Debug)]
pub(crate) struct Registration {
    clients: Clients,
    peer: SocketAddr,
    client: Arc<Client>,
}

impl Registration {
    /// The client's address.
    pub(crate) fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// Counts a request.
    pub(crate) fn count_request(&self) {
        // One writer: a load and a store are enough, and cheaper than an addition that others see whole.
        let count = self.client.request_count.load(Ordering::Relaxed);
        self.client.request_count.store(count.wrapping_add(1), Ordering::Relaxed);
    }

    /// Notes what STARTUP told.
    pub(crate) fn started(&self, version: Version, options: &StartupOptions) {
        let mut facts = lock(&self.client.facts);
        facts.protocol_version = Some(version.number());
        facts.options = options.all.iter().cloned().collect();
        facts.driver_name.clone_from(&options.driver_name);
        facts.driver_version.clone_from(&options.driver_version);
    }

    /// Notes the keyspace of `USE`.
    pub(crate) fn uses(&self, keyspace: &str) {
        lock(&self.client.facts).keyspace = Some(keyspace.to_owned());
    }
}

/// Counts the panic that it is dropped by, if it is.
pub(crate) struct PanicCount<'a>(pub(crate) &'a Clients);

impl Drop for PanicCount<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.count_exception();
        }
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let mut connected = lock(&self.clients.connected);
        // An address can come back before the old connection is gone.
        if connected.get(&self.peer).is_some_and(|client| Arc::ptr_eq(client, &self.client)) {
            connected.remove(&self.peer);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use assembly::Clients as _;

    use super::*;

    #[test]
    fn a_panic_counts_as_an_exception() {
        let clients = Clients::default();
        drop(PanicCount(&clients));
        assert_eq!(clients.exception_count(), 0);
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _counted = PanicCount(&clients);
            panic!("a panic on purpose");
        }));
        assert!(panicked.is_err());
        assert_eq!(clients.exception_count(), 1);
    }

    #[test]
    fn clients_are_listed_while_they_are_connected() {
        let clients = Clients::default();
        let peer = |port: u16| SocketAddr::from(([127, 0, 0, 1], port));
        let first = clients.enter(peer(1));
        let second = clients.enter(peer(2));
        first.count_request();
        first.count_request();
        first.uses("k");
        let listed = clients.list();
        assert_eq!(listed.len(), 2);
        assert_eq!((listed[0].address, listed[0].request_count), (peer(1), 2));
        assert_eq!(listed[0].keyspace.as_deref(), Some("k"));
        let again = clients.enter(peer(1));
        drop(first);
        assert_eq!(clients.list().len(), 2);
        drop((second, again));
        assert!(clients.list().is_empty());
    }
}
