"""Misfit of weighted Gaussians to a sketch and its gradient, in float32 NumPy.

Symbols
-------
T, d, m   atoms, dimension, frequencies
"""

from __future__ import annotations

import numpy as np

PENALTY = 1e-2  # strength of mass, mean and covariance beside the misfit


class Misfit:
    """A function of packed parameters: T alpha, c / s and std / s with s the data's radius."""

    def __init__(
        self,
        omega: np.ndarray,
        z: np.ndarray,
        importance: np.ndarray,
        mean: np.ndarray,
        covariance: np.ndarray,
    ) -> None:
        self.omega, self.squares = omega.astype(np.float32), (omega**2).astype(np.float32)
        self.z = np.stack([z.real, z.imag]).astype(np.float32)
        self.importance = (importance / importance.sum()).astype(np.float32)
        self.mean, self.covariance = mean, covariance
        self.trace, self.d = np.trace(covariance), len(mean)
        self.unit = np.sqrt(self.trace / self.d)

    def packed(self, weights: np.ndarray, means: np.ndarray, deviations: np.ndarray) -> np.ndarray:
        """Parameters of order 1."""
        parts = weights * len(weights), means / self.unit, deviations / self.unit
        return np.concatenate([part.ravel() for part in parts])

    def unpacked(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Weights, means and deviations."""
        T = len(x) // (1 + 2 * self.d)
        means, deviations = x[T:].reshape(2, T, self.d) * self.unit
        return x[:T] / T, means, deviations

    def bounds(self, T: int) -> list[tuple[float | None, None]]:
        """Weights and deviations are not negative."""
        free, positive = (None, None), (0.0, None)
        return [positive] * T + [free] * (T * self.d) + [positive] * (T * self.d)

    def __call__(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """Loss and its gradient in the packed parameters."""
        weights, means, deviations = self.unpacked(x)
        misfit = self._misfit(weights, means, deviations)
        penalty = self._penalty(weights, means, deviations)
        loss, by_weight, by_mean, by_deviation = (
            part + PENALTY * other for part, other in zip(misfit, penalty, strict=True)
        )
        gradients = by_weight / len(weights), by_mean * self.unit, by_deviation * self.unit
        return loss, np.concatenate([part.ravel() for part in gradients])

    def _misfit(
        self, weights: np.ndarray, means: np.ndarray, deviations: np.ndarray
    ) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
        phases = means.astype(np.float32) @ self.omega
        damping = np.exp((-0.5 * deviations**2).astype(np.float32) @ self.squares)
        cosines, sines = np.cos(phases), np.sin(phases)
        cosines *= damping
        sines *= damping
        alpha = weights.astype(np.float32)
        real, imaginary = alpha @ cosines - self.z[0], alpha @ sines - self.z[1]
        loss = float(self.importance.astype(np.float64) @ (real**2 + imaginary**2))
        real, imaginary = 2 * self.importance * real, 2 * self.importance * imaginary
        along = cosines * real + sines * imaginary
        across = cosines * imaginary - sines * real
        by_mean = weights[:, None] * (across @ self.omega.T)
        by_deviation = -weights[:, None] * deviations * (along @ self.squares.T)
        return loss, along.sum(axis=1).astype(np.float64), by_mean, by_deviation

    def _penalty(
        self, weights: np.ndarray, means: np.ndarray, deviations: np.ndarray
    ) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
        """Squared errors of mass, mean and covariance, relative, and their gradients."""
        rests = means - self.mean
        mass, first = weights.sum() - 1, weights @ rests / self.trace
        second = (rests.T * weights) @ rests + np.diag(weights @ deviations**2) - self.covariance
        value = mass**2 + first @ first * self.trace + (second**2).sum() / self.trace**2
        second = 2 * second / self.trace**2
        by_weight = 2 * mass + 2 * rests @ first
        by_weight += np.einsum("ti,ij,tj->t", rests, second, rests)
        by_weight += deviations**2 @ np.diagonal(second)
        by_mean = weights[:, None] * (2 * first + 2 * rests @ second)
        by_deviation = 2 * weights[:, None] * deviations * np.diagonal(second)
        return float(value), by_weight, by_mean, by_deviation
