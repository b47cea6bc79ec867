"""Run by another interpreter: rows, k and pairs of epsilon and seed in, centroids out."""

from __future__ import annotations

import json
import sys

import numpy as np
from diffprivlib.models import KMeans

X = np.load(sys.argv[1])
bounds = (X.min(axis=0), X.max(axis=0))
found = []
for epsilon, seed in json.loads(sys.argv[3]):
    model = KMeans(int(sys.argv[2]), epsilon=epsilon, bounds=bounds, random_state=seed).fit(X)
    found.append(model.cluster_centers_.tolist())
print(json.dumps(found))
