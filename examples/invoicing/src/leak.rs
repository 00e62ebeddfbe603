//! A fault on purpose: a check against requests sent twice that forgets to forget. Each request adds an entry, and each
//! walks all of them, so the service grows slow long before it grows large.

use std::collections::LinkedList;
use std::sync::{Mutex, PoisonError};

/// Requests seen since the start.
#[derive(Debug, Default)]
pub struct Seen {
    entries: Mutex<LinkedList<Entry>>,
}

#[derive(Debug)]
struct Entry {
    request: u64,
    path: Box<str>,
}

impl Seen {
    /// Looks for a request among all that were seen, then adds it. Tells whether it was there.
    pub fn remember(&self, request: u64, path: &str) -> bool {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let known = entries
            .iter()
            .filter(|entry| entry.request == request && *entry.path == *path)
            .count();
        entries.push_back(Entry {
            request,
            path: path.into(),
        });
        known > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_seen_is_found_and_all_is_kept() {
        let seen = Seen::default();
        assert!(!seen.remember(1, "/invoices"));
        assert!(!seen.remember(2, "/invoices"));
        assert!(seen.remember(1, "/invoices"));
        assert_eq!(seen.entries.lock().unwrap().len(), 3);
    }
}
