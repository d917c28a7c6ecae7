//! How many connections others have to this node, in all and from one address.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::meeting::MeetError;

/// Those who were let in. Cheap to clone; of all threads.
#[derive(Clone, Debug)]
pub struct Guests(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    count_max: usize,
    per_address_max: usize,
    /// Addresses without a connection are not in it.
    connections: Mutex<BTreeMap<IpAddr, usize>>,
    refused: AtomicU64,
}

/// One connection that was let in; gives up its place when it is dropped.
#[derive(Debug)]
pub(super) struct Guest {
    guests: Guests,
    address: IpAddr,
}

/// As many as come.
impl Default for Guests {
    fn default() -> Self {
        Guests::new(usize::MAX, usize::MAX)
    }
}

impl Guests {
    /// So many in all, and so many of one address.
    pub fn new(count_max: usize, per_address_max: usize) -> Guests {
        let (connections, refused) = Default::default();
        Guests(Arc::new(Inner { count_max, per_address_max, connections, refused }))
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.connections().values().sum()
    }

    /// How many there may be.
    pub fn count_max(&self) -> usize {
        self.0.count_max
    }

    /// How many had to go since there were too many, or too many at their handshake.
    pub fn refused(&self) -> u64 {
        self.0.refused.load(Ordering::Relaxed)
    }

    /// One more, if there may be.
    ///
    /// # Errors
    /// [`MeetError::Crowded`], with how many there are.
    pub(super) fn let_in(&self, address: IpAddr) -> Result<Guest, MeetError> {
        let address = address.to_canonical();
        let connections = &mut *self.connections();
        let count = connections.values().sum();
        let of_address = connections.get(&address).copied().unwrap_or(0);
        if count >= self.0.count_max || of_address >= self.0.per_address_max {
            self.note_refused();
            return Err(MeetError::Crowded { count, of_address });
        }
        connections.insert(address, of_address + 1);
        Ok(Guest { guests: self.clone(), address })
    }

    pub(super) fn note_refused(&self) {
        self.0.refused.fetch_add(1, Ordering::Relaxed);
    }

    fn connections(&self) -> MutexGuard<'_, BTreeMap<IpAddr, usize>> {
        self.0.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        let connections = &mut *self.guests.connections();
        match connections.get_mut(&self.address) {
            Some(count) if *count > 1 => *count -= 1,
            _ => _ = connections.remove(&self.address),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_are_let_in_of_one_address_and_in_all() {
        let guests = Guests::new(3, 2);
        let [one, other, third] = ["10.0.0.1", "10.0.0.2", "10.0.0.3"].map(|text| text.parse().unwrap());
        let of_one = [guests.let_in(one).unwrap(), guests.let_in(one).unwrap()];
        let mapped = "::ffff:10.0.0.1".parse().unwrap();
        for same in [one, mapped] {
            let crowded = guests.let_in(same).unwrap_err();
            assert!(matches!(crowded, MeetError::Crowded { count: 2, of_address: 2 }), "{crowded:?}");
        }
        let _of_other = guests.let_in(other).unwrap();
        let crowded = guests.let_in(third).unwrap_err();
        assert!(matches!(crowded, MeetError::Crowded { count: 3, of_address: 0 }), "{crowded:?}");
        assert_eq!((guests.count(), guests.refused()), (3, 3));
        drop(of_one);
        assert_eq!(guests.count(), 1);
        assert!(guests.let_in(one).is_ok());
    }
}
