"""Families that mix attention with layers that keep a state."""

from __future__ import annotations

from scripts.families.recipe import Recipe

RECIPES: tuple[Recipe, ...] = ()
