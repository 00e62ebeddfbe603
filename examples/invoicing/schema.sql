-- The invoicing service's tables, and what it starts with: 200 customers, 20,000 invoices of two lines each, no jobs.
-- For an empty database, once. Nothing here is random, so that two databases made from it hold the same rows.

CREATE TABLE customers (
    id    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name  text NOT NULL,
    email text NOT NULL
);

-- Numbers without gaps, as the law wants them: a sequence would lose one with each rolled-back transaction.
CREATE TABLE counters (
    name text PRIMARY KEY,
    last bigint NOT NULL
);

CREATE TABLE invoices (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    number      bigint NOT NULL UNIQUE,
    customer_id bigint NOT NULL REFERENCES customers (id),
    status      text NOT NULL DEFAULT 'open' CHECK (status IN ('open', 'paid', 'void')),
    issued_on   date NOT NULL DEFAULT current_date,
    total_cents bigint NOT NULL
);
CREATE INDEX invoices_by_status ON invoices (status, id);

CREATE TABLE invoice_lines (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    invoice_id  bigint NOT NULL REFERENCES invoices (id) ON DELETE CASCADE,
    position    integer NOT NULL,
    description text NOT NULL,
    quantity    integer NOT NULL CHECK (quantity > 0),
    unit_cents  bigint NOT NULL
);
CREATE INDEX invoice_lines_by_invoice ON invoice_lines (invoice_id);

CREATE TABLE jobs (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind        text NOT NULL,
    payload     jsonb NOT NULL,
    status      text NOT NULL DEFAULT 'waiting' CHECK (status IN ('waiting', 'done')),
    attempts    integer NOT NULL DEFAULT 0,
    run_at      timestamptz NOT NULL DEFAULT now(),
    finished_at timestamptz
);

INSERT INTO customers (name, email)
SELECT 'Customer ' || n, 'accounts@customer-' || n || '.example'
FROM generate_series(1, 200) AS n ORDER BY n;

INSERT INTO counters (name, last) VALUES ('invoice', 20000);

INSERT INTO invoices (number, customer_id, status, issued_on, total_cents)
SELECT n,
       1 + (n * 7) % 200,
       CASE WHEN n % 4 = 0 THEN 'open' WHEN n % 50 = 1 THEN 'void' ELSE 'paid' END,
       date '2026-01-01' + n / 80,
       2 * (1000 + n % 500) + 4900
FROM generate_series(1, 20000) AS n ORDER BY n;

INSERT INTO invoice_lines (invoice_id, position, description, quantity, unit_cents)
SELECT i.id, line.position, line.description, line.quantity, line.unit_cents
FROM invoices AS i
CROSS JOIN LATERAL (VALUES (1, 'hours', 2, 1000 + i.number % 500),
                           (2, 'travel expenses', 1, 4900)) AS line (position, description, quantity, unit_cents)
ORDER BY i.id, line.position;

ANALYZE;
