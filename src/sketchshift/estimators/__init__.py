"""Clusters and Gaussian mixtures as scikit-learn estimators."""

from __future__ import annotations

from sketchshift.estimators.compressive_gaussian_mixture import CompressiveGaussianMixture
from sketchshift.estimators.compressive_kmeans import CompressiveKMeans

__all__ = ["CompressiveGaussianMixture", "CompressiveKMeans"]
