"""A budget that lasts until it is spent, in a file."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
import subprocess
import sys
import time

import numpy as np
import pytest

import sketchshift as ss
from sketchshift.errors import PrivacyError, SpecError
from sketchshift.features import Charge
from sketchshift.privacy.mechanism import epsilon_of

CHARGE_UNTIL_REFUSED = """
import os, sys
import filelock, scipy.optimize  # not when the first charge is made
import sketchshift as ss
from sketchshift.features import Charge
account, times = ss.privacy.Account(sys.argv[1]), int(sys.argv[2])
print("ready", flush=True)
sys.stdin.readline()
for _ in range(times):
    name = os.urandom(16).hex()
    try:
        account.add([Charge(name, "release", 0.01, 1e-8, 1.0, 7.1, "add_remove", 1, "test")])
    except ss.errors.PrivacyError:
        break
    print(name, flush=True)
"""
RHO = 0.01
DEEP = b"[" * 100_000 + b"]" * 100_000
WRITTEN = """\
{
 "charges": [
  {
   "adjacency": "add_remove",
   "delta": 1e-08,
   "id": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
   "mechanism": "t",
   "purpose": "release",
   "rho": 0.01,
   "rows_per_person": 1,
   "scale": 7.1,
   "sensitivity": 1.0
  },
  {
   "adjacency": "add_remove",
   "delta": 1e-08,
   "id": "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb",
   "mechanism": "t",
   "purpose": "release",
   "rho": 0.01,
   "rows_per_person": 1,
   "scale": 7.1,
   "sensitivity": 1.0
  }
 ],
 "delta": 1e-08,
 "epsilon": 2.0,
 "schema": 1
}
"""


IDS = itertools.count()


def charge(rho=RHO):
    name = f"{next(IDS):032x}"
    return Charge(name, "release", rho, 1e-8, 1.0, 7.1, "add_remove", 1, "test")


def start(times, *paths):
    """Processes that charge accounts from now on, and print each charge once it is made."""
    command = [sys.executable, "-c", CHARGE_UNTIL_REFUSED]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    running = [subprocess.Popen([*command, str(path), str(times)], **pipes) for path in paths]
    for process in running:
        assert process.stdout.readline() == "ready\n"
    for process in running:
        process.stdin.write("\n")
        process.stdin.flush()
    return running


def ids(path):
    """Of the charges in the file."""
    return [charge["id"] for charge in json.loads(path.read_text())["charges"]]


def rewrite(path, **changes):
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "people.json"


@pytest.fixture
def account(path):
    return ss.privacy.Account(path, epsilon=5, delta=1e-8)


@pytest.fixture
def link(path):
    """Another name of the account, in another folder."""
    (path.parent / "elsewhere").mkdir()
    link = path.parent / "elsewhere" / "same.json"
    link.symlink_to(path)
    return link


def test_releases_are_charged_until_the_budget_is_spent(raw, release, path):
    """Two of epsilon 1 make 1.44 by zCDP, three 1.79; both accounts were open from the start."""
    first, second = (ss.privacy.Account(path, epsilon=1.6, delta=1e-8) for _ in range(2))
    for account in (first, second):
        release(raw, account=account)

    with pytest.raises(PrivacyError, match=r"budget is too small: .* 1\.44 are spent"):
        release(raw, account=first)
    assert first.spent == second.spent == pytest.approx(1.4405, abs=1e-3)


def test_what_exceeds_a_budget_by_more_than_a_part_in_1e9_is_refused_and_not_written(path):
    """The smallest budget that allows three charges, to the last bit, and the float below it."""
    cost = epsilon_of(RHO + 2 * RHO, 1e-8)
    enough = cost / (1.0 + 1e-9)
    assert enough * (1.0 + 1e-9) == cost

    account = ss.privacy.Account(path, epsilon=enough, delta=1e-8)
    account.add([charge(), charge(), charge()])
    assert account.spent == cost
    rewrite(path, epsilon=math.nextafter(enough, 0.0), charges=[])
    account = ss.privacy.Account(path)
    account.add([charge()])
    with pytest.raises(PrivacyError, match="would make"):
        account.add([charge(), charge()])
    assert account.spent == epsilon_of(RHO, 1e-8)


def test_an_account_is_written_to_the_byte_under_all_of_its_names(path, link):
    """The lock is that of the file, whatever name it is charged by."""
    ss.privacy.Account(path, epsilon=2, delta=1e-8)
    b, a = (Charge(name * 32, "release", RHO, 1e-8, 1, 7.1, "add_remove", 1, "t") for name in "ba")
    ss.privacy.Account(link).add([b, a, b])

    assert link.read_text() == WRITTEN
    assert [each.name for each in path.parent.rglob("*.lock")] == ["people.json.lock"]


@pytest.mark.usefixtures("seeded_noise")
def test_a_plan_is_charged_once_however_often_it_is_used(X, release, account, path):
    spec = ss.privacy.plan(X, [5.0, -1.0, 0.3], 30.0, 2, 0.5, 1e-8, account=account)
    first, second = (release(ss.sketch(X[i::2], spec), account=account) for i in range(2))

    assert account.spent == pytest.approx((first + second).ledger.epsilon(1e-8))
    assert len(ids(path)) == 3 + 2


def test_a_budget_is_fixed_when_its_account_is_opened(path):
    """The file is there before the first charge, and says what the budget is."""
    with pytest.raises(SpecError, match="'epsilon' parameter of Account"):
        ss.privacy.Account(path)
    ss.privacy.Account(path, epsilon=2, delta=1e-8)
    for other in ({"epsilon": 1.0}, {"epsilon": 50.0}, {"delta": 1e-9}):
        with pytest.raises(PrivacyError, match="was asked for"):
            ss.privacy.Account(path, **other)

    account = ss.privacy.Account(path)
    assert (account.epsilon, account.delta, account.spent) == (2.0, 1e-8, 0.0)


def test_a_budget_tightened_in_the_file_holds_for_those_who_have_it_open(path):
    declared = ss.privacy.Account(path, epsilon=50, delta=1e-8)
    account = ss.privacy.Account(path)
    rewrite(path, epsilon=5)

    with pytest.raises(PrivacyError, match="has epsilon 5, and 50 was asked for"):
        declared.add([charge()])
    with pytest.raises(PrivacyError, match="budget is too small"):
        account.add([charge(2.0)])
    assert (account.epsilon, ids(path)) == (5.0, [])


def test_an_account_that_is_gone_is_not_made_anew_by_those_who_have_it_open(account, path):
    path.unlink()

    with pytest.raises(PrivacyError, match=r"is gone\. Put it back"):
        account.add([charge()])
    assert not path.exists()


def test_an_account_is_the_file_it_was_opened_as_from_any_folder(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    account = ss.privacy.Account(path.name, epsilon=5, delta=1e-8)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    account.add([charge()])

    assert len(ids(path)) == 1


def test_hard_links_are_refused_since_a_charge_would_reach_one_of_them(account, path):
    path.with_name("other.json").hardlink_to(path)

    with pytest.raises(PrivacyError, match=r"has 2 names \(hard links\)"):
        account.add([charge()])


def test_what_is_no_account_is_refused_and_left_as_it_is(account, path):
    good, paid = json.loads(path.read_text()), dataclasses.asdict(charge())
    for changes in (
        {"charges": {}},
        {"charges": [{}]},
        {"charges": [paid | {"rho": 1e6}]},
        {"charges": [paid, paid | {"rows_per_person": 2}]},
        {"epsilon": True},
        {"epsilon": 1e4},
        {"epsilon": 1e-4},
        {"epsilon": float("nan")},
        {"delta": 1e-31},
        {"delta": 0.011},
        {"schema": True},
        {"schema": 2},
        {"more": 1},
        b"",
        b"\xff\xfe",
        DEEP,
        b"[]",
        b"1" * 10_000,
    ):
        written = json.dumps(good | changes).encode() if isinstance(changes, dict) else changes
        path.write_bytes(written)
        with pytest.raises(PrivacyError, match=r"is not an account: .* Restore it"):
            account.add([charge()])
        assert path.read_bytes() == written


def test_a_folder_is_no_account_and_one_that_is_not_there_is_not_made(tmp_path):
    """A name misspelt would be a new account, with nothing spent."""
    for path, words in (
        (tmp_path, "is not an account: it is not a regular file"),
        (tmp_path / "poeple" / "people.json", r"there is no folder .*poeple\. Make it first"),
    ):
        with pytest.raises(PrivacyError, match=words):
            ss.privacy.Account(path, epsilon=5, delta=1e-8)
    assert not (tmp_path / "poeple").exists()


@pytest.mark.thorough
def test_killed_processes_leave_the_account_whole_and_never_overspent(path, link):
    """Kills at seeded moments of two processes at once; what was printed is in the file.

    The budget is that of two charges a kill; a last process spends the rest of it.
    """
    rng, affordable = np.random.default_rng(6), 12
    budget = epsilon_of(affordable * RHO, 1e-8)
    account = ss.privacy.Account(path, epsilon=budget, delta=1e-8)
    printed: list[str] = []
    for _ in range(3):
        running = start(10**6, path, link)
        for process in running:
            time.sleep(rng.uniform(0.0, 0.1))
            process.kill()
        for process in running:
            printed += [name for name in process.communicate()[0].split("\n") if len(name) == 32]
        assert set(printed) <= set(ids(path))
        assert account.spent <= budget * (1.0 + 1e-9)

    last, _ = start(10**6, path)[0].communicate()
    assert len(ids(path)) == affordable
    assert link.is_symlink()
    assert set(printed) | set(last.split()) <= set(ids(path))


@pytest.mark.usefixtures("seeded_noise")
def test_the_path_of_an_account_is_no_account_and_is_refused_before_anything_is_spent(raw):
    with pytest.raises(SpecError, match="parameter of release must be an Account"):
        ss.privacy.release(raw, 1.0, 1e-8, account="a.json")
    with pytest.raises(SpecError, match="parameter of plan must be an Account"):
        ss.privacy.plan(np.zeros((9, 2)), [0, 0], 9.0, 2, 1.0, 1e-8, account="a.json")
