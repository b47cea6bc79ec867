"""What commands propose works when it is pasted: next steps, options, remedies in errors."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pytest

HOSTILE = "unit price, net ($)"


@pytest.fixture
def tables(folder):
    """Tables as people have them, beside the files of the other tests."""
    rng = np.random.default_rng(0)
    n, group = 600, rng.integers(3, size=600)
    frame = pd.DataFrame(
        {
            "order id": np.arange(n),
            HOSTILE: np.round(np.exp(3.0 * group + rng.normal(size=n)), 2),
            "weight (kg)": np.round(group + rng.normal(scale=0.2, size=n), 3),
            "it's a category": np.array(["x", "y, z", 'q"'])[group],
            "hour": rng.integers(24, size=n),
            "sold on": pd.date_range("2025-01-01", periods=n, freq="7h").strftime("%d/%m/%Y %H:%M"),
            "month": np.array(["2025-01", "2025-02", "2025-03"])[np.arange(n) // 200],
        }
    )
    frame.loc[::10, "weight (kg)"] = np.nan
    frame.to_csv("messy sales.csv", sep=";", decimal=",", index=False)
    frame.to_parquet("sales.parquet")
    frame[["it's a category", "sold on"]].to_csv("words.csv", index=False)
    strange = frame.astype(object).where(frame.notna(), "tbd")
    strange.to_csv("strange sales.csv", sep="^", index=False)


OPTION = r"--(?:[a-z]+-?)+ (?:'[^']*'(?:\"'\"'[^']*')*|\"[^\"]*\"|[^\s;.,)]+(?:,[^\s;.,)]+)*)"


def proposals(command, said):
    """Every command, and every option to be added to this one, that a text proposes."""
    found = re.findall(r"^(?:Next: |  )sketchshift (.+)$", said, re.MULTILINE)
    found += [c for c in re.findall(r"`sketchshift ([^`]+)`", said) if not re.search("[A-Z]{4}", c)]
    found += re.findall(r": sketchshift ([^`\n]+?)\.?$", said, re.MULTILINE)
    prose = re.sub(r"^(Next: |  )sketchshift.*$", "", said, flags=re.MULTILINE)
    prose = re.sub(r"`[^`]*`|: sketchshift [^\n]+", "", prose)
    options = [o for o in re.findall(OPTION, prose) if not re.search(r"[ =][A-Z]{4,}$", o)]
    return list(dict.fromkeys([*found, *(f"{command} {option}" for option in options)]))


GOOD = [
    "cluster 'messy sales.csv'",
    "cluster sales.parquet -k 3 --scale log",
    "cluster 'strange sales.csv' --csv sep=^ --csv missing=tbd",
    "cluster 'strange sales.csv' -k 3 --csv sep=^ --csv missing=tbd -o c.csv --plot c.png "
    "--where 'hour < 20'",
    "plan 'strange sales.csv' -k 3 --csv sep=^ --csv missing=tbd --where 'hour < 20' -o p.json",
    "cluster points.csv",
    "cluster week.sketch -k 2",
    "cluster sketches.parquet -k 2 --where \"shop = 'a'\"",
    "sketch 'messy sales.csv' -k 3 -o s.sketch",
    "sketch sales.parquet --by month -k 3 -o months.parquet",
    "plan people.csv --drift -o p.json --columns x",
    "merge day1.sketch day2.sketch -o m.sketch",
    "merge week.sketch --minus day1.sketch -o left.sketch",
    "inspect week.sketch",
    "inspect sketches.parquet",
    "compare day1.sketch day2.sketch -k 2",
    "compare sketches.parquet -k 2 --over day",
    "assign points.csv --centroids centroids.csv -o labels.csv",
    "inspect points.sketch --centroids centroids.csv",
]


@pytest.mark.filterwarnings("ignore:The clusters:sketchshift.errors.PlanWarning")
@pytest.mark.parametrize("command", GOOD)
def test_what_a_command_proposes_works(run, tables, command):
    said = run(command)

    pasted = proposals(command, said.stdout + said.stderr)
    assert pasted, said.stdout
    for line in pasted:
        run(line)


def test_what_assign_proposes_reads_the_same_text(run, tables):
    text = "--csv sep=^ --csv missing=tbd --where 'hour < 20'"
    run(f"cluster 'strange sales.csv' -k 3 {text} -o c.csv")
    command = f"assign 'strange sales.csv' {text} --centroids c.csv -o labels.csv"

    (then,) = proposals(command, run(command).stdout)

    assert "--csv 'sep=^' --csv missing=tbd --where 'hour < 20'" in then
    run(then)


def test_a_list_that_is_given_twice_adds_up(run, tables):
    command = "cluster sales.parquet -k 2 --json"
    once = run(f"{command} --categories 'hour(hour),weekday(sold on)' --exclude 'order id,month'")
    twice = run(
        f"{command} --categories 'hour(hour)' --exclude 'order id' --categories 'weekday(sold on)' "
        "--exclude month"
    )

    columns = [json.loads(said.stdout)["survey"]["columns"] for said in (once, twice)]
    assert columns[0] == columns[1]
    assert sum(column["used"] for column in columns[1]) == 4
    shown = run("cluster sales.parquet -k 2 --exclude month --exclude hour").stdout
    assert "--exclude month,hour" in shown.splitlines()[-1]


def test_units_that_are_taken_as_they_are_on_demand_are_not_argued_about(run, tables):
    assert "standardize" not in run("cluster sales.parquet -k 2 --scale none").output


def test_a_table_below_lines_of_notes_is_said_to_begin_further_down(run, folder):
    notes = 'Title:,"Area of\n\nplaces"\nSource:,"an office"\n=====\n\n'
    table = "place,area,people\n" + "".join(f"p{i},{i}.5,{i * i % 7}\n" for i in range(30))
    (folder / "below notes.csv").write_text(notes + table)

    said = run.error("cluster 'below notes.csv'", "the table seems to begin at line 7")

    assert said.endswith("as in: tail -n +7 'below notes.csv' > table.csv\n")
    assert (notes + table).splitlines()[6] == "place,area,people"


BAD = {
    "cluster words.csv": 1,
    "cluster sales.parquet --columns month,hour": 1,
    "cluster 'messy sales.csv' --on-invalid raise": 1,
    "cluster points.csv -k 100": 1,
    "cluster missing.sketch": 1,
    "cluster sketches.parquet -k 2 --where \"shop = 'nowhere'\"": 1,
    "compare points.csv week.sketch": 2,
    "sketch sketches.parquet -k 3 -o s.sketch": 2,
    "merge points.csv week.sketch -o m.sketch": 2,
}


@pytest.mark.filterwarnings("ignore:The clusters:sketchshift.errors.PlanWarning")
def test_what_an_error_proposes_works(run, tables):
    """One that names no command and no option gives a reason at least."""
    pasted = []
    for command, status in BAD.items():
        said = run.error(command, status=status)
        assert said.startswith(("Error: ", "Usage: "))
        pasted += proposals(command, said)

    assert len(pasted) >= 4
    for line in pasted:
        run(line)
