//! The service against a real PostgreSQL, which the tests start themselves.

#![expect(clippy::unwrap_used, reason = "what a test cannot do, it fails by")]

mod http;
mod postgres;
mod service;
