"""A budget that lasts until it is spent, in a file."""

from __future__ import annotations

import json
import secrets
import subprocess
import sys
import time

import numpy as np
import pytest

import sketchshift as ss
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
DEEP = "[" * 100_000 + "]" * 100_000


def charge(rho: float = RHO, **changes) -> Charge:
    fields = dict(zip(Charge.__dataclass_fields__, (
        secrets.token_hex(16), "release", rho, 1e-8, 1.0, 7.1, "add_remove", 1, "test",
    ), strict=True))  # fmt: skip
    return Charge(**fields | changes)


def start(times: int, *paths) -> list[subprocess.Popen]:
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


def ids(path) -> list[str]:
    """Of the charges in the file."""
    return [charge["id"] for charge in json.loads(path.read_text())["charges"]]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "people.json"


@pytest.fixture
def link(path):
    """Another name of the account, in another folder."""
    (path.parent / "elsewhere").mkdir()
    link = path.parent / "elsewhere" / "same.json"
    link.symlink_to(path)
    return link


def test_releases_are_charged_until_the_budget_is_spent(raw, release, path):
    """Two releases of epsilon 1 make 1.44 by zCDP, three 1.79."""
    for _ in range(2):
        release(raw, account=ss.privacy.Account(path, epsilon=1.6, delta=1e-8))
    account = ss.privacy.Account(path)

    assert account.spent == pytest.approx(1.4405, abs=1e-3)
    with pytest.raises(ss.errors.PrivacyError, match=r"budget is too small: .* 1\.44 are spent"):
        release(raw, account=account)
    assert ss.privacy.Account(path).spent == account.spent


@pytest.mark.usefixtures("seeded_noise")
def test_a_plan_is_charged_once_however_often_it_is_used(X, release, path):
    spec = ss.privacy.plan(X, [5.0, -1.0, 0.3], 30.0, 2, 0.5, 1e-8)
    account = ss.privacy.Account(path, epsilon=5, delta=1e-8)
    first = release(ss.sketch(X[:500], spec), account=account)
    second = release(ss.sketch(X[500:], spec), account=account)

    assert account.spent == pytest.approx((first + second).ledger.epsilon(1e-8))


def test_a_new_account_needs_its_budget(path):
    with pytest.raises(ss.errors.SpecError, match="'epsilon' parameter of Account"):
        ss.privacy.Account(path)


def test_two_accounts_on_one_file_do_not_overspend_it(raw, release, path):
    """Each was opened before the other charged anything."""
    first, second = (ss.privacy.Account(path, epsilon=1.2, delta=1e-8) for _ in range(2))
    release(raw, account=first)

    with pytest.raises(ss.errors.PrivacyError, match=r"budget is too small: .* 1 are spent"):
        release(raw, account=second)
    assert second.spent == first.spent == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize("second", [1.0, 50.0])
def test_an_account_is_settled_when_it_is_opened(path, second):
    """The file is there before the first charge, and says what the budget is."""
    ss.privacy.Account(path, epsilon=2, delta=1e-8)

    with pytest.raises(
        ss.errors.PrivacyError, match=f"has epsilon 2, and {second:g} was asked for"
    ):
        ss.privacy.Account(path, epsilon=second, delta=1e-8)
    assert (ss.privacy.Account(path).epsilon, ss.privacy.Account(path).spent) == (2.0, 0.0)


def rewrite(path, **changes) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


@pytest.mark.parametrize("declared", [50.0, None])
def test_a_budget_tightened_in_the_file_holds_for_those_who_have_it_open(path, declared):
    account = ss.privacy.Account(path, epsilon=50, delta=1e-8)
    if declared is None:
        account = ss.privacy.Account(path)
    account.add([charge(0.2)])
    rewrite(path, epsilon=5)

    words = "has epsilon 5, and 50 was asked for" if declared else "budget is too small"
    with pytest.raises(ss.errors.PrivacyError, match=words):
        account.add([charge(2.0)])
    assert (json.loads(path.read_text())["epsilon"], len(ids(path))) == (5, 1)


def test_an_account_that_is_gone_is_not_made_anew_by_those_who_have_it_open(path):
    account = ss.privacy.Account(path, epsilon=5, delta=1e-8)
    account.add([charge()])
    path.unlink()

    with pytest.raises(ss.errors.PrivacyError, match=r"is gone\. Put it back"):
        account.add([charge()])
    assert not path.exists()


