//! A fault on purpose: a check against requests sent twice that forgets to forget. Each request adds a key, and each walks
//! all of them, so the service grows slow long before it grows large.

use std::sync::{Mutex, PoisonError};

/// Keys of the requests seen since the start.
#[derive(Debug, Default)]
pub struct Seen {
    keys: Mutex<Vec<Box<str>>>,
}

impl Seen {
    /// Looks for a request among all that were seen, then adds it. Gives back how often it was there.
    pub fn remember(&self, request: u64, path: &str) -> usize {
        let key = format!("{request:016x} {path:<20}").into_boxed_str();
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        let times = keys.iter().filter(|known| **known == key).count();
        keys.push(key);
        times
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_seen_is_found_and_all_is_kept() {
        let seen = Seen::default();
        assert_eq!(seen.remember(1, "/invoices"), 0);
        assert_eq!(seen.remember(2, "/invoices"), 0);
        assert_eq!(seen.remember(1, "/invoices"), 1);
        assert_eq!(seen.keys.lock().unwrap().len(), 3);
    }
}
