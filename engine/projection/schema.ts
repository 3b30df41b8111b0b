/**
 * The schema of exchange.db as numbered migrations, forward only. The statements of a shipped migration are never edited.
 *
 * The hot tables (orders, fills, entries) are append-only and have no secondary index by user: one would dirty a page per
 * user and transaction. Their rows are linked instead (row-links.ts); small tables name the newest row of each list.
 */
export const MIGRATIONS: readonly string[] = [
  `
  CREATE TABLE meta (key TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;
  INSERT INTO meta VALUES ('orders_indexed', 0), ('fills_indexed', 0);

  -- One row: totals as of the last commit, micro-USDC, and the last value of each counter.
  CREATE TABLE totals (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    deposits INTEGER NOT NULL, withdrawals INTEGER NOT NULL, users_total INTEGER NOT NULL,
    collateral INTEGER NOT NULL, house INTEGER NOT NULL,
    sequence INTEGER NOT NULL, last_entry_id INTEGER NOT NULL, last_order_id INTEGER NOT NULL,
    order_updates INTEGER NOT NULL, at INTEGER NOT NULL
  ) STRICT;
  INSERT INTO totals VALUES (1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);

  CREATE TABLE users (
    id INTEGER PRIMARY KEY, email TEXT NOT NULL UNIQUE, role TEXT NOT NULL, kyc_tier INTEGER NOT NULL,
    created_at INTEGER NOT NULL
  ) STRICT;

  -- Balances, micro-USDC. Holds are not stored: they derive from live orders.
  CREATE TABLE accounts (
    user_id INTEGER PRIMARY KEY, balance INTEGER NOT NULL CHECK (balance >= 0),
    activity_day INTEGER NOT NULL, activity_used INTEGER NOT NULL
  ) STRICT;

  CREATE TABLE personal_access_tokens (
    id INTEGER PRIMARY KEY, user_id INTEGER NOT NULL, name TEXT NOT NULL, token_hash TEXT NOT NULL UNIQUE,
    prefix TEXT NOT NULL, scopes TEXT NOT NULL, created_at INTEGER NOT NULL, last_used_at INTEGER,
    expires_at INTEGER, revoked_at INTEGER
  ) STRICT;

  CREATE TABLE events (
    id INTEGER PRIMARY KEY, slug TEXT NOT NULL UNIQUE, title TEXT NOT NULL, category TEXT, closes_at INTEGER,
    created_at INTEGER NOT NULL
  ) STRICT;

  -- status: 0 proposed, 1 open, 2 halted, 3 closed, 4 resolved, 5 voided, 6 rejected. sets: outstanding complete sets.
  CREATE TABLE markets (
    id INTEGER PRIMARY KEY, slug TEXT NOT NULL UNIQUE, question TEXT NOT NULL, description TEXT, category TEXT,
    event_id INTEGER, status INTEGER NOT NULL, sets INTEGER NOT NULL CHECK (sets >= 0), opens_at INTEGER,
    closes_at INTEGER, created_at INTEGER NOT NULL
  ) STRICT;

  -- Outcome ids are unique over all markets; those of one market are consecutive. position: 0, 1, ...
  CREATE TABLE outcomes (
    id INTEGER PRIMARY KEY, market_id INTEGER NOT NULL, position INTEGER NOT NULL, name TEXT NOT NULL,
    last_price INTEGER, volume INTEGER NOT NULL
  ) STRICT;

  -- side: 1 buy, 2 sell. type: 0 limit, 1 market. time_in_force: 0 gtc, 1 gtd, 2 ioc, 3 fok.
  -- self_trade_prevention: 0 cancel_taker, 1 cancel_maker, 2 cancel_both, 3 decrement.
  -- status: 0 queued, 1 open, 2 partially_filled, 3 filled, 4 canceled, 5 expired, 6 rejected.
  -- reason: 0 none, 1 user, 2 post_only_would_cross, 3 fok_unfillable, 4 ioc_remainder, 5 self_trade,
  --   6 market_closed, 7 market_halted, 8 cancel_on_disconnect, 9 operator, 10 too_late, 11 expired.
  -- priority: the time priority after an amend (null: the id).
  CREATE TABLE orders (
    id INTEGER PRIMARY KEY, user_id INTEGER NOT NULL, outcome_id INTEGER NOT NULL, side INTEGER NOT NULL,
    type INTEGER NOT NULL, time_in_force INTEGER NOT NULL, self_trade_prevention INTEGER NOT NULL,
    post_only INTEGER NOT NULL, pat INTEGER NOT NULL, price INTEGER NOT NULL, quantity INTEGER NOT NULL,
    remaining INTEGER NOT NULL CHECK (remaining >= 0), status INTEGER NOT NULL, reason INTEGER NOT NULL,
    expires_at INTEGER, priority INTEGER, client_order_id TEXT, created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
  ) STRICT;

  -- One order's side of one match. Fills and entries share one sequence of ids without gaps.
  -- balance_after: the user's balance after this fill, its fee and its rebate.
  -- role: 0 maker, 1 taker. match_type: 0 direct, 1 mint, 2 merge.
  CREATE TABLE fills (
    id INTEGER PRIMARY KEY, match_id INTEGER NOT NULL, user_id INTEGER NOT NULL, order_id INTEGER NOT NULL,
    outcome_id INTEGER NOT NULL, side INTEGER NOT NULL, price INTEGER NOT NULL, quantity INTEGER NOT NULL,
    role INTEGER NOT NULL, match_type INTEGER NOT NULL, fee INTEGER NOT NULL, rebate INTEGER NOT NULL,
    balance_after INTEGER NOT NULL, created_at INTEGER NOT NULL
  ) STRICT;

  -- All other changes of a balance.
  CREATE TABLE entries (
    id INTEGER PRIMARY KEY, user_id INTEGER NOT NULL, type TEXT NOT NULL, amount INTEGER NOT NULL,
    balance_after INTEGER NOT NULL, market_id INTEGER, outcome_id INTEGER, reference TEXT UNIQUE,
    created_at INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX entries_by_user ON entries (user_id);

  CREATE TABLE positions (
    user_id INTEGER NOT NULL, outcome_id INTEGER NOT NULL, quantity INTEGER NOT NULL CHECK (quantity >= 0),
    cost INTEGER NOT NULL, realized_pnl INTEGER NOT NULL, PRIMARY KEY (user_id, outcome_id)
  ) STRICT, WITHOUT ROWID;

  -- Write-behind.
  CREATE TABLE orders_by_user (user_id INTEGER NOT NULL, order_id INTEGER NOT NULL, PRIMARY KEY (user_id, order_id))
    STRICT, WITHOUT ROWID;
  CREATE TABLE fills_by_user (user_id INTEGER NOT NULL, fill_id INTEGER NOT NULL, PRIMARY KEY (user_id, fill_id))
    STRICT, WITHOUT ROWID;
  CREATE TABLE fills_by_order (order_id INTEGER NOT NULL, fill_id INTEGER NOT NULL, PRIMARY KEY (order_id, fill_id))
    STRICT, WITHOUT ROWID;
  CREATE TABLE trades_by_market (market_id INTEGER NOT NULL, fill_id INTEGER NOT NULL, PRIMARY KEY (market_id, fill_id))
    STRICT, WITHOUT ROWID;
  -- Orders that were live when they were indexed; some have ended since.
  CREATE TABLE resting_orders (order_id INTEGER PRIMARY KEY) STRICT;
  `,
  `
  -- orders.status: 2 queued, 3 open, 4 partially_filled, 5 filled, 6 canceled, 7 expired, 8 rejected.
  -- orders.previous_of_user: the owner's previous order (0: none).
  -- orders.last_fill_id: its newest fill; before its first fill, an id below any possible one, so that the row needn't grow.
  -- fills.previous_of_...: the previous fill of the same user, order and, for takers, market (0: none).
  -- entries.last_fill_id: the user's newest fill before it (0: none).
  ALTER TABLE orders ADD COLUMN previous_of_user INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE orders ADD COLUMN last_fill_id INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE fills ADD COLUMN previous_of_user INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE fills ADD COLUMN previous_of_order INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE fills ADD COLUMN previous_of_market INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE entries ADD COLUMN last_fill_id INTEGER NOT NULL DEFAULT 0;
  UPDATE orders SET status = status + 2;
  UPDATE orders SET previous_of_user = before
    FROM (SELECT id AS at, lag(id, 1, 0) OVER (PARTITION BY user_id ORDER BY id) AS before FROM orders) WHERE id = at;
  UPDATE orders SET last_fill_id = newest
    FROM (SELECT order_id, max(id) AS newest FROM fills GROUP BY order_id) AS f WHERE orders.id = f.order_id;
  UPDATE fills SET previous_of_user = of_user, previous_of_order = of_order
    FROM (SELECT id AS at, lag(id, 1, 0) OVER (PARTITION BY user_id ORDER BY id) AS of_user,
      lag(id, 1, 0) OVER (PARTITION BY order_id ORDER BY id) AS of_order FROM fills) WHERE id = at;
  UPDATE fills SET previous_of_market = before
    FROM (SELECT fills.id AS at, lag(fills.id, 1, 0) OVER (PARTITION BY market_id ORDER BY fills.id) AS before
      FROM fills JOIN outcomes ON outcomes.id = outcome_id WHERE role = 1) WHERE id = at;
  INSERT OR IGNORE INTO fills_by_user SELECT user_id, id FROM fills;
  UPDATE entries SET last_fill_id = (SELECT coalesce(max(fill_id), 0) FROM fills_by_user
    WHERE fills_by_user.user_id = entries.user_id AND fill_id < entries.id);

  -- Write-behind: the newest row of each list (0: none), complete up to the numbers in meta.
  CREATE TABLE newest_of_user (user_id INTEGER PRIMARY KEY, order_id INTEGER NOT NULL, fill_id INTEGER NOT NULL) STRICT;
  CREATE TABLE newest_of_market (market_id INTEGER PRIMARY KEY, fill_id INTEGER NOT NULL) STRICT;
  INSERT INTO newest_of_user SELECT user_id, max(order_id), max(fill_id) FROM (
    SELECT user_id, id AS order_id, 0 AS fill_id FROM orders UNION ALL SELECT user_id, 0, id FROM fills) GROUP BY user_id;
  INSERT INTO newest_of_market SELECT market_id, max(fills.id) FROM fills JOIN outcomes ON outcomes.id = outcome_id
    WHERE role = 1 GROUP BY market_id;
  INSERT INTO meta SELECT 'newest_order', last_order_id FROM totals UNION ALL SELECT 'newest_fill', last_entry_id FROM totals;
  UPDATE meta SET key = 'orders_listed' WHERE key = 'orders_indexed';
  DELETE FROM meta WHERE key = 'fills_indexed';
  DROP TABLE orders_by_user;
  DROP TABLE fills_by_user;
  DROP TABLE fills_by_order;
  DROP TABLE trades_by_market;
  `,
  `
  -- orders.fingerprint: of the request body with the client order id (null: none, or from before this column).
  -- orders.builder_id, fills.builder_id: the integration that sent the order (null: none).
  -- orders.quote: 1 = placed by PUT /quotes. orders.tied: 1 = cancel on disconnect.
  ALTER TABLE orders ADD COLUMN fingerprint INTEGER;
  ALTER TABLE orders ADD COLUMN builder_id INTEGER;
  ALTER TABLE orders ADD COLUMN quote INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE orders ADD COLUMN tied INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE fills ADD COLUMN builder_id INTEGER;

  -- Integrations and the sums of their orders: orders, fills, shares, micro-USDC of notional and of trading fees.
  CREATE TABLE builders (
    id INTEGER PRIMARY KEY, code TEXT NOT NULL UNIQUE, orders INTEGER NOT NULL, fills INTEGER NOT NULL,
    volume INTEGER NOT NULL, notional INTEGER NOT NULL, fees INTEGER NOT NULL, created_at INTEGER NOT NULL
  ) STRICT;
  `,
  `
  -- users.password_hash: argon2id in PHC format (null: none). Tier 1 requires a verified email address and phone.
  ALTER TABLE users ADD COLUMN password_hash TEXT;
  ALTER TABLE users ADD COLUMN email_verified_at INTEGER;
  ALTER TABLE users ADD COLUMN phone TEXT;
  ALTER TABLE users ADD COLUMN phone_verified_at INTEGER;
  ALTER TABLE users ADD COLUMN suspended_at INTEGER;
  UPDATE users SET email_verified_at = created_at, phone_verified_at = created_at WHERE kyc_tier > 0;

  -- The addresses and CIDR ranges that may use the token, separated by spaces (null: any).
  ALTER TABLE personal_access_tokens ADD COLUMN allowed_addresses TEXT;

  -- What a refresh token continues: a sign-in (grant_id null), or a third party's session from an authorization code.
  -- family: the part that all its refresh tokens share. refresh_hash: SHA-256 of the valid one.
  -- user_id, grant_id, client_id here and below: ids of users, oauth_grants and oauth_clients.
  CREATE TABLE sessions (
    id INTEGER PRIMARY KEY, user_id INTEGER NOT NULL, grant_id INTEGER, method TEXT NOT NULL, scopes TEXT NOT NULL,
    family TEXT NOT NULL UNIQUE, refresh_hash TEXT NOT NULL, user_agent TEXT, address TEXT, created_at INTEGER NOT NULL,
    last_used_at INTEGER NOT NULL, expires_at INTEGER NOT NULL, ended_at INTEGER, end_reason TEXT
  ) STRICT;
  CREATE INDEX live_sessions ON sessions (expires_at) WHERE ended_at IS NULL;
  CREATE INDEX ended_sessions ON sessions (ended_at) WHERE ended_at IS NOT NULL;

  -- Mailed links, by SHA-256 of their token. purpose: verify_email, reset_password.
  CREATE TABLE email_tokens (
    id INTEGER PRIMARY KEY, user_id INTEGER NOT NULL, purpose TEXT NOT NULL, token_hash TEXT NOT NULL UNIQUE,
    created_at INTEGER NOT NULL, expires_at INTEGER NOT NULL, used_at INTEGER
  ) STRICT;
  CREATE INDEX live_email_tokens ON email_tokens (expires_at) WHERE used_at IS NULL;

  -- status: pending, approved, refused.
  CREATE TABLE identity_applications (
    id INTEGER PRIMARY KEY, user_id INTEGER NOT NULL, document_type TEXT NOT NULL, document_number TEXT NOT NULL,
    country TEXT NOT NULL, status TEXT NOT NULL, note TEXT, created_at INTEGER NOT NULL, decided_at INTEGER
  ) STRICT;

  -- Third parties. redirect_uris: one per line. secret_hash: SHA-256 (null: a public client).
  CREATE TABLE oauth_clients (
    id INTEGER PRIMARY KEY, user_id INTEGER NOT NULL, client_id TEXT NOT NULL UNIQUE, name TEXT NOT NULL,
    redirect_uris TEXT NOT NULL, secret_hash TEXT, created_at INTEGER NOT NULL, deleted_at INTEGER
  ) STRICT;
  -- A user's consent to a third party; at most one live grant per pair.
  CREATE TABLE oauth_grants (
    id INTEGER PRIMARY KEY, user_id INTEGER NOT NULL, client_id INTEGER NOT NULL, scopes TEXT NOT NULL,
    created_at INTEGER NOT NULL, last_used_at INTEGER, revoked_at INTEGER
  ) STRICT;
  CREATE UNIQUE INDEX live_grants ON oauth_grants (user_id, client_id) WHERE revoked_at IS NULL;

  CREATE TABLE social_identities (
    id INTEGER PRIMARY KEY, user_id INTEGER NOT NULL, issuer TEXT NOT NULL, subject TEXT NOT NULL,
    created_at INTEGER NOT NULL, UNIQUE (issuer, subject)
  ) STRICT;

  -- Who changed what about money or access. actor: "user 12", "operator 3", "oauth client 4", "seed", "admin".
  -- subject: the id of the changed row, in the table that the action implies. details: JSON.
  CREATE TABLE audit_log (
    id INTEGER PRIMARY KEY, at INTEGER NOT NULL, action TEXT NOT NULL, actor TEXT NOT NULL, user_id INTEGER,
    subject INTEGER, details TEXT, request_id TEXT, address TEXT
  ) STRICT;
  CREATE INDEX audit_by_user ON audit_log (user_id);
  -- INSERT OR REPLACE would remove a row without a DELETE.
  CREATE TRIGGER audit_log_adds_rows BEFORE INSERT ON audit_log WHEN NEW.id IN (SELECT id FROM audit_log)
    BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
  CREATE TRIGGER audit_log_keeps_rows BEFORE DELETE ON audit_log
    BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
  CREATE TRIGGER audit_log_keeps_words BEFORE UPDATE ON audit_log
    BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
  `,
  `
  -- Each order update, the content of order.updated. id: over all users, without gaps; sequence: of its user, without
  -- gaps. price, quantity, remaining, status, reason: the order's at that time. fills: the number of fills that it reports;
  -- last_fill_id: the last of them (0: none). previous_of_user: the same user's previous update (0: none).
  -- Pruned after some days, oldest first.
  CREATE TABLE order_updates (
    id INTEGER PRIMARY KEY, user_id INTEGER NOT NULL, sequence INTEGER NOT NULL, order_id INTEGER NOT NULL,
    price INTEGER NOT NULL, quantity INTEGER NOT NULL, remaining INTEGER NOT NULL, status INTEGER NOT NULL,
    reason INTEGER NOT NULL, fills INTEGER NOT NULL, last_fill_id INTEGER NOT NULL, previous_of_user INTEGER NOT NULL,
    created_at INTEGER NOT NULL
  ) STRICT;
  -- Some of each user's updates, so that a reader can enter the list in the middle.
  CREATE TABLE update_marks (
    user_id INTEGER NOT NULL, sequence INTEGER NOT NULL, update_id INTEGER NOT NULL, PRIMARY KEY (user_id, sequence)
  ) STRICT, WITHOUT ROWID;
  -- newest_of_user.update_id: the newest update (0: none is kept), with number update_sequence. The sequences of users
  -- from before this table continue above all numbers that they have seen.
  ALTER TABLE newest_of_user ADD COLUMN update_id INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE newest_of_user ADD COLUMN update_sequence INTEGER NOT NULL DEFAULT 0;
  INSERT OR IGNORE INTO newest_of_user (user_id, order_id, fill_id) SELECT DISTINCT user_id, 0, 0 FROM orders
    WHERE id > (SELECT value FROM meta WHERE key = 'newest_order');
  UPDATE newest_of_user SET update_sequence = (SELECT order_updates FROM totals);
  INSERT INTO meta SELECT 'newest_update', order_updates FROM totals;

  -- The search index of markets and events: the words of their texts (search-words.ts), whose function search_words is
  -- defined while migrations run. No text is stored twice: a row has only its id and the index.
  CREATE VIRTUAL TABLE market_words USING fts5
    (words, content = '', contentless_delete = 1, detail = none, prefix = '1 2', tokenize = 'ascii');
  CREATE VIRTUAL TABLE event_words USING fts5
    (words, content = '', contentless_delete = 1, detail = none, prefix = '1 2', tokenize = 'ascii');
  INSERT INTO market_words (rowid, words) SELECT id, search_words(question, description, category, slug, names)
    FROM markets JOIN (SELECT market_id, group_concat(name, ' ') AS names FROM outcomes GROUP BY market_id) ON market_id = id;
  INSERT INTO event_words (rowid, words) SELECT id, search_words(title, category, slug) FROM events;

  -- Prices and volumes of outcomes, write-behind. interval: minutes; open_time: ms, a multiple of it; prices in BPS.
  -- Complete up to the fill in meta's candles_fill; a row includes trades up to last_fill_id.
  CREATE TABLE candles (
    outcome_id INTEGER NOT NULL, interval INTEGER NOT NULL, open_time INTEGER NOT NULL, open INTEGER NOT NULL,
    high INTEGER NOT NULL, low INTEGER NOT NULL, close INTEGER NOT NULL, volume INTEGER NOT NULL,
    last_fill_id INTEGER NOT NULL, PRIMARY KEY (outcome_id, interval, open_time)
  ) STRICT, WITHOUT ROWID;
  CREATE TEMP TABLE minutes AS
    SELECT outcome_id, created_at - created_at % 60000 AS open_time, min(id) AS first, max(id) AS last,
      max(price) AS high, min(price) AS low, sum(quantity) AS volume FROM fills WHERE role = 1 GROUP BY 1, 2;
  INSERT INTO candles
    SELECT outcome_id, length, began, (SELECT price FROM fills WHERE id = first), high, low,
      (SELECT price FROM fills WHERE id = last), volume, last
    FROM (SELECT outcome_id, length, open_time - open_time % (length * 60000) AS began, min(first) AS first,
        max(last) AS last, max(high) AS high, min(low) AS low, sum(volume) AS volume
      FROM minutes CROSS JOIN (SELECT 1 AS length UNION ALL SELECT 5 UNION ALL SELECT 60 UNION ALL SELECT 1440)
      GROUP BY 1, 2, 3);
  DROP TABLE minutes;
  INSERT INTO meta SELECT 'candles_fill', last_entry_id FROM totals;
  `,
  `
  -- Individual terms (null: the default): micro-USDC of activity per day, a seller's fee and a resting order's rebate
  -- (without and with a PAT) in BPS of the notional, and the factor for rate limits.
  ALTER TABLE users ADD COLUMN daily_limit INTEGER;
  ALTER TABLE users ADD COLUMN trading_fee INTEGER;
  ALTER TABLE users ADD COLUMN maker_rebate INTEGER;
  ALTER TABLE users ADD COLUMN pat_rebate INTEGER;
  ALTER TABLE users ADD COLUMN rate_limit_factor INTEGER;

  -- Finds pending applications among decided ones.
  CREATE INDEX applications_by_status ON identity_applications (status);

  -- markets.proposed_by: the proposing user. decision_note, decided_at: the decision on the proposal.
  -- settled_sets: complete sets paid out when the market was resolved or voided. outcomes.payout: BPS, null before.
  ALTER TABLE markets ADD COLUMN proposed_by INTEGER;
  ALTER TABLE markets ADD COLUMN decision_note TEXT;
  ALTER TABLE markets ADD COLUMN decided_at INTEGER;
  ALTER TABLE markets ADD COLUMN resolution_note TEXT;
  ALTER TABLE markets ADD COLUMN resolved_at INTEGER;
  ALTER TABLE markets ADD COLUMN settled_sets INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE outcomes ADD COLUMN payout INTEGER;
  CREATE INDEX markets_by_proposer ON markets (proposed_by) WHERE proposed_by IS NOT NULL;

  -- entries.user_id 0: the house. quantity, cost: for type settlement, the shares and their cost.
  ALTER TABLE entries ADD COLUMN quantity INTEGER;
  ALTER TABLE entries ADD COLUMN cost INTEGER;
  CREATE INDEX deposits ON entries (id) WHERE type = 'deposit';
  -- Finds a user's rare entries among any number of splits and merges.
  CREATE INDEX rare_entries ON entries (user_id, type) WHERE type IN ('deposit', 'withdrawal', 'settlement');

  -- status: pending, paid, refused, canceled. A pending one holds its amount. reference: the payment's.
  CREATE TABLE withdrawals (
    id INTEGER PRIMARY KEY, user_id INTEGER NOT NULL, amount INTEGER NOT NULL CHECK (amount > 0), address TEXT NOT NULL,
    status TEXT NOT NULL, reference TEXT UNIQUE, note TEXT, created_at INTEGER NOT NULL, decided_at INTEGER
  ) STRICT;
  CREATE INDEX withdrawals_by_user ON withdrawals (user_id);
  CREATE INDEX pending_withdrawals ON withdrawals (id) WHERE status = 'pending';

  -- The first of two approvals that some actions need. subject: the id of the action's object. details: the action as
  -- JSON, which the second approval must repeat. ended_at: when it was executed or withdrawn.
  CREATE TABLE approvals (
    id INTEGER PRIMARY KEY, action TEXT NOT NULL, subject INTEGER NOT NULL, details TEXT NOT NULL, actor TEXT NOT NULL,
    created_at INTEGER NOT NULL, ended_at INTEGER
  ) STRICT;
  CREATE UNIQUE INDEX open_approvals ON approvals (action, subject) WHERE ended_at IS NULL;
  `,
  `
  -- orders_told: the last order update that the rows of orders include (write-behind.ts).
  INSERT INTO meta SELECT 'orders_told', order_updates FROM totals;
  -- Current orders: pending changes of rows are taken from the order updates.
  CREATE VIEW current_orders AS
    WITH newer AS MATERIALIZED (
      SELECT order_id, max(id) AS update_id, max(last_fill_id) AS fill_id FROM order_updates
      WHERE id > (SELECT value FROM meta WHERE key = 'orders_told') GROUP BY order_id)
    SELECT o.id, o.user_id, o.outcome_id, o.side, o.type, o.time_in_force, o.self_trade_prevention, o.post_only, o.pat,
      coalesce(u.price, o.price) AS price, coalesce(u.quantity, o.quantity) AS quantity,
      coalesce(u.remaining, o.remaining) AS remaining, coalesce(u.status, o.status) AS status,
      coalesce(u.reason, o.reason) AS reason, o.client_order_id, o.expires_at, o.priority, o.created_at,
      coalesce(u.created_at, o.updated_at) AS updated_at, o.previous_of_user,
      max(o.last_fill_id, coalesce(n.fill_id, 0)) AS last_fill_id, o.fingerprint, o.builder_id, o.quote, o.tied
    FROM orders o LEFT JOIN newer n ON n.order_id = o.id LEFT JOIN order_updates u ON u.id = n.update_id;
  `,
  `
  -- Individual terms (null: the default): the fee for merging a complete set in BPS of 1 USDC, and the maximum number of
  -- live orders.
  ALTER TABLE users ADD COLUMN merge_fee INTEGER;
  ALTER TABLE users ADD COLUMN max_live_orders INTEGER;

  -- approvals.reference: distinguishes several approvals of one subject, such as deposits to one user ('': only one).
  ALTER TABLE approvals ADD COLUMN reference TEXT NOT NULL DEFAULT '';
  DROP INDEX open_approvals;
  CREATE UNIQUE INDEX open_approvals ON approvals (action, subject, reference) WHERE ended_at IS NULL;
  -- sessions.amr: the sign-in's authentication methods, as space-separated values of RFC 8176; includes "mfa" after a
  -- second factor (null: from before this column, or a third party's session).
  ALTER TABLE sessions ADD COLUMN amr TEXT;
  -- Second factors. kind: totp, passkey.
  -- TOTP: secret, sealed with a key that isn't in this file (second-factor-keys.ts; null once it is removed), and
  -- last_step, the time step of the last accepted code. Passkey: rp_id, the relying party's host; its id and COSE public
  -- key in base64url; counter, of its signatures; transports, separated by spaces.
  CREATE TABLE second_factors (
    id INTEGER PRIMARY KEY, user_id INTEGER NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL, secret TEXT,
    last_step INTEGER, rp_id TEXT, credential_id TEXT, public_key TEXT, counter INTEGER, transports TEXT,
    created_at INTEGER NOT NULL, last_used_at INTEGER, removed_at INTEGER
  ) STRICT;
  CREATE UNIQUE INDEX live_passkeys ON second_factors (credential_id) WHERE removed_at IS NULL;
  CREATE INDEX live_second_factors ON second_factors (user_id) WHERE removed_at IS NULL;
  -- One-time codes that replace a lost second factor, by SHA-256. ended_at: when it was used or replaced.
  CREATE TABLE recovery_codes (
    id INTEGER PRIMARY KEY, user_id INTEGER NOT NULL, code_hash TEXT NOT NULL, created_at INTEGER NOT NULL,
    ended_at INTEGER
  ) STRICT;
  CREATE INDEX live_recovery_codes ON recovery_codes (user_id) WHERE ended_at IS NULL;

  -- orders.type: 2 a market order without a price; its price column is an internal bound that no client sees.
  -- Market orders of before this have type 1, with or without a bound.
  -- orders.reason, order_updates.reason: 12 cancel_after.
  -- users.cancels_at: when all of the user's live orders that were placed before then are canceled, ms (null: never).
  ALTER TABLE users ADD COLUMN cancels_at INTEGER;

  -- Executed requests with an Idempotency-Key, each written with its effect and kept for 24 hours. request: method,
  -- path and body. subject: the withdrawal, or the entry of a split or merge, that it created. fee: micro-USDC charged.
  CREATE TABLE idempotency_keys (
    user_id INTEGER NOT NULL, key TEXT NOT NULL, request TEXT NOT NULL, subject INTEGER NOT NULL, fee INTEGER NOT NULL,
    created_at INTEGER NOT NULL, PRIMARY KEY (user_id, key)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX idempotency_keys_by_age ON idempotency_keys (created_at);

  -- Finds the history of an account's money and terms among all its audit lines (trail-reader.ts).
  CREATE INDEX audit_trail ON audit_log (user_id, action, subject)
    WHERE action IN ('wallet.deposit', 'user.set_terms', 'identity.approve', 'identity.refuse');

  -- old_rebates: up to this fill or entry, rebates could exceed their match's fees, and voided sets could pay less than 1 USDC.
  INSERT INTO meta SELECT 'old_rebates', last_entry_id FROM totals;
  -- Finds merge fees (entries of type fee) among any number of splits and merges.
  CREATE INDEX merge_fees ON entries (user_id) WHERE type = 'fee';
  -- order_updates.expires_at: the order's at that time, ms (0: never; null: from before this column, when it never changed).
  ALTER TABLE order_updates ADD COLUMN expires_at INTEGER;

  -- accounts.activity_used counts entries from now on: buys' notional and 1 USDC per set split, of the account's last UTC
  -- day (activity_day, days since the epoch) with either. Sells counted before, splits did not.
  CREATE TEMP TABLE entered AS SELECT user_id, max(day) AS day, used FROM (
    SELECT user_id, day, sum(amount) AS used FROM (
      SELECT user_id, created_at / 86400000 AS day, price * quantity * 100 AS amount FROM fills WHERE side = 1
      UNION ALL SELECT user_id, created_at / 86400000, -amount FROM entries WHERE type = 'split')
    GROUP BY user_id, day) GROUP BY user_id;
  CREATE INDEX temp.entered_by_user ON entered (user_id);
  UPDATE accounts SET
    activity_day = coalesce((SELECT day FROM temp.entered e WHERE e.user_id = accounts.user_id), 0),
    activity_used = coalesce((SELECT used FROM temp.entered e WHERE e.user_id = accounts.user_id), 0);
  DROP TABLE temp.entered;

  -- Ids of deleted accounts: assigned again once all others are in use.
  CREATE TABLE free_user_ids (id INTEGER PRIMARY KEY) STRICT;
  -- For the deletion of an account's rows.
  CREATE INDEX tokens_by_user ON personal_access_tokens (user_id);
  CREATE INDEX sessions_by_user ON sessions (user_id);
  CREATE INDEX sessions_by_grant ON sessions (grant_id) WHERE grant_id IS NOT NULL;
  CREATE INDEX email_tokens_by_user ON email_tokens (user_id);
  CREATE INDEX applications_by_user ON identity_applications (user_id);
  CREATE INDEX clients_by_user ON oauth_clients (user_id);
  CREATE INDEX grants_by_user ON oauth_grants (user_id);
  CREATE INDEX grants_by_client ON oauth_grants (client_id);
  CREATE INDEX identities_by_user ON social_identities (user_id);

  -- For the sweep of obsolete rows. Removed clients keep only their ids until then.
  CREATE INDEX revoked_tokens ON personal_access_tokens (id) WHERE revoked_at IS NOT NULL;
  CREATE INDEX revoked_grants ON oauth_grants (id) WHERE revoked_at IS NOT NULL;
  CREATE INDEX removed_clients ON oauth_clients (id) WHERE deleted_at IS NOT NULL;
  CREATE INDEX used_email_tokens ON email_tokens (id) WHERE used_at IS NOT NULL;
  UPDATE oauth_clients SET name = '', redirect_uris = '', secret_hash = NULL WHERE deleted_at IS NOT NULL;

  -- Outcomes of refused proposals get separate ids (2^30 + market_id * 32 + position), which frees their original ones.
  UPDATE outcomes SET id = 1073741824 + market_id * 32 + position
    WHERE market_id IN (SELECT id FROM markets WHERE status = 6);
  `,
  `
  -- From here on the log (journal.db) is what makes a change durable; these tables follow it, a transaction for many of its
  -- batches. Their content depends on the log alone, so no list is written behind any more.

  -- The rows of orders, brought forward to the last order update.
  UPDATE orders SET remaining = u.remaining, status = u.status, reason = u.reason, updated_at = u.created_at,
    last_fill_id = max(orders.last_fill_id, n.fill_id)
  FROM (SELECT order_id, max(id) AS update_id, max(last_fill_id) AS fill_id FROM order_updates
        WHERE id > (SELECT value FROM meta WHERE key = 'orders_told') GROUP BY order_id) n
    CROSS JOIN order_updates u ON u.id = n.update_id
  WHERE orders.id = +n.order_id;

  -- Orders in the middle of their matching: fills that no order update reports, and the batch of the first one. A row with
  -- batch 0 is from before the log and stays, for the update that ended the order.
  CREATE TABLE unfinished_orders (order_id INTEGER PRIMARY KEY, fills INTEGER NOT NULL, batch INTEGER NOT NULL) STRICT;
  INSERT INTO unfinished_orders
    WITH RECURSIVE chain (order_id, link) AS (
      SELECT id, last_fill_id FROM orders WHERE status = 2
        AND (id IN (SELECT order_id FROM resting_orders) OR id > (SELECT value FROM meta WHERE key = 'orders_listed'))
      UNION ALL SELECT chain.order_id, previous_of_order FROM chain CROSS JOIN fills ON id = link
        WHERE fills.order_id = chain.order_id)
    SELECT chain.order_id, count(*), 0 FROM chain CROSS JOIN fills ON id = link
      WHERE fills.order_id = chain.order_id GROUP BY chain.order_id;

  -- resting_orders: the live orders up to meta's orders_listed, a multiple of 65536 that the last order's id determines.
  CREATE TEMP TABLE listed AS SELECT value AS old, max(0, last_order_id / 65536 - 1) * 65536 AS now
    FROM meta CROSS JOIN totals WHERE key = 'orders_listed';
  DELETE FROM resting_orders WHERE order_id > (SELECT now FROM temp.listed)
    OR order_id IN (SELECT id FROM resting_orders JOIN orders ON id = order_id WHERE status >= 5);
  INSERT OR IGNORE INTO resting_orders SELECT id FROM orders
    WHERE id > (SELECT old FROM temp.listed) AND id <= (SELECT now FROM temp.listed) AND status < 5;
  UPDATE meta SET value = (SELECT now FROM temp.listed) WHERE key = 'orders_listed';
  DROP TABLE temp.listed;

  -- newest_of_user, newest_of_market: complete. update_sequence: the number of the user's last order update.
  ALTER TABLE newest_of_user DROP COLUMN update_id;
  INSERT INTO newest_of_user SELECT user_id, max(order_id), max(fill_id), max(sequence) FROM (
      SELECT user_id, id AS order_id, 0 AS fill_id, 0 AS sequence FROM orders
        WHERE id > (SELECT value FROM meta WHERE key = 'newest_order')
      UNION ALL SELECT user_id, 0, id, 0 FROM fills WHERE id > (SELECT value FROM meta WHERE key = 'newest_fill')
      UNION ALL SELECT user_id, 0, 0, sequence FROM order_updates
        WHERE id > (SELECT value FROM meta WHERE key = 'newest_update'))
    WHERE true GROUP BY user_id
    ON CONFLICT (user_id) DO UPDATE SET order_id = max(order_id, excluded.order_id),
      fill_id = max(fill_id, excluded.fill_id), update_sequence = max(update_sequence, excluded.update_sequence);
  INSERT INTO newest_of_market SELECT market_id, max(fills.id) FROM fills JOIN outcomes ON outcomes.id = outcome_id
    WHERE role = 1 AND fills.id > (SELECT value FROM meta WHERE key = 'newest_fill') GROUP BY market_id
    ON CONFLICT (market_id) DO UPDATE SET fill_id = max(fill_id, excluded.fill_id);

  -- candles: complete. All lengths of a trade's candles were written together, so the minute's row stands for them.
  CREATE TEMP TABLE minutes AS
    SELECT fills.outcome_id, created_at - created_at % 60000 AS open_time, min(id) AS first, max(id) AS last,
      max(price) AS high, min(price) AS low, sum(quantity) AS volume
    FROM fills LEFT JOIN candles c ON c.outcome_id = fills.outcome_id AND c.interval = 1
      AND c.open_time = created_at - created_at % 60000
    WHERE id > (SELECT value FROM meta WHERE key = 'candles_fill') AND role = 1 AND id > coalesce(c.last_fill_id, 0)
    GROUP BY 1, 2;
  INSERT INTO candles
    SELECT outcome_id, length, began, (SELECT price FROM fills WHERE id = first), high, low,
      (SELECT price FROM fills WHERE id = last), volume, last
    FROM (SELECT outcome_id, length, open_time - open_time % (length * 60000) AS began, min(first) AS first,
        max(last) AS last, max(high) AS high, min(low) AS low, sum(volume) AS volume
      FROM temp.minutes CROSS JOIN (SELECT 1 AS length UNION ALL SELECT 5 UNION ALL SELECT 60 UNION ALL SELECT 1440)
      GROUP BY 1, 2, 3)
    WHERE true
    ON CONFLICT (outcome_id, interval, open_time) DO UPDATE SET high = max(high, excluded.high),
      low = min(low, excluded.low), close = excluded.close, volume = volume + excluded.volume,
      last_fill_id = excluded.last_fill_id;
  DROP TABLE temp.minutes;

  DROP VIEW current_orders;
  CREATE VIEW current_orders AS SELECT * FROM orders;
  DROP TABLE order_updates;
  DROP TABLE update_marks;
  DELETE FROM meta WHERE key IN ('newest_order', 'newest_fill', 'newest_update', 'candles_fill', 'orders_told');

  -- Where the log has a user's order updates: for each block of the log (2^14 events) with one, the number of the first,
  -- and the first batch to read for all of them.
  CREATE TABLE update_index (
    user_id INTEGER NOT NULL, sequence INTEGER NOT NULL, block INTEGER NOT NULL, batch INTEGER NOT NULL,
    PRIMARY KEY (user_id, sequence)
  ) STRICT, WITHOUT ROWID;
  -- An order's terms from before a change; its owner's updates from this number on show what followed. expires_at 0: never.
  CREATE TABLE term_changes (
    order_id INTEGER NOT NULL, sequence INTEGER NOT NULL, price INTEGER NOT NULL, quantity INTEGER NOT NULL,
    expires_at INTEGER NOT NULL, PRIMARY KEY (order_id, sequence)
  ) STRICT, WITHOUT ROWID;
  -- Requests with an Idempotency-Key whose command (by its reference) has no event yet. A start of the exchange empties it.
  CREATE TABLE awaited_keys (
    reference INTEGER PRIMARY KEY, user_id INTEGER NOT NULL, key TEXT NOT NULL, request TEXT NOT NULL,
    created_at INTEGER NOT NULL
  ) STRICT;
  -- One row. exchange: a random number that journal.db has too. batch, position, hash: the last projected batch of the log,
  -- events up to and including it, the SHA-256 of its body in hex ('' before the first). log_begins: the first batch that
  -- order updates can be read from.
  CREATE TABLE projection (
    id INTEGER PRIMARY KEY CHECK (id = 1), exchange INTEGER NOT NULL, batch INTEGER NOT NULL, position INTEGER NOT NULL,
    hash TEXT NOT NULL, log_begins INTEGER NOT NULL
  ) STRICT;
  INSERT INTO projection SELECT 1, abs(random()) % 4503599627370495 + 1, sequence, 0, '', sequence + 1 FROM totals;
  `,
  `
  -- user_handle: what the passkey knows its account by, random bytes in base64url. NULL: the account's id as text.
  ALTER TABLE second_factors ADD COLUMN user_handle TEXT;
  `,
  `
  -- entries.reverses: of a deposit with a negative amount, the deposit that it takes back, or a part of it.
  ALTER TABLE entries ADD COLUMN reverses INTEGER;
  CREATE INDEX reversals ON entries (reverses) WHERE reverses IS NOT NULL;
  -- Payments' references are compared without case. Those on record may differ in nothing else.
  CREATE INDEX entries_by_reference ON entries (reference COLLATE NOCASE) WHERE reference IS NOT NULL;
  CREATE INDEX withdrawals_by_reference ON withdrawals (reference COLLATE NOCASE) WHERE reference IS NOT NULL;
  DROP INDEX audit_trail;
  CREATE INDEX audit_trail ON audit_log (user_id, action, subject) WHERE action IN
    ('wallet.deposit', 'wallet.reverse_deposit', 'user.set_terms', 'identity.approve', 'identity.refuse');
  `,
  `
  -- What the user watches, newest first: "market 12 event 3". NULL: nothing.
  ALTER TABLE users ADD COLUMN watchlist TEXT;
  `,
  `
  -- What the user has paid in fees and earned in rebates in all, micro-USDC.
  ALTER TABLE accounts ADD COLUMN fees INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE accounts ADD COLUMN rebates INTEGER NOT NULL DEFAULT 0;
  UPDATE accounts SET fees = sums.fees, rebates = sums.rebates FROM (
    SELECT user_id, sum(fee) AS fees, sum(rebate) AS rebates FROM (
      SELECT user_id, fee, rebate FROM fills UNION ALL SELECT user_id, -amount, 0 FROM entries WHERE type = 'fee')
    GROUP BY user_id) sums WHERE sums.user_id = accounts.user_id;

  -- What users had when an hour (hours since the epoch) began: a row for each hour in which it changed, with the balance,
  -- micro-USDC, or the shares from before the first change. Changes follow each other by id; one whose time is earlier
  -- than the one before belongs to the hour of that one.
  CREATE TABLE balance_hours (user_id INTEGER NOT NULL, hour INTEGER NOT NULL, balance INTEGER NOT NULL,
    PRIMARY KEY (user_id, hour)) STRICT, WITHOUT ROWID;
  CREATE TABLE position_hours (user_id INTEGER NOT NULL, hour INTEGER NOT NULL, outcome_id INTEGER NOT NULL,
    quantity INTEGER NOT NULL, PRIMARY KEY (user_id, hour, outcome_id)) STRICT, WITHOUT ROWID;
  INSERT INTO balance_hours SELECT user_id, hour, balance FROM (
    SELECT user_id, hour, balance, min(id) FROM (
      SELECT id, user_id, balance, max(created_at / 3600000) OVER (PARTITION BY user_id ORDER BY id) AS hour FROM (
        SELECT id, user_id, created_at, balance_after
          - (CASE side WHEN 1 THEN -1 ELSE 1 END * price * quantity * 100 - fee + rebate) AS balance FROM fills
        UNION ALL SELECT id, user_id, created_at, balance_after - amount FROM entries WHERE user_id > 0))
    GROUP BY user_id, hour);
  INSERT INTO position_hours SELECT user_id, hour, outcome_id, quantity FROM (
    SELECT user_id, hour, outcome_id, quantity, min(id) FROM (
      SELECT id, user_id, outcome_id, max(created_at / 3600000) OVER same AS hour, sum(change) OVER same - change AS quantity
      FROM (
        SELECT id, user_id, outcome_id, created_at, CASE side WHEN 1 THEN quantity ELSE -quantity END AS change FROM fills
        UNION ALL SELECT entries.id, user_id, outcomes.id, entries.created_at, -amount / 1000000
          FROM entries JOIN outcomes USING (market_id) WHERE type IN ('split', 'merge')
        UNION ALL SELECT id, user_id, outcome_id, created_at, -quantity FROM entries WHERE type = 'settlement')
      WINDOW same AS (PARTITION BY user_id, outcome_id ORDER BY id))
    GROUP BY user_id, outcome_id, hour);
  `,
  `
  -- What the user is told of, JSON: the settings, and until when notifications were seen, ms. NULL: the defaults.
  ALTER TABLE users ADD COLUMN notifications TEXT;
  -- Price alerts, JSON, oldest first; those that fired are kept for a while. NULL: none.
  ALTER TABLE users ADD COLUMN price_alerts TEXT;
  `,
  `
  -- Finds the users whom a mail tells of deposits and payouts.
  CREATE INDEX entries_with_news ON entries (created_at, user_id) WHERE type IN ('deposit', 'settlement');
  `,
  `
  -- Operators' pictures of markets. webp: the file in base64; hash: the start of its SHA-256, in hex.
  CREATE TABLE market_pictures (market_id INTEGER PRIMARY KEY, hash TEXT NOT NULL, webp TEXT NOT NULL) STRICT;
  `,
  `
  -- Changes nothing. From here on the log has splits and merges that count set by set, which earlier programs don't know.
  `,
];
