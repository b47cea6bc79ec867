"""A budget that lasts until it is spent, in a file."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import sketchshift as ss

CHARGE_FIVE_TIMES = """
import sys
import sketchshift as ss
from sketchshift.features import Charge
account = ss.privacy.Account(sys.argv[1], epsilon=900, delta=1e-8)
for i in range(5):
    name = f"{sys.argv[2]}{i}".ljust(32, "0")
    account.add([Charge(name, "release", 0.01, 1e-8, 1.0, 7.1, "add_remove", 1, "test")])
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "people.json"


def test_releases_are_charged_until_the_budget_is_spent(raw, release, path):
    """Two releases of epsilon 1 make 1.44 by zCDP, three 1.79."""
    for _ in range(2):
        release(raw, account=ss.privacy.Account(path, epsilon=1.6, delta=1e-8))
    account = ss.privacy.Account(path)

    assert account.spent == pytest.approx(1.4405, abs=1e-3)
    with pytest.raises(ss.PrivacyError, match=r"budget does not last: .* 1\.44 are spent"):
        release(raw, account=account)
    assert ss.privacy.Account(path).spent == account.spent


@pytest.mark.usefixtures("seeded_noise")
def test_a_plan_is_charged_once_however_often_it_is_used(X, release, path):
    spec = ss.privacy.plan(X, [5.0, -1.0, 0.3], 30.0, 2, 0.5, 1e-8)
    account = ss.privacy.Account(path, epsilon=5, delta=1e-8)
    first = release(ss.sketch(X[:500], spec), account=account)
    second = release(ss.sketch(X[500:], spec), account=account)

    assert account.spent == pytest.approx((first + second).ledger.epsilon(1e-8))


def test_a_budget_is_fixed_when_its_account_is_opened(raw, release, path):
    release(raw, account=ss.privacy.Account(path, epsilon=2, delta=1e-8))

    with pytest.raises(ss.PrivacyError, match=r"has epsilon 2, and 3 was asked for\. Leave eps"):
        ss.privacy.Account(path, epsilon=3)


def test_another_file_is_not_an_account(path):
    path.write_text('{"schema": 1}')

    with pytest.raises(ss.PrivacyError, match="is not an account"):
        ss.privacy.Account(path)


def test_a_new_account_needs_its_budget(path):
    with pytest.raises(ss.SpecError, match="'epsilon' parameter of Account"):
        ss.privacy.Account(path)


def test_two_accounts_on_one_file_do_not_overspend_it(raw, release, path):
    """Each was opened before the other charged anything."""
    first, second = (ss.privacy.Account(path, epsilon=1.2, delta=1e-8) for _ in range(2))
    release(raw, account=first)

    with pytest.raises(ss.PrivacyError, match=r"budget does not last: .* 1 are spent"):
        release(raw, account=second)
    assert second.spent == first.spent == pytest.approx(1.0, abs=1e-3)


def test_processes_that_charge_at_once_lose_no_charge(path):
    """Real processes, five charges each: the file holds them all."""
    ss.privacy.Account(path, epsilon=900, delta=1e-8)
    command = [sys.executable, "-c", CHARGE_FIVE_TIMES, str(path)]
    running = [subprocess.Popen([*command, str(i)]) for i in range(3)]

    assert [process.wait() for process in running] == [0, 0, 0]
    assert len(json.loads(path.read_text())["charges"]) == 15
