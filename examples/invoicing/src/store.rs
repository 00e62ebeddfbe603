//! The statements behind the requests: which rows are read and written, and in which transaction.

use serde_json::{Value, json};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::answer::Problem;
use crate::database::{Database, problem};
use crate::invoice::{Customer, Draft, Head, Invoice, Line, Wanted};

const LIST: &str = "SELECT i.id, i.number, i.customer_id, c.name, i.status, i.issued_on::text, i.total_cents \
     FROM invoices AS i JOIN customers AS c ON c.id = i.customer_id \
     WHERE i.status = $1 ORDER BY i.id DESC LIMIT $2";

const HEAD: &str = "SELECT i.id, i.number, i.customer_id, c.name, i.status, i.issued_on::text, i.total_cents \
     FROM invoices AS i JOIN customers AS c ON c.id = i.customer_id WHERE i.id = $1";

const LINES: &str = "SELECT description, quantity, unit_cents FROM invoice_lines WHERE invoice_id = $1 ORDER BY position";

const CUSTOMER: &str = "SELECT name, email FROM customers WHERE id = $1";

const NEXT_NUMBER: &str =
    "UPDATE counters SET last = last + 1 WHERE name = 'invoice' RETURNING last";

const MAILS_TODAY: &str = "SELECT count(*) FROM jobs \
     WHERE kind = 'mail' AND payload->>'customer_id' = $1 AND run_at >= current_date";

const INSERT_INVOICE: &str = "INSERT INTO invoices (number, customer_id, total_cents) VALUES ($1, $2, $3) \
     RETURNING id, status, issued_on::text";

const INSERT_LINES: &str = "INSERT INTO invoice_lines (invoice_id, position, description, quantity, unit_cents) \
     SELECT $1, line.position, line.description, line.quantity, line.unit_cents \
     FROM unnest($2::text[], $3::integer[], $4::bigint[]) WITH ORDINALITY \
       AS line (description, quantity, unit_cents, position)";

const INSERT_JOBS: &str = "INSERT INTO jobs (kind, payload) \
     SELECT job.kind, job.payload FROM unnest($1::text[], $2::jsonb[]) WITH ORDINALITY AS job (kind, payload, place) \
     ORDER BY job.place";

const UNFINISHED: &str = "SELECT count(*) FROM jobs WHERE status <> 'done'";

/// The newest invoices of one status.
///
/// # Errors
/// When the database fails or cannot be reached.
pub async fn list(database: &Database, wanted: &Wanted) -> Result<Vec<Head>, Problem> {
    let connection = database.connection().await?;
    let read = async {
        let statement = connection.prepare_cached(LIST).await?;
        let rows = connection
            .query(&statement, &[&wanted.status, &wanted.limit])
            .await?;
        rows.iter().map(head).collect::<Result<Vec<_>, _>>()
    };
    read.await.map_err(|error| problem(&error))
}

/// One invoice with its lines.
///
/// # Errors
/// `Absent` when there is none of that id; else when the database fails or cannot be reached.
pub async fn fetch(database: &Database, id: i64) -> Result<Invoice, Problem> {
    let connection = database.connection().await?;
    let read = async {
        let (of_head, of_lines) = tokio::try_join!(
            connection.prepare_cached(HEAD),
            connection.prepare_cached(LINES)
        )?;
        let key: [&(dyn ToSql + Sync); 1] = [&id];
        // Both are sent before either answers: one wait, not two.
        let (row, lines) = tokio::try_join!(
            connection.query_opt(&of_head, &key),
            connection.query(&of_lines, &key)
        )?;
        let Some(row) = row else { return Ok(None) };
        Ok(Some(Invoice {
            head: head(&row)?,
            lines: lines.iter().map(line).collect::<Result<_, _>>()?,
        }))
    };
    read.await
        .map_err(|error| problem(&error))?
        .ok_or(Problem::Absent("there is no invoice of that id"))
}

