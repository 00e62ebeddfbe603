//! From a request to its answer: which handler, which problem, what is counted.

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Body;
use hyper::{Method, Request, StatusCode};
use serde_json::json;

use crate::answer::{Answer, Problem, json};
use crate::counters::{Counters, Route};
use crate::database::Database;
use crate::heap;
use crate::image::Shelf;
use crate::invoice::{Draft, Page, Wanted};
use crate::leak::Seen;
use crate::slower::Slower;
use crate::store;

/// At most this many bytes of a body are read.
const LONGEST_BODY: usize = 64 << 10;

/// All that requests need.
pub struct Application {
    pub database: Arc<Database>,
    pub images: Arc<Shelf>,
    pub counters: Arc<Counters>,
    pub token: Option<String>,
    pub seen: Option<Seen>,
    pub slower: Option<Slower>,
}

/// Where a path leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Target {
    List,
    Fetch(i64),
    Create,
    Health,
    Status,
    Reload,
    Heap,
}

impl Target {
    fn route(self) -> Route {
        match self {
            Self::List => Route::List,
            Self::Fetch(_) => Route::Fetch,
            Self::Create => Route::Create,
            Self::Health => Route::Health,
            Self::Status => Route::Status,
            Self::Reload => Route::Reload,
            Self::Heap => Route::Heap,
        }
    }
}

impl Application {
    /// Answers a request; every problem is an answer too.
    pub async fn answer<B>(&self, request: Request<B>) -> Answer
    where
        B: Body<Data = Bytes>,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let target = target(request.method(), request.uri().path());
        let route = target
            .as_ref()
            .map_or(Route::Other, |target| target.route());
        let work = async {
            match target {
                Ok(target) => self.handle(target, request).await,
                Err(problem) => Err(problem),
            }
        };
        let done = match &self.slower {
            Some(slower) if route.is_business() => slower.slow(work).await,
            _ => work.await,
        };
        // Counted when answered, so that the page's total is what clients have received or are about to.
        self.counters.served(route);
        done.unwrap_or_else(Problem::into_answer)
    }

    async fn handle<B>(&self, target: Target, request: Request<B>) -> Result<Answer, Problem>
    where
        B: Body<Data = Bytes>,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        if let Some(seen) = &self.seen
            && target.route().is_business()
        {
            seen.remember(self.counters.total(), request.uri().path());
        }
        match target {
            Target::List => {
                let wanted = Wanted::parse(request.uri().query()).map_err(Problem::Wrong)?;
                let items = store::list(&self.database, &wanted).await?;
                json(StatusCode::OK, &Page { items })
            }
            Target::Fetch(id) => json(StatusCode::OK, &store::fetch(&self.database, id).await?),
            Target::Create => {
                let body = read(request.into_body()).await?;
                let draft = Draft::parse(&body).map_err(Problem::Wrong)?;
                json(
                    StatusCode::CREATED,
                    &store::create(&self.database, &draft).await?,
                )
            }
            Target::Health => json(
                StatusCode::OK,
                &json!({ "status": "ok", "token": self.token }),
            ),
            Target::Status => {
                let unfinished = store::unfinished_jobs(&self.database).await.ok();
                json(
                    StatusCode::OK,
                    &self.counters.page(
                        unfinished,
                        self.database.waiting(),
                        &self.images.current(),
                    ),
                )
            }
            Target::Reload => {
                // Tens of milliseconds of work: other requests of this thread move to another meanwhile.
                let image = tokio::task::block_in_place(|| self.images.replace());
                self.counters.reloaded();
                json(
                    StatusCode::OK,
                    &json!({ "release": image.release(), "pieces": image.pieces() }),
                )
            }
            Target::Heap => {
                // The allocator goes through all that is free: other requests of this thread move to another meanwhile.
                let heap = tokio::task::block_in_place(heap::state)
                    .map_err(|reason| Problem::Fault(reason.to_owned()))?;
                json(StatusCode::OK, &heap)
            }
        }
    }
}

fn target(method: &Method, path: &str) -> Result<Target, Problem> {
    let only = |allowed: Method, names: &'static str, target| {
        if *method == allowed {
            Ok(target)
        } else {
            Err(Problem::Method(names))
        }
    };
    match path {
        "/invoices" => match *method {
            Method::GET => Ok(Target::List),
            Method::POST => Ok(Target::Create),
            _ => Err(Problem::Method("GET, POST")),
        },
        "/healthz" => only(Method::GET, "GET", Target::Health),
        "/status" => only(Method::GET, "GET", Target::Status),
        "/heap" => only(Method::GET, "GET", Target::Heap),
        "/admin/reload" => only(Method::POST, "POST", Target::Reload),
        _ => match path.strip_prefix("/invoices/").map(str::parse) {
            Some(Ok(id)) => only(Method::GET, "GET", Target::Fetch(id)),
            Some(Err(_)) => Err(Problem::Wrong(
                "the id of an invoice is a whole number".into(),
            )),
            None => Err(Problem::Absent("there is nothing at this path")),
        },
    }
}

async fn read<B>(body: B) -> Result<Bytes, Problem>
where
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    match Limited::new(body, LONGEST_BODY).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(Problem::TooLong),
        Err(error) => Err(Problem::Wrong(format!("the body broke off: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::Full;

    use super::*;

    #[test]
    fn paths_lead_where_they_should() {
        let ok = |method, path| target(&method, path).unwrap();
        assert_eq!(ok(Method::GET, "/invoices"), Target::List);
        assert_eq!(ok(Method::POST, "/invoices"), Target::Create);
        assert_eq!(ok(Method::GET, "/invoices/12"), Target::Fetch(12));
        assert_eq!(ok(Method::POST, "/admin/reload"), Target::Reload);
        assert_eq!(ok(Method::GET, "/heap"), Target::Heap);
        let status = |method, path| {
            target(&method, path)
                .unwrap_err()
                .into_answer()
                .status()
                .as_u16()
        };
        assert_eq!(status(Method::GET, "/invoices/x"), 400);
        assert_eq!(status(Method::GET, "/invoices/99999999999999999999"), 400);
        assert_eq!(status(Method::GET, "/nothing"), 404);
        assert_eq!(status(Method::DELETE, "/invoices"), 405);
        assert_eq!(status(Method::GET, "/admin/reload"), 405);
    }

    #[tokio::test]
    async fn long_bodies_are_refused() {
        let body = |bytes| Full::new(Bytes::from(vec![b'x'; bytes]));
        assert_eq!(read(body(LONGEST_BODY)).await.unwrap().len(), LONGEST_BODY);
        assert!(matches!(
            read(body(LONGEST_BODY + 1)).await,
            Err(Problem::TooLong)
        ));
    }
}
