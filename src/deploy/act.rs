//! What actions do to the services of a running arm.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, bail};

use super::deployment::Deployment;
use super::live::{Live, ServiceStarted};
use super::supervisor::signal;
use crate::experiment::Limits;
use crate::name::ServiceName;

impl Deployment {
    /// Stops a service with this signal, waits, starts it again and waits until it is ready.
    ///
    /// # Errors
    /// When it can't be stopped or does not come back.
    pub async fn restart(&self, service: &ServiceName, signal: &str) -> Result<ServiceStarted> {
        let live = self.own(service)?;
        live.stop(&self.site, Some(signal)).await?;
        live.start(&self.site, &self.names).await
    }

    /// Sends a signal. Its end is expected afterwards if the signal is one that ends.
    ///
    /// # Errors
    /// When it does not run, or the signal has no name.
    pub async fn signal(&self, service: &ServiceName, name: &str) -> Result<()> {
        let live = self.own(service)?;
        if signal::ends(signal::parse(name)?) {
            live.expect_end_for_a_while();
        }
        self.site.supervisor.signal(&live.key, name).await
    }

    /// Stops a service.
    ///
    /// # Errors
    /// When the supervisor can't be reached.
    pub async fn stop_service(&self, service: &ServiceName) -> Result<()> {
        self.own(service)?.stop(&self.site, None).await.map(drop)
    }

    /// Starts a service that was stopped and waits until it is ready.
    ///
    /// # Errors
    /// When it runs already or does not come up.
    pub async fn start_service(&self, service: &ServiceName) -> Result<ServiceStarted> {
        let live = self.own(service)?;
        // What was killed may have left processes behind that hold its files.
        if live.life.borrow().pid.is_none() {
            live.stop(&self.site, None).await?;
        }
        live.start(&self.site, &self.names).await
    }

    /// Changes a service's limits while it runs; absent ones are lifted.
    ///
    /// # Errors
    /// When this user may not set them.
    pub fn set_limits(&self, service: &ServiceName, limits: Limits) -> Result<()> {
        self.own(service)?.set_limits(limits)
    }

    /// A service's limits as they are now.
    ///
    /// # Errors
    /// When there is no such service, or it was not started here.
    pub fn limits(&self, service: &ServiceName) -> Result<Limits> {
        Ok(self.own(service)?.limits())
    }

    /// The longest that stopping and starting a service may take.
    ///
    /// # Errors
    /// When there is no such service.
    pub fn patience(&self, service: &ServiceName) -> Result<Duration> {
        let service = &self.live(service)?.service;
        Ok(service.grace + service.ready.within)
    }

    /// A service that may be acted upon.
    fn own(&self, service: &ServiceName) -> Result<&Arc<Live>> {
        let live = self.live(service)?;
        if !live.kind.is_started() {
            bail!("{service} was not started by ceteris, so it is never stopped or changed");
        }
        Ok(live)
    }
}
