"""A Python model: one sketch for each day and shop of the model ``events``."""

from __future__ import annotations

from typing import Any

import sketchshift as ss

SPEC = ss.SketchSpec(n_features=2, sketch_size=200, bandwidth=1.0, columns=["x", "y"])


def model(dbt: Any, session: Any) -> Any:
    """Keys, count and sketch, as ``SketchTable.from_arrow`` reads them."""
    dbt.config(materialized="table")
    return ss.sketch_by(dbt.ref("events"), by=["day", "shop"], spec=SPEC).to_arrow()
