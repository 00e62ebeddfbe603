//! What the service counts about itself, and the page that shows it.

use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;

use crate::image::Image;

/// What a request asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    List,
    Fetch,
    Create,
    Health,
    Status,
    Reload,
    Heap,
    /// A path or method that the service does not have.
    Other,
}

impl Route {
    /// Whether it is what the service is there for, and not about the service itself.
    #[must_use]
    pub fn is_business(self) -> bool {
        matches!(self, Self::List | Self::Fetch | Self::Create)
    }
}

/// Counts since the start of the process. None ever falls.
#[derive(Debug, Default)]
pub struct Counters {
    served: [AtomicU64; 8],
    jobs_done: AtomicU64,
    reloads: AtomicU64,
}

impl Counters {
    /// A request was answered, whatever the answer was.
    pub fn served(&self, route: Route) {
        self.served[route as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Jobs were done.
    pub fn jobs_done(&self, jobs: u64) {
        self.jobs_done.fetch_add(jobs, Ordering::Relaxed);
    }

    /// The application image was replaced.
    pub fn reloaded(&self) {
        self.reloads.fetch_add(1, Ordering::Relaxed);
    }

    /// Requests answered so far.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.served
            .iter()
            .map(|count| count.load(Ordering::Relaxed))
            .sum()
    }

    /// Requests for invoices answered so far.
    #[must_use]
    pub fn business(&self) -> u64 {
        [Route::List, Route::Fetch, Route::Create]
            .map(|route| self.served[route as usize].load(Ordering::Relaxed))
            .iter()
            .sum()
    }

    /// The page of the moment.
    #[must_use]
    pub fn page(&self, unfinished: Option<i64>, waiting: usize, image: &Image) -> Page {
        let of = |route: Route| self.served[route as usize].load(Ordering::Relaxed);
        let by_route = ByRoute {
            list: of(Route::List),
            fetch: of(Route::Fetch),
            create: of(Route::Create),
            healthz: of(Route::Health),
            status: of(Route::Status),
            reload: of(Route::Reload),
            heap: of(Route::Heap),
            other: of(Route::Other),
        };
        Page {
            jobs: Jobs {
                unfinished,
                done: self.jobs_done.load(Ordering::Relaxed),
            },
            requests: Requests {
                total: self.total(),
                by_route,
            },
            reloads: self.reloads.load(Ordering::Relaxed),
            database: Waiting { waiting },
            image: Held {
                release: image.release(),
                pieces: image.pieces(),
            },
        }
    }
}

/// The status page.
#[derive(Debug, Serialize)]
pub struct Page {
    jobs: Jobs,
    requests: Requests,
    reloads: u64,
    database: Waiting,
    image: Held,
}

#[derive(Debug, Serialize)]
struct Jobs {
    /// Jobs in the queue; null while the database cannot be asked.
    unfinished: Option<i64>,
    /// Done by this process since its start.
    done: u64,
}

#[derive(Debug, Serialize)]
struct Requests {
    total: u64,
    by_route: ByRoute,
}

#[derive(Debug, Serialize)]
struct ByRoute {
    list: u64,
    fetch: u64,
    create: u64,
    healthz: u64,
    status: u64,
    reload: u64,
    heap: u64,
    other: u64,
}

#[derive(Debug, Serialize)]
struct Waiting {
    /// Requests that wait for a connection.
    waiting: usize,
}

/// The application image of the moment.
#[derive(Debug, Serialize)]
struct Held {
    release: u64,
    /// Texts in it.
    pieces: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_shows_what_was_counted() {
        let counters = Counters::default();
        counters.served(Route::List);
        counters.served(Route::List);
        counters.served(Route::Other);
        counters.jobs_done(5);
        counters.reloaded();
        let page = serde_json::to_value(counters.page(None, 3, &Image::build(2, 1000))).unwrap();
        assert_eq!(page["requests"]["total"], 3);
        assert_eq!(page["requests"]["by_route"]["list"], 2);
        assert_eq!(page["requests"]["by_route"]["other"], 1);
        assert_eq!(
            page["jobs"],
            serde_json::json!({ "unfinished": null, "done": 5 })
        );
        assert_eq!(page["reloads"], 1);
        assert_eq!(page["database"]["waiting"], 3);
        assert_eq!(page["image"]["release"], 2);
    }
}
