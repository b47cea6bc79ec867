"""Clusters decoded from a few kilobytes: one exact pass over any data."""
