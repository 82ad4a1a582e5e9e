-- What happened behind the last checkpoint: only the log has it, and the next start reads it from there.
USE shop;
UPDATE customer SET city = 'Paris' WHERE id = 3;
UPDATE orders SET note = REPEAT('LONG ', 6000), price = price + 1 WHERE id = 1;
DELETE FROM orders WHERE id = 2;
INSERT INTO generated (a) VALUES (4);
UPDATE shaped SET kept = kept + 1;
UPDATE types SET j = JSON_SET(j, '$.a[0]', 2), s = 'y' WHERE id = 1;
