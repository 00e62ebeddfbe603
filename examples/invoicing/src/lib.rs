//! A small invoicing service over PostgreSQL: list, read and issue invoices, and do the jobs that each new one brings.
//!
//! It is an application to put under test, and stands on its own: what measures it speaks to it by HTTP alone.

pub mod answer;
pub mod application;
pub mod arguments;
pub mod counters;
pub mod database;
pub mod heap;
pub mod image;
pub mod invoice;
pub mod leak;
pub mod server;
pub mod slower;
pub mod store;
pub mod trim;
pub mod worker;