def test_an_account_is_the_file_it_was_opened_as_from_any_folder(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    account = ss.privacy.Account(path.name, epsilon=5, delta=1e-8)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    account.add([charge()])

    assert len(ids(path)) == 1


def test_hard_links_are_refused_since_a_charge_would_reach_one_of_them(path):
    account = ss.privacy.Account(path, epsilon=5, delta=1e-8)
    other = path.with_name("other.json")
    other.hardlink_to(path)

    for use in (lambda: account.add([charge()]), lambda: ss.privacy.Account(other)):
        with pytest.raises(
            ss.errors.PrivacyError, match=r"has 2 names \(hard links\).* symbolic link"
        ):
            use()
    other.unlink()
    account.add([charge()])


@pytest.mark.parametrize(
    "changes",
    [
        {"charges": {}},
        {"charges": ""},
        {"charges": None},
        {"charges": "DEEP"},
        {"charges": [[]]},
        {"charges": [{}]},
        {"epsilon": None},
        {"epsilon": "2"},
        {"epsilon": True},
        {"epsilon": 1e300},
        {"epsilon": 10**400},
        {"epsilon": float("inf")},
        {"epsilon": float("nan")},
        {"epsilon": -1.0},
        {"delta": 0.0},
        {"delta": float("nan")},
        {"delta": 1.0},
        {"schema": True},
        {"schema": 2},
        {"more": 1},
    ],
)
def test_an_account_with_other_content_is_refused(path, changes):
    account = ss.privacy.Account(path, epsilon=5, delta=1e-8)
    rewrite(path, **changes)
    path.write_text(path.read_text().replace('"DEEP"', DEEP))

    for use in (lambda: ss.privacy.Account(path), lambda: account.spent):
        with pytest.raises(
            ss.errors.PrivacyError, match=r"is not an account: .* Restore it from a copy"
        ):
            use()


NUMBERS = [1e300, 1e6, 1e-300, 0.0, -1.0, float("inf"), float("nan"), 10**400, "1", None, True, []]


@pytest.mark.parametrize("number", NUMBERS, ids=lambda n: repr(n)[:9])
@pytest.mark.parametrize("name", ["rho", "delta", "sensitivity", "scale", "rows_per_person"])
def test_a_charge_with_an_unusable_number_is_refused(path, name, number):
    account = ss.privacy.Account(path, epsilon=5, delta=1e-8)
    account.add([charge()])
    (written,) = json.loads(path.read_text())["charges"]
    rewrite(path, charges=[written | {name: number}])

    if number in ([1e6] if name in ("sensitivity", "scale") else []):
        assert account.spent > 0.0
        return
    with pytest.raises(ss.errors.PrivacyError, match="is not an account"):
        _ = account.spent


def test_charges_that_promise_different_things_are_no_account(path):
    account = ss.privacy.Account(path, epsilon=5, delta=1e-8)
    account.add([charge()])
    (written,) = json.loads(path.read_text())["charges"]
    rewrite(path, charges=[written, written | {"rows_per_person": 2}])

    with pytest.raises(ss.errors.PrivacyError, match="is not an account: these releases promise"):
        ss.privacy.Account(path)


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", DEEP.encode(), b"[]", b"1" * 10_000])
def test_bytes_that_are_no_account_are_refused(path, content):
    path.write_bytes(content)

    with pytest.raises(ss.errors.PrivacyError, match="is not an account"):
        ss.privacy.Account(path, epsilon=5, delta=1e-8)
    assert path.read_bytes() == content


def test_a_folder_is_not_an_account(tmp_path):
    with pytest.raises(ss.errors.PrivacyError, match="is not an account: it is not a regular file"):
        ss.privacy.Account(tmp_path, epsilon=5, delta=1e-8)


def test_a_folder_that_is_not_there_is_not_made(tmp_path):
    """A name misspelt would be a new account, with nothing spent."""
    with pytest.raises(
        ss.errors.PrivacyError, match=r"there is no folder .*poeple\. Make it first"
    ):
        ss.privacy.Account(tmp_path / "poeple" / "people.json", epsilon=5, delta=1e-8)
    assert not (tmp_path / "poeple").exists()


def test_processes_that_charge_through_two_names_lose_no_charge(path, link):
    """Real processes, 150 charges each, through the file and through a link to it."""
    ss.privacy.Account(path, epsilon=900, delta=1e-8)
    running = start(150, path, link)
    printed = [process.communicate()[0].split() for process in running]

    assert [process.returncode for process in running] == [0, 0]
    assert [len(names) for names in printed] == [150, 150]
    assert sorted(ids(path)) == sorted([*printed[0], *printed[1]])
    assert link.is_symlink()


@pytest.mark.parametrize("kills", [6, pytest.param(50, marks=pytest.mark.slow)])
def test_killed_processes_leave_the_account_whole_and_never_overspent(path, link, kills):
    """Kills at seeded moments of two processes at once; what was printed is in the file.

    The budget is that of two charges a kill; a last process spends the rest of it.
    """
    rng = np.random.default_rng(kills)
    affordable = 2 * kills
    budget = epsilon_of(affordable * RHO, 1e-8)
    account = ss.privacy.Account(path, epsilon=budget, delta=1e-8)
    printed: list[str] = []
    for _ in range(kills // 2):
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
    assert set(printed) | set(last.split()) <= set(ids(path))


def test_the_path_of_an_account_is_no_account_and_is_refused_before_anything_is_spent(tmp_path):
    spec = ss.privacy.plan_declared(center=[0, 0], spread=1.0, n_clusters=2)
    X = np.zeros((50, 2))
    path = str(tmp_path / "a.json")

    with pytest.raises(
        ss.errors.SpecError, match="'account' parameter of release must be an Account"
    ):
        ss.privacy.release(ss.sketch(X, spec), epsilon=1, delta=1e-8, account=path)
    with pytest.raises(ss.errors.SpecError, match="'account' parameter of plan must be an Account"):
        ss.privacy.plan(
            X, center=[0, 0], radius=9, n_clusters=2, epsilon=1, delta=1e-8, account=path
        )
