"""Clusters and Gaussian mixtures as scikit-learn estimators."""

from __future__ import annotations

from sketchshift.estimators.kmeans import CompressiveKMeans
from sketchshift.estimators.mixture import CompressiveGaussianMixture

__all__ = ["CompressiveGaussianMixture", "CompressiveKMeans"]
