-- Rows with a day, a shop and two numbers; yours come from a source.
select
    1 + i % 7 as day,
    case when i % 2 = 0 then 'north' else 'south' end as shop,
    (hash(i) % 1000) / 100.0 as x,
    (hash(-i) % 1000) / 100.0 as y
from range(10000) as t(i)
