-- Sketches made inside a PostgreSQL server, by PL/Python (docs/databases.md).
--
-- Needs plpython3u, which a superuser creates: its functions run as the user of the server. Its
-- Python must find sketchshift, installed for it, or in folders that a table names. Whoever may
-- write to that table may run any program as the user of the server, so it is the superuser's:
--
--     INSERT INTO sketchshift.path VALUES ('/opt/venv/lib/python3.11/site-packages');
--
-- Others may use all of it once they are let in, and write no plans:
--
--     GRANT USAGE ON SCHEMA sketchshift TO analysts;
--
-- Plans lie in a table, under a name; ss.plan(...).to_json() writes one:
--
--     INSERT INTO sketchshift.plan VALUES ('shop', '{...}');
--     SELECT day, sketchshift.sketch('shop', x, y) FROM events GROUP BY day;
--
-- Sketches are bytea, equal to the bit to those that ss.sketch makes of the same rows.

CREATE EXTENSION IF NOT EXISTS plpython3u;
CREATE SCHEMA IF NOT EXISTS sketchshift;
CREATE TABLE IF NOT EXISTS sketchshift.path (folder text PRIMARY KEY);
CREATE TABLE IF NOT EXISTS sketchshift.plan (name text PRIMARY KEY, plan text NOT NULL);
GRANT SELECT ON sketchshift.path, sketchshift.plan TO PUBLIC;

-- What all functions share, once in a session.
CREATE OR REPLACE FUNCTION sketchshift.load() RETURNS void LANGUAGE plpython3u AS $$
import os
import sys

found = plpy.execute("SELECT folder FROM sketchshift.path")
sys.path[:0] = [row["folder"] for row in found]
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")  # a backend is one thread
import numpy as np
import sketchshift as ss

specs = {}


def find_spec(name):
    query = plpy.prepare("SELECT plan FROM sketchshift.plan WHERE name = $1", ["text"])
    rows = plpy.execute(query, [name])
    if not rows:
        names = plpy.execute("SELECT name FROM sketchshift.plan ORDER BY name")
        known = ", ".join(repr(row["name"]) for row in names) or "none"
        plpy.error(f"there is no plan {name!r} in sketchshift.plan, which has: {known}")
    text = rows[0]["plan"]
    if text not in specs:
        specs[text] = ss.SketchSpec.from_json(text)
    return specs[text]


def start(name):
    return ss.Sketcher(find_spec(name), n_threads=1)


