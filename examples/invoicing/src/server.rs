//! The server: listens, serves connections, stops in order when told to.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::application::Application;
use crate::arguments::{Arguments, Environment, Leak};
use crate::counters::Counters;
use crate::database::Database;
use crate::image::Shelf;
use crate::leak::Seen;
use crate::slower::Slower;
use crate::{trim, worker};

/// How long a kept connection may be silent.
const SILENCE: Duration = Duration::from_secs(300);
/// How long requests under way may take once the service is told to stop.
const FAREWELL: Duration = Duration::from_secs(5);

/// Serves until SIGTERM or SIGINT.
///
/// # Errors
/// When the service cannot start: an address in use, signals that cannot be watched.
pub async fn serve(arguments: Arguments, environment: Environment) -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate()).context("SIGTERM cannot be watched")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("SIGINT cannot be watched")?;
    let listener = TcpListener::bind(arguments.listen).await.with_context(|| {
        format!(
            "cannot listen on {}; is another program there?",
            arguments.listen
        )
    })?;

    let database = Arc::new(Database::new(
        environment.database,
        usize::from(arguments.connections),
    )?);
    let counters = Arc::new(Counters::default());
    let images = Arc::new(Shelf::new(arguments.image));
    let (stop, stopped) = watch::channel(false);
    let worker = tokio::spawn(worker::work(
        Arc::clone(&database),
        Arc::clone(&images),
        Arc::clone(&counters),
        stopped,
    ));
    if arguments.trim_when_idle {
        tokio::spawn(trim::when_idle(Arc::clone(&counters)));
    }
    let application = Arc::new(Application {
        database,
        images,
        counters,
        token: environment.token,
        seen: arguments.leak.map(|Leak::Walk| Seen::default()),
        slower: arguments.slower.map(Slower::new),
    });

    // Not what was asked for: port 0 asks for any free one.
    let address = listener
        .local_addr()
        .context("the address listened on cannot be read")?;
    tracing::info!("listening on {address}, {} threads", arguments.threads());
    let connections = GracefulShutdown::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    // Answers are small: waiting to fill a packet would only delay them.
                    if let Err(error) = stream.set_nodelay(true) {
                        tracing::debug!("a connection was gone at once: {error}");
                        continue;
                    }
                    let application = Arc::clone(&application);
                    let service = service_fn(move |request| {
                        let application = Arc::clone(&application);
                        async move { Ok::<_, Infallible>(application.answer(request).await) }
                    });
                    let connection = connections.watch(
                        http1::Builder::new()
                            .timer(TokioTimer::new())
                            .header_read_timeout(SILENCE)
                            .serve_connection(TokioIo::new(stream), service),
                    );
                    tokio::spawn(async move {
                        if let Err(error) = connection.await {
                            tracing::debug!("a connection ended early: {error}");
                        }
                    });
                }
                Err(error) => {
                    // Out of descriptors, most likely. A pause, or this loop would take a processor for itself.
                    tracing::warn!("a connection could not be accepted: {error}");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            },
            _ = terminate.recv() => break,
            _ = interrupt.recv() => break,
        }
    }

    tracing::info!("stopping");
    drop(listener);
    let _ = stop.send(true);
    if tokio::time::timeout(FAREWELL, connections.shutdown())
        .await
        .is_err()
    {
        tracing::warn!("requests were still under way after {FAREWELL:?}");
    }
    match tokio::time::timeout(FAREWELL, worker).await {
        Ok(ended) => ended.context("the worker failed")?,
        Err(_) => tracing::warn!("the worker was still busy after {FAREWELL:?}"),
    }
    Ok(())
}