/// Issues an invoice, in one transaction with the jobs it brings.
///
/// The number is taken first, since it decides everything that follows; its row stays locked until the commit, so that no
/// number is lost or given twice, and invoices are issued one after another.
///
/// # Errors
/// `Wrong` when the customer is unknown; else when the database fails or cannot be reached.
pub async fn create(database: &Database, draft: &Draft) -> Result<Invoice, Problem> {
    let Some(total_cents) = draft.total_cents() else {
        return Err(Problem::Wrong("the total is out of range".into()));
    };
    let mut connection = database.connection().await?;
    let write = async {
        let transaction = connection.transaction().await?;
        let statement = transaction.prepare_cached(CUSTOMER).await?;
        let Some(row) = transaction
            .query_opt(&statement, &[&draft.customer])
            .await?
        else {
            return Ok(None);
        };
        let (name, email): (String, String) = (row.try_get(0)?, row.try_get(1)?);

        let statement = transaction.prepare_cached(NEXT_NUMBER).await?;
        let number: i64 = transaction.query_one(&statement, &[]).await?.try_get(0)?;

        // Whoever got a mail today gets this invoice in the evening's collection, not in another mail.
        let statement = transaction.prepare_cached(MAILS_TODAY).await?;
        let mails: i64 = transaction
            .query_one(&statement, &[&draft.customer.to_string()])
            .await?
            .try_get(0)?;

        let statement = transaction.prepare_cached(INSERT_INVOICE).await?;
        let row = transaction
            .query_one(&statement, &[&number, &draft.customer, &total_cents])
            .await?;
        let invoice = Invoice {
            head: Head {
                id: row.try_get(0)?,
                number,
                customer: Customer {
                    id: draft.customer,
                    name,
                },
                status: row.try_get(1)?,
                issued_on: row.try_get(2)?,
                total_cents,
            },
            lines: draft.lines.clone(),
        };

        let descriptions: Vec<&str> = draft
            .lines
            .iter()
            .map(|line| line.description.as_str())
            .collect();
        let quantities: Vec<i32> = draft.lines.iter().map(|line| line.quantity).collect();
        let prices: Vec<i64> = draft.lines.iter().map(|line| line.unit_cents).collect();
        let statement = transaction.prepare_cached(INSERT_LINES).await?;
        transaction
            .execute(
                &statement,
                &[&invoice.head.id, &descriptions, &quantities, &prices],
            )
            .await?;

        let (kinds, payloads): (Vec<&str>, Vec<Value>) =
            jobs(&invoice, &email, mails > 0).into_iter().unzip();
        let statement = transaction.prepare_cached(INSERT_JOBS).await?;
        transaction
            .execute(&statement, &[&kinds, &payloads])
            .await?;

        transaction.commit().await?;
        Ok(Some(invoice))
    };
    write
        .await
        .map_err(|error| problem(&error))?
        .ok_or_else(|| Problem::Wrong(format!("`customer` {} is unknown", draft.customer)))
}

/// Jobs not done yet.
///
/// # Errors
/// When the database fails or cannot be reached.
pub async fn unfinished_jobs(database: &Database) -> Result<i64, Problem> {
    let connection = database.connection().await?;
    let read = async {
        let statement = connection.prepare_cached(UNFINISHED).await?;
        connection.query_one(&statement, &[]).await?.try_get(0)
    };
    read.await.map_err(|error| problem(&error))
}

/// What is to be done for a new invoice.
fn jobs(invoice: &Invoice, email: &str, collect: bool) -> [(&'static str, Value); 5] {
    let head = &invoice.head;
    let job = |more: Value| {
        let mut payload = json!({
            "customer_id": head.customer.id.to_string(),
            "invoice_id": head.id,
            "number": head.number,
        });
        if let (Some(payload), Value::Object(more)) = (payload.as_object_mut(), more) {
            payload.extend(more);
        }
        payload
    };
    [
        (
            "mail",
            job(json!({
                "to": email,
                "subject": format!("Your invoice {}", head.number),
                "template": "invoice-issued",
                "collect": collect,
            })),
        ),
        (
            "document",
            job(json!({ "format": "pdf", "language": "en", "lines": invoice.lines.len() })),
        ),
        (
            "ledger",
            job(json!({ "account": "receivables", "amount_cents": head.total_cents })),
        ),
        (
            "webhook",
            job(json!({ "event": "invoice.issued", "attempt_within": "24h" })),
        ),
        (
            "reminder",
            job(json!({ "after_days": 14, "template": "payment-due" })),
        ),
    ]
}

fn head(row: &Row) -> Result<Head, tokio_postgres::Error> {
    Ok(Head {
        id: row.try_get(0)?,
        number: row.try_get(1)?,
        customer: Customer {
            id: row.try_get(2)?,
            name: row.try_get(3)?,
        },
        status: row.try_get(4)?,
        issued_on: row.try_get(5)?,
        total_cents: row.try_get(6)?,
    })
}

fn line(row: &Row) -> Result<Line, tokio_postgres::Error> {
    Ok(Line {
        description: row.try_get(0)?,
        quantity: row.try_get(1)?,
        unit_cents: row.try_get(2)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_invoice_brings_five_jobs_that_name_the_customer() {
        let jobs = jobs(&crate::invoice::sample(), "a@b.example", true);
        let kinds: Vec<_> = jobs.iter().map(|(kind, _)| *kind).collect();
        assert_eq!(kinds, ["mail", "document", "ledger", "webhook", "reminder"]);
        assert!(
            jobs.iter()
                .all(|(_, payload)| payload["customer_id"] == "117")
        );
        assert_eq!(jobs[0].1["to"], "a@b.example");
        assert_eq!(jobs[0].1["collect"], true);
    }
}