def unpack(rows, d):
    """Arrays of float8 as array_send wrote them, one after the other, as rows."""
    head = np.array([1, 0, 701, d, 1], ">i4")  # one dimension, no NULL, float8, d from 1 on
    kind = np.dtype([("head", ">i4", 5), ("items", [("size", ">i4"), ("number", ">f8")], (d,))])
    found = np.frombuffer(rows[: len(rows) // kind.itemsize * kind.itemsize], kind)
    is_whole = len(rows) == found.nbytes and (found["items"]["size"] == 8).all()
    if not (is_whole and (found["head"] == head).all()):
        plpy.error(f"rows must be array_send of {d} float8 each, without NULL: use coalesce")
    return found["items"]["number"].astype(np.float64)


GD["sketchshift"] = {"ss": ss, "np": np, "find_spec": find_spec, "start": start, "unpack": unpack}
GD["sketches"] = {}
$$;

-- An aggregate, a row at a time. Its state is the number of a sketcher of this session.
CREATE OR REPLACE FUNCTION sketchshift.step(state int8, plan text, VARIADIC numbers float8[])
RETURNS int8 LANGUAGE plpython3u AS $$
number = state
if number is None:
    if "sketchshift" not in GD:
        plpy.execute("SELECT sketchshift.load()")
    now = plpy.execute("SELECT transaction_timestamp()::text AS now")[0]["now"]
    open_ = GD["sketches"]
    for key in [key for key, held in open_.items() if held[2] != now]:
        del open_[key]  # of a query that failed
    number = max(open_, default=0) + 1
    open_[number] = [GD["sketchshift"]["start"](plan), [], now, plan]
held = GD["sketches"][number]
if plan != held[3]:
    plpy.error(f"a group has the plans {held[3]!r} and {plan!r}. Group by the plan, too.")
held[1].append(numbers)
if len(held[1]) == 8192:
    held[0].update(GD["sketchshift"]["np"].array(held[1], dtype=float))
    held[1] = []
return number
$$;

CREATE OR REPLACE FUNCTION sketchshift.finish(state int8) RETURNS bytea LANGUAGE plpython3u AS $$
if state is None:
    return None
sketcher, rows, *_ = GD["sketches"].pop(state)
if rows:
    sketcher.update(GD["sketchshift"]["np"].array(rows, dtype=float))
return sketcher.sketch().to_bytes()
$$;

CREATE OR REPLACE AGGREGATE sketchshift.sketch(plan text, VARIADIC numbers float8[]) (
    SFUNC = sketchshift.step, STYPE = int8,
    FINALFUNC = sketchshift.finish, FINALFUNC_MODIFY = READ_WRITE
);

-- The same of many rows at a time, several times faster; a group has up to 1 GB:
--
--     SELECT day, sketchshift.sketch_packed('shop', string_agg(array_send(ARRAY[x, y]), ''))
--     FROM events GROUP BY day;
CREATE OR REPLACE FUNCTION sketchshift.sketch_packed(plan text, numbers bytea)
RETURNS bytea LANGUAGE plpython3u AS $$
if numbers is None:
    return None
if "sketchshift" not in GD:
    plpy.execute("SELECT sketchshift.load()")
sketcher = GD["sketchshift"]["start"](plan)
rows = GD["sketchshift"]["unpack"](numbers, sketcher.spec.n_features)
return sketcher.update(rows).sketch().to_bytes()
$$;

-- The same of all rows of a query, in flat memory; columns are those of the plan.
CREATE OR REPLACE FUNCTION sketchshift.sketch_query(plan text, query text)
RETURNS bytea LANGUAGE plpython3u AS $$
if "sketchshift" not in GD:
    plpy.execute("SELECT sketchshift.load()")
sketcher = GD["sketchshift"]["start"](plan)
names = sketcher.spec.columns
if names is None:
    plpy.error(f"the plan {plan!r} names no columns: make it with columns=[...]")
columns = ", ".join(f"coalesce({plpy.quote_ident(name)}::float8, 'NaN')" for name in names)
asked = query.rstrip(" \t\r\n;")
rows = plpy.cursor(f"SELECT array_send(ARRAY[{columns}]) AS packed FROM ({asked}\n) AS asked")
while some := rows.fetch(16384):
    packed = b"".join([row["packed"] for row in some])
    sketcher.update(GD["sketchshift"]["unpack"](packed, len(names)))
return sketcher.sketch().to_bytes()
$$;

-- The sum of sketches: SELECT sketchshift.merge(array_agg(sketch)) FROM days.
CREATE OR REPLACE FUNCTION sketchshift.merge(sketches bytea[]) RETURNS bytea
LANGUAGE plpython3u AS $$
if "sketchshift" not in GD:
    plpy.execute("SELECT sketchshift.load()")
Sketch = GD["sketchshift"]["ss"].Sketch
there = [Sketch.from_bytes(part) for part in sketches or [] if part is not None]
return sum(there[1:], there[0]).to_bytes() if there else None
$$;

-- The integers of a sketch, in which plain SUM adds: SELECT day, (sketchshift.rows(sketch)).*
CREATE OR REPLACE FUNCTION sketchshift.rows(sketch bytea)
RETURNS TABLE (plan text, part text, i int8, j int4, limb int2, value int8)
LANGUAGE plpython3u AS $$
if "sketchshift" not in GD:
    plpy.execute("SELECT sketchshift.load()")
if sketch is None:
    return []
table = GD["sketchshift"]["ss"].Sketch.from_bytes(sketch).to_sql_rows()
return zip(*(column.to_pylist() for column in table.columns))
$$;
