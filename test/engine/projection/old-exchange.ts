/** The rows of an exchange of schema 1, which migrations bring forward. */

/** Two users; the second's sell rests with 2 of 5 left after the first took 3 in two matches; a buy of the first rests. */
export const SCHEMA_1_ROWS = `
  INSERT INTO users VALUES (1, 'a@example.com', 'user', 2, 1), (2, 'b@example.com', 'user', 2, 1);
  INSERT INTO accounts VALUES (1, 8500000, 0, 1500000), (2, 6500000, 0, 1500000);
  INSERT INTO markets VALUES (1, 'm', '?', NULL, NULL, NULL, 1, 5, NULL, NULL, 1);
  INSERT INTO outcomes VALUES (1, 1, 0, 'Yes', 5000, 3), (2, 1, 1, 'No', NULL, 0);
  INSERT INTO entries VALUES (1, 1, 'deposit', 10000000, 10000000, NULL, NULL, '1', 1),
    (2, 2, 'deposit', 10000000, 10000000, NULL, NULL, '2', 1), (3, 2, 'split', -5000000, 5000000, 1, NULL, NULL, 1);
  INSERT INTO orders VALUES (1, 2, 1, 2, 0, 0, 0, 0, 1, 5000, 5, 2, 2, 0, NULL, NULL, 'sell', 1, 3),
    (2, 1, 1, 1, 0, 0, 0, 0, 1, 5000, 1, 0, 3, 0, NULL, NULL, NULL, 2, 2),
    (3, 1, 1, 1, 0, 0, 0, 0, 1, 5000, 2, 0, 3, 0, NULL, NULL, NULL, 3, 3),
    (4, 1, 2, 1, 0, 0, 0, 0, 1, 1000, 4, 4, 1, 0, NULL, NULL, NULL, 4, 4);
  INSERT INTO fills VALUES (4, 4, 2, 1, 1, 2, 5000, 1, 0, 0, 0, 0, 5500000, 2),
    (5, 4, 1, 2, 1, 1, 5000, 1, 1, 0, 0, 0, 9500000, 2), (6, 6, 2, 1, 1, 2, 5000, 2, 0, 0, 0, 0, 6500000, 3),
    (7, 6, 1, 3, 1, 1, 5000, 2, 1, 0, 0, 0, 8500000, 3);
  INSERT INTO entries VALUES (8, 1, 'split', -1000000, 7500000, 1, NULL, NULL, 5);
  UPDATE accounts SET balance = 7500000 WHERE user_id = 1;
  UPDATE markets SET sets = 6;
  INSERT INTO positions VALUES (2, 1, 2, 0, 0), (2, 2, 5, 0, 0), (1, 1, 4, 0, 0), (1, 2, 1, 0, 0);
  UPDATE totals SET deposits = 20000000, users_total = 14000000, collateral = 6000000, sequence = 9, last_entry_id = 8,
    last_order_id = 4;
  INSERT INTO orders_by_user VALUES (2, 1);
  INSERT INTO resting_orders VALUES (1);
  UPDATE meta SET value = 1 WHERE key = 'orders_indexed';`;
